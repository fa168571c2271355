"""Mirror maps derived from one function: a potential or a conjugate alone."""

import math
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import entr, logsumexp
from jax.tree_util import Partial
from scipy import optimize

from olx import convex
from olx.convex import mirror_map

RNG = np.random.default_rng(11)
D = 4
NORMAL = RNG.normal(size=(5, D))
POSITIVE = RNG.gamma(1.0, size=(5, D)) + 0.05
SIMPLEX = RNG.dirichlet(np.ones(D), size=5)
UNIT = RNG.uniform(0.02, 0.98, size=(5, D))
MIX = RNG.normal(size=(D, D)) + 3 * np.eye(D)


def cosh(w):
    return jnp.sum(jnp.cosh(w))


def bent(w):
    return jnp.sum(jnp.abs(w) ** 1.5) / 1.5


def quartic(w):
    return jnp.sum(w**4) / 4 + jnp.sum(w**2) / 2


def coupled(w):
    return logsumexp(w) + jnp.vdot(w, w) / 2


def mixed(w):
    return jnp.sum(jnp.cosh(jnp.asarray(MIX, w.dtype) @ w))


def entropy(w):
    return -jnp.sum(entr(w))


def hybrid(w):
    return -jnp.sum(entr(w)) - jnp.sum(jnp.sqrt(w)) + jnp.vdot(w, w)


def elastic(w):
    return -jnp.sum(entr(w)) - jnp.sum(w) + jnp.vdot(w, w) / 2


def two_entropies(w):
    return -jnp.sum(entr(w)) - jnp.sum(entr(1 - w))


def barrier(w):
    return -jnp.sum(jnp.log(w))


def soft_plus(theta):
    return jnp.sum(jax.nn.softplus(theta))


def trace_log(w):
    """On positive definite matrices, and so on their entries: minus the log determinant."""
    return -jnp.linalg.slogdet((w + w.T) / 2)[1] + jnp.vdot(w, w) / 2


class Case(NamedTuple):
    function: Any
    points: np.ndarray
    options: dict


DERIVED = {
    "cosh": Case(cosh, NORMAL, {}),
    "cosh, separable": Case(cosh, NORMAL, {"separable": True}),
    "power 1.5": Case(bent, NORMAL, {}),
    "power 1.5, separable": Case(bent, NORMAL, {"separable": True}),
    "quartic": Case(quartic, NORMAL, {}),
    "coupled": Case(coupled, NORMAL, {}),
    "mixed": Case(mixed, NORMAL / 3, {}),
    "hybrid on the simplex": Case(hybrid, SIMPLEX, {"total": 1.0}),
    "hybrid on the simplex, separable": Case(hybrid, SIMPLEX, {"total": 1.0, "separable": True}),
    "elastic on the orthant": Case(elastic, POSITIVE, {"start": 1.0}),
    "elastic on the orthant, separable": Case(elastic, POSITIVE, {"start": 1.0, "separable": True}),
}


@pytest.mark.parametrize("name", DERIVED)
def test_to_primal_inverts_to_dual(name):
    np.testing.assert_allclose(derived(name)[2], DERIVED[name].points, rtol=1e-10)


@pytest.mark.parametrize("name", DERIVED)
def test_conjugate_is_the_supremum_scipy_finds(name):
    function, points, options = DERIVED[name]
    theta, conjugate, _ = (part[0] for part in derived(name))
    value = jax.jit(jax.value_and_grad(lambda w: function(w) - theta @ w))
    limits = {}
    if "total" in options:
        limits["constraints"] = {"type": "eq", "fun": lambda w: w.sum() - 1}
    if points.min() > 0:
        limits["bounds"] = [(1e-9, None)] * D
    best = optimize.minimize(
        lambda w: [np.asarray(part, float) for part in value(w)],
        points[2], jac=True, method="SLSQP", tol=1e-14, options={"maxiter": 500}, **limits,
    )  # fmt: skip
    np.testing.assert_allclose(conjugate, -best.fun, rtol=1e-8)


@cache
def derived(name):
    """The duals of the points, their conjugate values and what they come back to."""
    function, points, options = DERIVED[name]
    mirror = mirror_map(function, **options)

    def look(w):
        theta = mirror.to_dual(w)
        return theta, *jax.value_and_grad(mirror.conjugate)(theta)

    return [np.asarray(part) for part in jax.jit(jax.vmap(look))(jnp.asarray(points))]


PAIRS = {
    "euclidean": (lambda w: jnp.vdot(w, w) / 2, convex.euclidean(), NORMAL, {}),
    "unnormalized_entropy": (
        lambda w: D - jnp.sum(entr(w)) - jnp.sum(w), convex.unnormalized_entropy(), NORMAL,
        {"start": 1.0},
    ),
    "negative_entropy": (
        lambda w: math.log(D) - jnp.sum(entr(w)), convex.negative_entropy(), 2 * NORMAL,
        {"total": 1.0},
    ),
    "hypentropy": (
        lambda w: jnp.sum(w * jnp.arcsinh(w / 0.5) - jnp.sqrt(w**2 + 0.25) + 0.5),
        convex.hypentropy(0.5), NORMAL, {},
    ),
    "binary_entropy": (
        lambda w: D * math.log(2) + two_entropies(w), convex.binary_entropy(), 2 * NORMAL,
        {"start": 0.5},
    ),
    "log_barrier": (barrier, convex.log_barrier(), -POSITIVE, {"start": 1.0}),
    "log_barrier_simplex": (
        lambda w: barrier(D * w), convex.log_barrier_simplex(), 5 * NORMAL, {"total": 1.0}
    ),
    "tsallis": (
        lambda w: 2 * (math.sqrt(D) - jnp.sum(jnp.sqrt(w))), convex.tsallis(0.5), NORMAL,
        {"total": 1.0},
    ),
}  # fmt: skip


COUPLED = ("euclidean", "unnormalized_entropy", "negative_entropy", "hypentropy")


@pytest.mark.parametrize(
    ("name", "separable"), [*((name, True) for name in PAIRS), *((name, False) for name in COUPLED)]
)
def test_a_derived_map_is_the_closed_form(name, separable):
    potential, closed, thetas, options = PAIRS[name]
    derived = mirror_map(potential, separable=separable, **options)
    both = jax.jit(
        jax.vmap(lambda t: [jax.value_and_grad(m.conjugate)(t) for m in (derived, closed)])
    )
    for dtype, rtol, atol in ((jnp.float64, 1e-12, 1e-12), (jnp.float32, 1e-6, 1e-6)):
        mine, theirs = both(jnp.asarray(thetas, dtype))
        for part, other in zip(mine, theirs, strict=True):
            assert part.dtype == dtype
            size = 1 + np.abs(other).max()
            np.testing.assert_allclose(part, other, rtol=3 * rtol, atol=atol * size)


@pytest.mark.parametrize(
    ("closed", "points", "separable"),
    [
        (convex.euclidean(), NORMAL, True),
        (convex.unnormalized_entropy(), POSITIVE, True),
        (convex.hypentropy(0.5), NORMAL, True),
        (convex.hypentropy(0.5), NORMAL, False),
        (convex.binary_entropy(), UNIT, True),
        (convex.binary_entropy(), UNIT, False),
    ],
)
def test_a_map_from_its_conjugate_is_the_closed_form(closed, points, separable):
    derived = mirror_map(conjugate=closed.conjugate, separable=separable)
    both = jax.jit(
        jax.vmap(lambda w: [jax.value_and_grad(m.potential)(w) for m in (derived, closed)])
    )
    mine, theirs = both(jnp.asarray(points))
    for part, other in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(part, other, rtol=1e-11, atol=1e-12)


def test_pnorm_is_derived_in_both_directions():
    closed = convex.pnorm(1.5)
    from_potential = mirror_map(closed.potential)
    from_conjugate = mirror_map(conjugate=closed.conjugate)
    theta = jnp.asarray(NORMAL)
    seen = jax.jit(jax.vmap(from_potential.to_primal))(theta)
    np.testing.assert_allclose(seen, jax.vmap(closed.to_primal)(theta), rtol=1e-12)
    seen = jax.jit(jax.vmap(from_conjugate.to_dual))(theta)
    np.testing.assert_allclose(seen, jax.vmap(closed.to_dual)(theta), rtol=1e-11)


def test_softmax_comes_from_logsumexp_alone():
    mirror = mirror_map(conjugate=logsumexp)
    np.testing.assert_allclose(mirror.to_primal(jnp.log(SIMPLEX[0])), SIMPLEX[0], rtol=1e-12)
    expected = np.sum(SIMPLEX[0] * np.log(SIMPLEX[0]))
    np.testing.assert_allclose(mirror.potential(jnp.asarray(SIMPLEX[0])), expected, rtol=1e-12)


def test_sigmoid_comes_from_softplus_alone():
    mirror = mirror_map(conjugate=soft_plus, separable=True)
    expected = np.sum(UNIT[0] * np.log(UNIT[0]) + (1 - UNIT[0]) * np.log(1 - UNIT[0]))
    np.testing.assert_allclose(mirror.potential(jnp.asarray(UNIT[0])), expected, rtol=1e-12)
    vertex = jnp.array([0.0, 1.0, 0.0, 1.0])
    np.testing.assert_allclose(mirror.potential(vertex), 0.0, atol=1e-14)


def test_a_potential_of_matrices():
    mirror = mirror_map(trace_log, start=0.0)
    moved = mirror_map(lambda w: trace_log(w + jnp.eye(3)))
    w = jnp.array([[0.5, 0.1, 0.0], [0.1, 0.8, 0.2], [0.0, 0.2, 0.3]])
    np.testing.assert_allclose(moved.to_primal(moved.to_dual(w)), w, atol=1e-12)
    assert mirror.to_dual(w + jnp.eye(3)).shape == (3, 3)


def test_exact_zeros_have_exact_decisions():
    theta = jnp.array([0.0, 2.0, 0.0, -1.0])
    for separable in (False, True):
        seen = mirror_map(bent, separable=separable).to_primal(theta)
        np.testing.assert_allclose(seen, [0.0, 4.0, 0.0, -1.0], rtol=1e-12)


def test_trees_are_one_long_vector():
    function = lambda w: cosh(w["a"]) + cosh(w["b"]) + 0.1 * jnp.sum(w["a"]) * jnp.sum(w["b"])
    mirror = mirror_map(function)
    w = {"a": jnp.array([0.3, -1.0]), "b": jnp.array([[2.0], [0.1], [0.0]])}
    back = mirror.to_primal(mirror.to_dual(w))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-12), back, w)


def powered(p, w):
    return jnp.sum(jnp.cosh(p * w)) + jnp.sum(w) ** 2


def powered_alone(p, w):
    return jnp.sum(jnp.cosh(p * w))


def blended(p, w):
    return -p * jnp.sum(entr(w)) + jnp.vdot(w, w) / 2


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (powered, {}),
        (powered_alone, {"separable": True}),
        (blended, {"total": 1.0, "separable": True}),
    ],
    ids=["dense", "separable", "simplex"],
)
def test_derivatives_agree_with_finite_differences(function, options):
    """Each order against differences of the one before, in theta and in a number inside."""
    theta, p, h = jnp.asarray(NORMAL[0]), 1.3, 1e-5
    value = lambda p, theta: mirror_map(Partial(function, p), **options).conjugate(theta)
    slopes = jax.grad(value, argnums=(0, 1))
    look = lambda p, theta: (
        value(p, theta),
        slopes(p, theta),
        jax.jacfwd(slopes, (0, 1))(p, theta),
    )
    moves = [(h, jnp.zeros(D)), *((0.0, h * e) for e in jnp.eye(D))]
    ps = jnp.array([p, *(p + sign * dp for dp, _ in moves for sign in (1, -1))])
    thetas = jnp.stack([theta, *(theta + sign * dt for _, dt in moves for sign in (1, -1))])
    seen = jax.jit(jax.vmap(look))(ps, thetas)
    here = jax.tree.map(lambda leaf: leaf[0], seen)
    change = jax.tree.map(lambda leaf: (leaf[1::2] - leaf[2::2]) / (2 * h), seen)
    close = lambda mine, other: np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-8)
    close(here[1][0], change[0][0])
    close(here[1][1], change[0][1:])
    for order in (0, 1):
        close(here[2][order][0], change[1][order][0])
        close(here[2][order][1], change[1][order][1:].T)


@pytest.mark.parametrize("separable", [False, True])
def test_the_total_is_differentiable(separable):
    value = lambda total, t: mirror_map(entropy, total=total, separable=separable).conjugate(t)
    theta, total = jnp.asarray(NORMAL[0]), 1.7
    slope, bend = jax.jit(jax.value_and_grad(jax.grad(value)))(total, theta)
    # sup of <theta, w> - sum w log w over sum w = s is s (log sum e^theta - log s)
    np.testing.assert_allclose(slope, logsumexp(theta) - np.log(total) - 1, rtol=1e-10)
    np.testing.assert_allclose(bend, -1 / total, rtol=1e-10)


def test_a_number_of_the_domain_is_differentiable():
    value = lambda radius, theta: convex.euclidean_ball(radius).conjugate(theta)
    theta = jnp.array([3.0, 4.0])
    np.testing.assert_allclose(jax.grad(value)(2.0, theta), 5.0 - 2.0, rtol=1e-14)
    np.testing.assert_allclose(jax.grad(jax.grad(value))(2.0, theta), -1.0, rtol=1e-14)
    np.testing.assert_array_equal(jax.grad(value)(9.0, theta), 0.0)


HARD = {
    "cosh": (cosh, np.arcsinh, {}, (1e-6, 1.0, 1e3, 1e6)),
    "power 1.5": (bent, lambda t: np.sign(t) * t**2, {}, (1e-6, 1.0, 1e3, 1e6)),
    "power 10": (
        lambda w: jnp.sum(w**10) / 10, lambda t: np.sign(t) * np.abs(t) ** (1 / 9),
        {"separable": True}, (1e-6, 1.0, 1e3, 1e6),
    ),
    "fourth power": (
        lambda w: jnp.sum(w**4) / 4, np.cbrt, {}, (0.0, 1e-6, 1.0, 1e3, 1e6)
    ),
    "fourth power, separable": (
        lambda w: jnp.sum(w**4) / 4, np.cbrt, {"separable": True}, (0.0, 1e-6, 1.0, 1e3, 1e6)
    ),
    "entropy": (
        entropy, lambda t: np.exp(t - t.max()) / np.exp(t - t.max()).sum(), {"total": 1.0},
        (1e-6, 1.0, 30.0),
    ),
    "entropy, separable": (
        entropy, lambda t: np.exp(t - t.max()) / np.exp(t - t.max()).sum(),
        {"total": 1.0, "separable": True}, (1e-6, 1.0, 30.0, 1e3, 1e6),
    ),
    "orthant": (
        lambda w: entropy(w) - jnp.sum(w), np.exp, {"start": 1.0, "separable": True},
        (1e-6, 1.0, 30.0),
    ),
    "two entropies": (
        two_entropies, lambda t: 1 / (1 + np.exp(np.clip(-t, -700, 700))),
        {"start": 0.5, "separable": True}, (1e-6, 1.0, 30.0, 1e3, 1e6),
    ),
    "barrier": (barrier, lambda t: -1 / t, {"start": 1.0}, (1e-3, 1.0, 1e3, 1e6)),
    "barrier, separable": (
        barrier, lambda t: -1 / t, {"start": 1.0, "separable": True}, (1e-3, 1.0, 1e3, 1e6)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HARD)
def test_decisions_are_right_for_tiny_and_for_huge_duals(name):
    function, inverse, options, sizes = HARD[name]
    to_primal = jax.jit(mirror_map(function, **options).to_primal)
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 3e-6)):
        for size in sizes:
            theta = (size * (-POSITIVE[0] if "barrier" in name else NORMAL[0])).astype(dtype)
            expected = inverse(theta.astype(float))
            error = np.abs(np.asarray(to_primal(jnp.asarray(theta)), float) - expected).max()
            assert error <= tolerance * np.abs(expected).max(), (dtype, size)


def test_fifty_ill_conditioned_coordinates():
    basis = np.linalg.qr(RNG.normal(size=(50, 50)))[0]
    matrix = jnp.asarray(basis @ np.diag(np.geomspace(1e-8, 1, 50)) @ basis.T)
    w = jnp.asarray(RNG.normal(size=50))
    seen = mirror_map(lambda w: w @ matrix @ w / 2).to_primal((matrix + matrix.T) @ w / 2)
    np.testing.assert_allclose(seen, w, atol=1e-7)  # eps times the condition number


def test_two_settings_are_one_program():
    traces = []

    def counted(p, w):
        traces.append(1)
        return powered(p, w)

    act = jax.jit(lambda mirror, theta: mirror.to_primal(theta))
    theta = jnp.asarray(NORMAL[0])
    act(mirror_map(Partial(counted, 1.0)), theta)
    before = len(traces)
    act(mirror_map(Partial(counted, 2.0)), theta)
    assert len(traces) == before


def test_a_batch_of_potentials_is_a_loop():
    theta, numbers = jnp.asarray(NORMAL[0]), jnp.array([0.5, 1.0, 3.0])
    act = jax.jit(lambda p: mirror_map(Partial(powered, p)).to_primal(theta))
    together = jax.vmap(act)(numbers)
    for p, w in zip(numbers, together, strict=True):
        np.testing.assert_allclose(jax.grad(powered, argnums=1)(p, w), theta, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mirror_map(), "mirror_map: give a potential, a conjugate or both."),
        (lambda: mirror_map(3.0), "mirror_map: `potential` must be a function, got float."),
        (
            lambda: mirror_map(conjugate=cosh, total=1.0),
            "mirror_map: `total` restricts a potential; a conjugate has it built in.",
        ),
    ],
)
def test_what_is_no_function_is_refused(call, message):
    with pytest.raises(TypeError) as refusal:
        call()
    assert str(refusal.value) == message
