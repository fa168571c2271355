"""Maps made of maps, against their formulas."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from refusal import said

from olx import mirrors
from olx.convex import sets

RNG = np.random.default_rng(5)
D = 3
THETA, OTHER = RNG.normal(size=D), RNG.normal(size=D)
CENTER = RNG.normal(size=D)
MATRIX = RNG.normal(size=(D, D)) + 2 * np.eye(D)
ROWS = np.stack([THETA, OTHER])
BLOCKS = {"w": THETA, "p": 2 * OTHER, "deep": {"x": THETA[:2], "y": OTHER}}
BALL = mirrors.euclidean(sets.ball(0.5))
MAPS = {
    "w": BALL,
    "p": mirrors.negative_entropy(0.7),
    "deep": mirrors.pnorm(1.5),
}

MADE = {
    "scale": (lambda: mirrors.scale(mirrors.negative_entropy(), 2.5), THETA, OTHER),
    "scale of a ball": (lambda: mirrors.scale(BALL, 0.2), THETA, OTHER),
    "shift": (lambda: mirrors.shift(BALL, CENTER), THETA, OTHER),
    "precompose": (lambda: mirrors.precompose(mirrors.hypentropy(0.5), MATRIX), THETA, OTHER),
    "precompose, normed": (lambda: mirrors.precompose(mirrors.pnorm(1.5), MATRIX), THETA, OTHER),
    "leafwise": (
        lambda: mirrors.leafwise(MAPS), BLOCKS, jax.tree.map(lambda leaf: 0.3 - leaf, BLOCKS)
    ),
    "each_leaf": (
        lambda: mirrors.each_leaf(mirrors.negative_entropy(0.7)), BLOCKS,
        jax.tree.map(lambda leaf: 0.3 - leaf, BLOCKS),
    ),
    "rowwise": (
        lambda: mirrors.rowwise(mirrors.tsallis(0.5)), ROWS, np.stack([OTHER, CENTER]),
    ),
    "add": (
        lambda: mirrors.add(mirrors.euclidean(), mirrors.hypentropy(0.5)), THETA, OTHER
    ),
    "add on the simplex": (
        lambda: mirrors.add(
            mirrors.negative_entropy(), mirrors.tsallis(0.5), total=1.0, separable=True
        ), THETA, OTHER,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_a_made_map_keeps_the_laws_of_a_map(name):
    make, theta, other = MADE[name]
    mirror = make()
    here, there = look(mirror, theta), look(mirror, other)
    inner = lambda a, b: sum(np.vdot(*pair) for pair in pairs(a, b))
    gap = lambda at, theta, value: at["potential"] + value - inner(theta, at["w"])
    assert abs(gap(here, theta, here["conjugate"])) < 1e-12
    assert gap(there, theta, here["conjugate"]) > 1e-4
    assert here["inside"]
    again = look(mirror, here["retract"])
    for mine, expected in [*pairs(again["w"], here["w"]), *pairs(here["retract"], here["dual"])]:
        np.testing.assert_allclose(mine, expected, rtol=0, atol=1e-12)
    if mirror.norm is not None:
        step, moved = minus(other, theta), minus(there["w"], here["w"])
        step_length, energy, moved_length, best = lengths(mirror, step, moved, theta)
        assert step_length / mirror.modulus > moved_length
        assert energy > there["conjugate"] - here["conjugate"] - inner(here["w"], step)
        assert abs(best - 1) < 1e-12


@jax.jit
def look(mirror, theta):
    """The decision of a dual, and what the map says of both."""
    value, w = jax.value_and_grad(mirror.conjugate)(theta)
    return {
        "conjugate": value,
        "w": w,
        "potential": mirror.potential(w),
        "inside": True if mirror.contains is None else mirror.contains(w),
        "dual": mirror.to_dual(w),
        "retract": mirror.retract(theta),
    }


@jax.jit
def lengths(mirror, step, moved, theta):
    norm = mirror.norm
    best = jax.grad(norm.dual)(theta)
    return norm.dual(step), mirror.energy(step), norm.primal(moved), norm.primal(best)


def pairs(one, other):
    return list(zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


def minus(one, other):
    return jax.tree.map(lambda a, b: np.asarray(a) - np.asarray(b), one, other)


@jax.jit
def decide(mirror, theta):
    return mirror.to_primal(theta)


@jax.jit
def sizes(norm, point):
    """The norm of a point and its dual norm."""
    return norm.primal(point), norm.dual(point)


def softmax(theta):
    shifted = np.exp(theta - np.max(theta, axis=-1, keepdims=True))
    return shifted / np.sum(shifted, axis=-1, keepdims=True)


def test_scaling_is_a_formula():
    mirror = mirrors.scale(mirrors.negative_entropy(), 2.5)
    decision, value = jax.jit(lambda theta: (mirror.to_primal(theta), mirror.conjugate(theta)))(
        THETA
    )
    np.testing.assert_allclose(decision, softmax(THETA / 2.5), rtol=1e-13)
    np.testing.assert_allclose(value, 2.5 * np.log(np.mean(np.exp(THETA / 2.5))), rtol=1e-13)
    assert mirror.modulus == 2.5


def test_scaling_a_factory_and_its_number_agree():
    mine, other = mirrors.scale(mirrors.tsallis(0.5), 3.0), mirrors.tsallis(0.5, 3.0)
    assert mine.modulus == other.modulus
    np.testing.assert_allclose(decide(mine, THETA), decide(other, THETA), rtol=1e-13)


def test_a_shifted_ball_is_a_ball_elsewhere():
    mirror = mirrors.shift(BALL, CENTER)
    offset = 0.5 * THETA / np.linalg.norm(THETA)
    np.testing.assert_allclose(decide(mirror, THETA), CENTER + offset, rtol=1e-13)
    inside = jax.jit(mirror.contains)
    assert inside(CENTER + 0.4 * offset)
    assert not inside(CENTER + 3 * offset)


def test_precomposition_is_a_formula():
    mirror = mirrors.precompose(mirrors.euclidean(), MATRIX)
    a = MATRIX
    np.testing.assert_allclose(decide(mirror, THETA), np.linalg.solve(a.T @ a, THETA), rtol=1e-11)
    primal, dual = sizes(mirror.norm, THETA)
    np.testing.assert_allclose(primal, np.linalg.norm(a @ THETA), rtol=1e-13)
    np.testing.assert_allclose(dual, np.linalg.norm(np.linalg.solve(a.T, THETA)), rtol=1e-11)
    assert not mirror.separable


def test_leafwise_applies_each_map_to_its_part():
    w = decide(mirrors.leafwise(MAPS), BLOCKS)
    np.testing.assert_allclose(w["w"], 0.5 * THETA / np.linalg.norm(THETA), rtol=1e-13)
    np.testing.assert_allclose(w["p"], softmax(2 * OTHER / 0.7), rtol=1e-13)
    flat = np.concatenate([BLOCKS["deep"]["x"], BLOCKS["deep"]["y"]])
    deep = decide(mirrors.pnorm(1.5), flat)
    np.testing.assert_allclose(np.concatenate([w["deep"]["x"], w["deep"]["y"]]), deep, rtol=1e-13)


def test_the_norm_of_blocks_weighs_them_by_their_moduli():
    mirror = mirrors.leafwise({"w": mirrors.euclidean(), "p": mirrors.negative_entropy(0.7)})
    primal, dual = sizes(mirror.norm, {"w": THETA, "p": OTHER})
    l2, l1, largest = np.linalg.norm(THETA), np.abs(OTHER).sum(), np.abs(OTHER).max()
    np.testing.assert_allclose(primal, np.sqrt(l2**2 + 0.7 * l1**2), rtol=1e-13)
    np.testing.assert_allclose(dual, np.sqrt(l2**2 + largest**2 / 0.7), rtol=1e-13)
    assert mirror.modulus == 1.0


def test_each_leaf_and_each_row_have_a_simplex():
    leaves = decide(mirrors.each_leaf(mirrors.negative_entropy()), BLOCKS)
    for w, theta in zip(jax.tree.leaves(leaves), jax.tree.leaves(BLOCKS), strict=True):
        np.testing.assert_allclose(w, softmax(theta), rtol=1e-13)
    mirror = mirrors.rowwise(mirrors.negative_entropy())
    w, inside = decide(mirror, ROWS), jax.jit(mirror.contains)
    np.testing.assert_allclose(w, softmax(ROWS), rtol=1e-13)
    assert inside(w)
    assert not inside(np.ones((2, D)) / (2 * D))
    expected = np.sqrt(np.sum(np.abs(ROWS).sum(axis=1) ** 2))
    np.testing.assert_allclose(sizes(mirror.norm, ROWS)[0], expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("mirror", "zero"),
    [
        (mirrors.leafwise(MAPS), jax.tree.map(np.zeros_like, BLOCKS)),
        (mirrors.rowwise(mirrors.euclidean()), np.zeros((2, D))),
    ],
    ids=["leafwise", "rowwise"],
)
def test_norms_of_blocks_have_finite_gradients_at_zero(mirror, zero):
    slopes = jax.jit(jax.grad(mirror.norm.dual))(zero)
    assert all(np.all(leaf == 0) for leaf in jax.tree.leaves(slopes))


def test_a_sum_has_the_modulus_that_is_known():
    known = mirrors.euclidean()
    unknown = dataclasses.replace(known, modulus=None)
    for pair in ((known, unknown), (unknown, known)):
        assert mirrors.add(*pair).modulus == 1.0


def test_a_sum_solves_its_equation():
    mirror = mirrors.add(mirrors.euclidean(), mirrors.hypentropy(0.5))
    w = np.asarray(decide(mirror, THETA))
    np.testing.assert_allclose(w + np.arcsinh(w / 0.5), THETA, rtol=1e-12)
    assert mirror.separable
    assert mirror.modulus == 1.0


def test_moduli_in_one_norm_add_up():
    mirror = mirrors.add(mirrors.negative_entropy(0.7), mirrors.tsallis(0.5), total=1.0)
    assert mirror.modulus == pytest.approx(0.7 + 0.5)
    w = np.asarray(decide(mirror, THETA))
    np.testing.assert_allclose(w.sum(), 1.0, rtol=1e-14)
    slopes = 0.7 * np.log(w) - 1 / np.sqrt(w) - THETA
    np.testing.assert_allclose(slopes, slopes[0], rtol=1e-12)


@pytest.mark.parametrize(
    ("mirror", "separable", "bounded", "normed"),
    [
        (mirrors.scale(mirrors.hypentropy(1.0), 2.0), True, False, False),
        (mirrors.shift(mirrors.euclidean(sets.box(0.0, 1.0)), CENTER), True, True, True),
        (mirrors.leafwise([mirrors.euclidean(), mirrors.binary_entropy()]), True, True, True),
        (mirrors.leafwise([mirrors.euclidean(), mirrors.hypentropy(1.0)]), True, False, False),
        (mirrors.leafwise([mirrors.euclidean(), mirrors.pnorm(1.5)]), False, False, True),
        (mirrors.rowwise(mirrors.binary_entropy()), True, True, True),
        (mirrors.each_leaf(mirrors.negative_entropy()), False, True, True),
        (mirrors.precompose(mirrors.binary_entropy(), MATRIX), False, True, True),
    ],
)
def test_facts_are_passed_on(mirror, separable, bounded, normed):
    assert mirror.separable == separable
    assert (mirror.contains is not None) == bounded
    assert (mirror.norm is not None) == (mirror.modulus is not None) == normed


def test_numbers_inside_can_be_swept_and_differentiated():
    factors = np.array([0.5, 2.0, 0.5 + 1e-6, 0.5 - 1e-6])

    @jax.jit
    @jax.vmap
    def look(factor):
        act = lambda factor: mirrors.rowwise(mirrors.scale(mirrors.negative_entropy(), factor))
        value = lambda factor: act(factor).conjugate(jnp.array(ROWS))
        return act(factor).to_primal(jnp.array(ROWS)), *jax.value_and_grad(value)(factor)

    together, values, slopes = look(factors)
    for factor, w in zip(factors, together, strict=True):
        np.testing.assert_allclose(w, softmax(ROWS / factor), rtol=1e-13, err_msg=f"{factor}")
    np.testing.assert_allclose(slopes[0], (values[2] - values[3]) / 2e-6, rtol=1e-8)


def test_float32_stays_float32():
    rows = ROWS.astype(np.float32)
    mirror = mirrors.leafwise(
        [mirrors.scale(mirrors.rowwise(mirrors.negative_entropy()), 2.0), mirrors.pnorm(1.5)]
    )
    w = decide(mirror, [rows, rows[0]])
    assert all(leaf.dtype == jnp.float32 for leaf in w)
    assert sizes(mirror.norm, w)[1].dtype == jnp.float32
    np.testing.assert_allclose(w[0], softmax(rows / 2), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: mirrors.scale(mirrors.euclidean(), -1.0), ValueError,
            "scale: `factor` must be positive, got -1.0.",
        ),
        (
            lambda: mirrors.shift(jnp.cosh, CENTER), TypeError,
            "shift: `mirror` must be a MirrorMap, got ",
        ),
        (
            lambda: mirrors.leafwise({"a": 3.0}), TypeError,
            "leafwise: `maps` must be a MirrorMap, got float; take one of `olx.mirrors`",
        ),
        (
            lambda: mirrors.precompose(mirrors.euclidean(), np.ones((2, 3))), TypeError,
            "precompose: `matrix` must be square, got shape (2, 3).",
        ),
        (
            lambda: mirrors.add(mirrors.euclidean(), mirrors.unnormalized_entropy()), TypeError,
            "add: give `start` or `total`, since one of the potentials has a domain.",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(call, kind, message):
    assert said(call, kind).startswith(message)
