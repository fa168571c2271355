"""Maps made of maps, against their formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from olx import convex

RNG = np.random.default_rng(5)
D = 3
THETA, OTHER = jnp.asarray(RNG.normal(size=D)), jnp.asarray(RNG.normal(size=D))
CENTER = jnp.asarray(RNG.normal(size=D))
MATRIX = jnp.asarray(RNG.normal(size=(D, D)) + 2 * np.eye(D))
BLOCKS = {"w": THETA, "p": 2 * OTHER, "deep": {"x": THETA[:2], "y": OTHER}}
MAPS = {
    "w": convex.euclidean_ball(0.5),
    "p": convex.negative_entropy(0.7),
    "deep": convex.pnorm(1.5),
}

MADE = {
    "scale": (lambda: convex.scale(convex.negative_entropy(), 2.5), THETA, OTHER),
    "scale of a ball": (lambda: convex.scale(convex.euclidean_ball(0.5), 0.2), THETA, OTHER),
    "shift": (lambda: convex.shift(convex.euclidean_ball(0.5), CENTER), THETA, OTHER),
    "precompose": (lambda: convex.precompose(convex.hypentropy(0.5), MATRIX), THETA, OTHER),
    "precompose, normed": (lambda: convex.precompose(convex.pnorm(1.5), MATRIX), THETA, OTHER),
    "leafwise": (
        lambda: convex.leafwise(MAPS), BLOCKS, jax.tree.map(lambda leaf: 0.3 - leaf, BLOCKS)
    ),
    "each_leaf": (
        lambda: convex.each_leaf(convex.negative_entropy(0.7)), BLOCKS,
        jax.tree.map(lambda leaf: 0.3 - leaf, BLOCKS),
    ),
    "rowwise": (
        lambda: convex.rowwise(convex.tsallis(0.5)), jnp.stack([THETA, OTHER]),
        jnp.stack([OTHER, CENTER]),
    ),
    "add": (
        lambda: convex.add(convex.euclidean(), convex.hypentropy(0.5)), THETA, OTHER
    ),
    "add on the simplex": (
        lambda: convex.add(
            convex.negative_entropy(), convex.tsallis(0.5), total=1.0, separable=True
        ), THETA, OTHER,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_a_made_map_keeps_the_laws_of_a_map(name):
    make, theta, other = MADE[name]

    @jax.jit
    def look(theta, other):
        mirror = make()
        w, v = mirror.to_primal(theta), mirror.to_primal(other)
        step = jax.tree.map(jnp.subtract, other, theta)
        laws = {
            "closed": mirror.gap(w, theta),
            "open": mirror.gap(v, theta),
            "inside": True if mirror.contains is None else mirror.contains(w),
            "back": jax.tree.map(jnp.subtract, mirror.to_primal(mirror.retract(theta)), w),
            "retract": jax.tree.map(jnp.subtract, mirror.retract(theta), mirror.to_dual(w)),
        }
        if mirror.norm is not None:
            moved = jax.tree.map(jnp.subtract, v, w)
            laws["smooth"] = mirror.norm.dual(step) / mirror.modulus - mirror.norm.primal(moved)
            laws["drift"] = mirror.energy(step) - mirror.dual_bregman(other, theta)
            best = jax.grad(mirror.norm.dual)(theta)
            laws["best"] = mirror.norm.primal(best) - 1
        return laws

    laws = look(theta, other)
    assert abs(laws["closed"]) < 1e-12
    assert laws["open"] > 1e-4
    assert laws["inside"]
    assert (
        max(np.abs(leaf).max() for leaf in jax.tree.leaves([laws["back"], laws["retract"]])) < 1e-12
    )
    assert laws.get("smooth", 1.0) > 0
    assert laws.get("drift", 1.0) > 0
    assert abs(laws.get("best", 0.0)) < 1e-12


def test_scaling_is_a_formula():
    mirror = convex.scale(convex.negative_entropy(), 2.5)
    np.testing.assert_allclose(mirror.to_primal(THETA), jax.nn.softmax(THETA / 2.5), rtol=1e-13)
    expected = 2.5 * np.log(np.mean(np.exp(np.asarray(THETA) / 2.5)))
    np.testing.assert_allclose(mirror.conjugate(THETA), expected, rtol=1e-13)
    assert mirror.modulus == 2.5


def test_scaling_a_factory_and_its_number_agree():
    mine = convex.scale(convex.tsallis(0.5), 3.0)
    assert mine.modulus == convex.tsallis(0.5, 3.0).modulus
    np.testing.assert_allclose(
        mine.to_primal(THETA), convex.tsallis(0.5, 3.0).to_primal(THETA), rtol=1e-13
    )


def test_a_shifted_ball_is_a_ball_elsewhere():
    mirror = convex.shift(convex.euclidean_ball(0.5), CENTER)
    offset = 0.5 * np.asarray(THETA) / np.linalg.norm(THETA)
    np.testing.assert_allclose(mirror.to_primal(THETA), CENTER + offset, rtol=1e-13)
    assert bool(mirror.contains(CENTER + 0.4 * offset))
    assert not bool(mirror.contains(CENTER + 3 * offset))


def test_precomposition_is_a_formula():
    mirror = convex.precompose(convex.euclidean(), MATRIX)
    a = np.asarray(MATRIX)
    np.testing.assert_allclose(mirror.to_primal(THETA), np.linalg.solve(a.T @ a, THETA), rtol=1e-11)
    np.testing.assert_allclose(mirror.norm.primal(THETA), np.linalg.norm(a @ THETA), rtol=1e-13)
    dual = np.linalg.norm(np.linalg.solve(a.T, THETA))
    np.testing.assert_allclose(mirror.norm.dual(THETA), dual, rtol=1e-11)
    assert not mirror.separable


def test_leafwise_applies_each_map_to_its_part():
    w = convex.leafwise(MAPS).to_primal(BLOCKS)
    np.testing.assert_allclose(w["w"], 0.5 * THETA / np.linalg.norm(THETA), rtol=1e-13)
    np.testing.assert_allclose(w["p"], jax.nn.softmax(2 * OTHER / 0.7), rtol=1e-13)
    flat = jnp.concatenate([BLOCKS["deep"]["x"], BLOCKS["deep"]["y"]])
    deep = convex.pnorm(1.5).to_primal(flat)
    np.testing.assert_allclose(jnp.concatenate([w["deep"]["x"], w["deep"]["y"]]), deep, rtol=1e-13)


def test_the_norm_of_blocks_weighs_them_by_their_moduli():
    mirror = convex.leafwise({"w": convex.euclidean(), "p": convex.negative_entropy(0.7)})
    parts = {"w": THETA, "p": OTHER}
    l2, l1, largest = np.linalg.norm(THETA), np.abs(OTHER).sum(), np.abs(OTHER).max()
    np.testing.assert_allclose(mirror.norm.primal(parts), np.sqrt(l2**2 + 0.7 * l1**2), rtol=1e-13)
    np.testing.assert_allclose(
        mirror.norm.dual(parts), np.sqrt(l2**2 + largest**2 / 0.7), rtol=1e-13
    )
    assert mirror.modulus == 1.0


def test_each_leaf_and_each_row_have_a_simplex():
    leaves = convex.each_leaf(convex.negative_entropy()).to_primal(BLOCKS)
    for w, theta in zip(jax.tree.leaves(leaves), jax.tree.leaves(BLOCKS), strict=True):
        np.testing.assert_allclose(w, jax.nn.softmax(theta), rtol=1e-13)
    rows = jnp.stack([THETA, OTHER])
    mirror = convex.rowwise(convex.negative_entropy())
    np.testing.assert_allclose(mirror.to_primal(rows), jax.nn.softmax(rows, axis=1), rtol=1e-13)
    assert bool(mirror.contains(mirror.to_primal(rows)))
    assert not bool(mirror.contains(jnp.ones((2, D)) / (2 * D)))
    expected = np.sqrt(np.sum(np.abs(rows).sum(axis=1) ** 2))
    np.testing.assert_allclose(mirror.norm.primal(rows), expected, rtol=1e-13)


def test_norms_of_blocks_have_finite_gradients_at_zero():
    for mirror, zero in (
        (convex.leafwise(MAPS), jax.tree.map(jnp.zeros_like, BLOCKS)),
        (convex.rowwise(convex.euclidean()), jnp.zeros((2, D))),
    ):
        slopes = jax.grad(mirror.norm.dual)(zero)
        assert all(np.all(leaf == 0) for leaf in jax.tree.leaves(slopes))


def test_a_sum_solves_its_equation():
    mirror = convex.add(convex.euclidean(), convex.hypentropy(0.5))
    w = np.asarray(mirror.to_primal(THETA))
    np.testing.assert_allclose(w + np.arcsinh(w / 0.5), THETA, rtol=1e-12)
    assert mirror.separable
    assert mirror.modulus == 1.0


def test_moduli_in_one_norm_add_up():
    mirror = convex.add(convex.negative_entropy(0.7), convex.tsallis(0.5), total=1.0)
    assert mirror.modulus == pytest.approx(0.7 + 0.5)
    w = np.asarray(mirror.to_primal(THETA))
    np.testing.assert_allclose(w.sum(), 1.0, rtol=1e-14)
    slopes = 0.7 * np.log(w) - 1 / np.sqrt(w) - np.asarray(THETA)
    np.testing.assert_allclose(slopes, slopes[0], rtol=1e-12)


@pytest.mark.parametrize(
    ("mirror", "separable", "bounded", "normed"),
    [
        (convex.scale(convex.hypentropy(1.0), 2.0), True, False, False),
        (convex.shift(convex.euclidean_box(0.0, 1.0), CENTER), True, True, True),
        (convex.leafwise([convex.euclidean(), convex.binary_entropy()]), True, True, True),
        (convex.leafwise([convex.euclidean(), convex.hypentropy(1.0)]), True, False, False),
        (convex.leafwise([convex.euclidean(), convex.pnorm(1.5)]), False, False, True),
        (convex.rowwise(convex.binary_entropy()), True, True, True),
        (convex.each_leaf(convex.negative_entropy()), False, True, True),
        (convex.precompose(convex.binary_entropy(), MATRIX), False, True, True),
    ],
)
def test_facts_are_passed_on(mirror, separable, bounded, normed):
    assert mirror.separable == separable
    assert (mirror.contains is not None) == bounded
    assert (mirror.norm is not None) == (mirror.modulus is not None) == normed


def test_numbers_inside_can_be_swept_and_differentiated():
    factors = jnp.array([0.5, 2.0])
    act = lambda factor: convex.rowwise(convex.scale(convex.negative_entropy(), factor))
    rows = jnp.stack([THETA, OTHER])
    together = jax.vmap(lambda factor: act(factor).to_primal(rows))(factors)
    for factor, w in zip(factors, together, strict=True):
        np.testing.assert_allclose(w, jax.nn.softmax(rows / factor, axis=1), rtol=1e-13)
    value = lambda factor: act(factor).conjugate(rows)
    expected = (value(0.5 + 1e-6) - value(0.5 - 1e-6)) / 2e-6
    np.testing.assert_allclose(jax.grad(value)(0.5), expected, rtol=1e-8)


def test_float32_stays_float32():
    rows = jnp.stack([THETA, OTHER]).astype(jnp.float32)
    mirror = convex.leafwise(
        [convex.scale(convex.rowwise(convex.negative_entropy()), 2.0), convex.pnorm(1.5)]
    )
    w = mirror.to_primal([rows, rows[0]])
    assert all(leaf.dtype == jnp.float32 for leaf in w)
    assert mirror.norm.dual(w).dtype == jnp.float32
    np.testing.assert_allclose(w[0], jax.nn.softmax(rows / 2, axis=1), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: convex.scale(convex.euclidean(), -1.0), ValueError,
            "scale: `factor` must be positive, got -1.0.",
        ),
        (
            lambda: convex.shift(jnp.cosh, CENTER), TypeError,
            "shift: `mirror` must be a MirrorMap, got ",
        ),
        (
            lambda: convex.leafwise({"a": 3.0}), TypeError,
            "leafwise: `maps` must be a MirrorMap, got float.",
        ),
        (
            lambda: convex.precompose(convex.euclidean(), jnp.ones((2, 3))), TypeError,
            "precompose: `matrix` must be square, got shape (2, 3).",
        ),
        (
            lambda: convex.add(convex.euclidean(), convex.unnormalized_entropy()), TypeError,
            "add: give `start` or `total`, since one of the potentials has a domain.",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(call, kind, message):
    with pytest.raises(kind) as refusal:
        call()
    assert str(refusal.value).startswith(message)
