"""Mirror maps derived from one function: a potential or a conjugate alone."""

import itertools
import math
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import entr, logsumexp
from jax.tree_util import Partial
from scipy import optimize

import olx
from olx import mirrors
from olx.convex import sets
from olx.mirrors import mirror_map

RNG = np.random.default_rng(11)
D = 4
NORMAL = RNG.normal(size=(5, D))
POSITIVE = RNG.gamma(1.0, size=(5, D)) + 0.05
SIMPLEX = RNG.dirichlet(np.ones(D), size=5)
UNIT = RNG.uniform(0.02, 0.98, size=(5, D))
MIX = RNG.normal(size=(D, D)) + 3 * np.eye(D)
PNORM = mirrors.pnorm(1.5)


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


def derived(name):
    """The duals of the points, their conjugate values and what they come back to."""
    function, _, options = DERIVED[name]
    return duals()[name], *solved(function, duals()[name], **options)


@cache
def duals():
    maps = {name: mirror_map(case.function, **case.options) for name, case in DERIVED.items()}
    points = {name: jnp.asarray(case.points) for name, case in DERIVED.items()}
    look = lambda points: {name: jax.vmap(maps[name].to_dual)(points[name]) for name in maps}
    return jax.tree.map(np.asarray, jax.jit(look)(points))


def solved(function, thetas, *, separable=False, start=0.0, total=None):
    """Conjugate values and decisions of the map derived from one of the functions here."""
    index = solved_alike(separable, total is not None).index(function)
    return [np.asarray(part) for part in decide(separable, index, start, total, thetas)]


@partial(jax.jit, static_argnums=0)
def decide(separable, index, start, total, thetas):
    # the index is a traced number, so all functions that are solved alike share one program
    functions = solved_alike(separable, total is not None)
    chosen = Partial(lambda index, w: jax.lax.switch(index, functions, w), index)
    mirror = mirror_map(chosen, separable=separable, start=start, total=total)
    return jax.lax.map(jax.value_and_grad(mirror.conjugate), thetas)


@cache
def solved_alike(separable, limited):
    """The functions that are solved by coordinates or together, with a total or without."""
    uses = [(case.function, case.options) for case in DERIVED.values()]
    uses += [(function, options) for function, _, options, _ in HARD.values()]
    uses += [(PAIRS[name][0], PAIRS[name][3] | {"separable": alone}) for name, alone in PAIRED]
    uses += [(PNORM.potential, {})]
    kind = lambda options: (options.get("separable", False), "total" in options)
    return list(dict.fromkeys(f for f, options in uses if kind(options) == (separable, limited)))


PAIRS = {
    "euclidean": (lambda w: jnp.vdot(w, w) / 2, mirrors.euclidean(), NORMAL, {}),
    "unnormalized_entropy": (
        lambda w: D - jnp.sum(entr(w)) - jnp.sum(w), mirrors.unnormalized_entropy(), NORMAL,
        {"start": 1.0},
    ),
    "negative_entropy": (
        lambda w: math.log(D) - jnp.sum(entr(w)), mirrors.negative_entropy(), 2 * NORMAL,
        {"total": 1.0},
    ),
    "hypentropy": (
        lambda w: jnp.sum(w * jnp.arcsinh(w / 0.5) - jnp.sqrt(w**2 + 0.25) + 0.5),
        mirrors.hypentropy(0.5), NORMAL, {},
    ),
    "binary_entropy": (
        lambda w: D * math.log(2) + two_entropies(w), mirrors.binary_entropy(), 2 * NORMAL,
        {"start": 0.5},
    ),
    "log_barrier": (barrier, mirrors.log_barrier(), -POSITIVE, {"start": 1.0}),
    "log_barrier_simplex": (
        lambda w: barrier(D * w), mirrors.log_barrier_simplex(), 5 * NORMAL, {"total": 1.0}
    ),
    "tsallis": (
        lambda w: 2 * (math.sqrt(D) - jnp.sum(jnp.sqrt(w))), mirrors.tsallis(0.5), NORMAL,
        {"total": 1.0},
    ),
}  # fmt: skip


COUPLED = ("euclidean", "unnormalized_entropy", "negative_entropy", "hypentropy")
PAIRED = [*((name, True) for name in PAIRS), *((name, False) for name in COUPLED)]


@pytest.mark.parametrize(("name", "separable"), PAIRED)
def test_a_derived_map_is_the_closed_form(name, separable):
    potential, _, thetas, options = PAIRS[name]
    for dtype, rtol, atol in ((np.float64, 1e-12, 1e-12), (np.float32, 1e-6, 1e-6)):
        mine = solved(potential, thetas.astype(dtype), separable=separable, **options)
        for part, other in zip(mine, closed_forms(dtype)[name], strict=True):
            assert part.dtype == dtype
            size = 1 + np.abs(other).max()
            np.testing.assert_allclose(part, other, rtol=3 * rtol, atol=atol * size)


@cache
def closed_forms(dtype):
    """Conjugate values and decisions of the closed forms at their duals."""
    thetas = {name: jnp.asarray(pair[2], dtype) for name, pair in PAIRS.items()}
    each = lambda name: jax.vmap(jax.value_and_grad(PAIRS[name][1].conjugate))(thetas[name])
    return jax.tree.map(np.asarray, jax.jit(lambda: {name: each(name) for name in PAIRS})())


CONJUGATES = {
    "euclidean": (mirrors.euclidean(), NORMAL),
    "unnormalized_entropy": (mirrors.unnormalized_entropy(), POSITIVE),
    "hypentropy": (mirrors.hypentropy(0.5), NORMAL),
    "binary_entropy": (mirrors.binary_entropy(), UNIT),
    "pnorm": (PNORM, NORMAL),
}
FROM_CONJUGATES = {
    True: ("euclidean", "unnormalized_entropy", "hypentropy", "binary_entropy"),
    False: ("hypentropy", "binary_entropy", "pnorm"),
}


@pytest.mark.parametrize(
    ("name", "separable"),
    [(name, kind) for kind, names in FROM_CONJUGATES.items() for name in names],
)
def test_a_map_from_its_conjugate_is_the_closed_form(name, separable):
    closed, points = CONJUGATES[name]
    mine = returned(separable, closed.conjugate, points)
    for part, other in zip(mine, closed_potentials()[name], strict=True):
        np.testing.assert_allclose(part, other, rtol=1e-11, atol=1e-12)


def returned(separable, conjugate, points):
    """Potential values and duals of the map derived from one of the conjugates here."""
    index = given_conjugates(separable).index(conjugate)
    return [np.asarray(part) for part in undecide(separable, index, points)]


@partial(jax.jit, static_argnums=0)
def undecide(separable, index, points):
    chosen = Partial(lambda i, theta: jax.lax.switch(i, given_conjugates(separable), theta), index)
    mirror = mirror_map(conjugate=chosen, separable=separable)
    return jax.lax.map(jax.value_and_grad(mirror.potential), points)


def given_conjugates(separable):
    closed = [CONJUGATES[name][0].conjugate for name in FROM_CONJUGATES[separable]]
    return [*closed, soft_plus if separable else logsumexp]


@cache
def closed_potentials():
    each = lambda closed, points: jax.vmap(jax.value_and_grad(closed.potential))(points)
    all_of = lambda: {
        name: each(pair[0], jnp.asarray(pair[1])) for name, pair in CONJUGATES.items()
    }
    return jax.tree.map(np.asarray, jax.jit(all_of)())


def test_pnorm_is_derived_from_its_potential():
    decisions = jax.jit(jax.vmap(PNORM.to_primal))(NORMAL)
    np.testing.assert_allclose(solved(PNORM.potential, NORMAL)[1], decisions, rtol=1e-12)


def test_softmax_comes_from_logsumexp_alone():
    mirror = mirror_map(conjugate=logsumexp)
    decision = jax.jit(mirror.to_primal)(np.log(SIMPLEX[0]))
    np.testing.assert_allclose(decision, SIMPLEX[0], rtol=1e-12)
    values, _ = returned(False, logsumexp, SIMPLEX)
    np.testing.assert_allclose(values, np.sum(SIMPLEX * np.log(SIMPLEX), axis=1), rtol=1e-12)


def test_sigmoid_comes_from_softplus_alone():
    vertex = np.array([[0.0, 1.0, 0.0, 1.0]])
    values, _ = returned(True, soft_plus, np.concatenate([UNIT[:4], vertex]))
    expected = np.sum(UNIT * np.log(UNIT) + (1 - UNIT) * np.log(1 - UNIT), axis=1)
    np.testing.assert_allclose(values[:4], expected[:4], rtol=1e-12)
    np.testing.assert_allclose(values[4], 0.0, atol=1e-14)


def test_a_potential_of_matrices():
    moved = mirror_map(lambda w: trace_log(w + jnp.eye(3)))
    w = np.array([[0.5, 0.1, 0.0], [0.1, 0.8, 0.2], [0.0, 0.2, 0.3]])
    back, dual = jax.jit(lambda w: (moved.project(w), moved.to_dual(w)))(w)
    np.testing.assert_allclose(back, w, atol=1e-12)
    np.testing.assert_allclose(dual, w + np.eye(3) - np.linalg.inv(w + np.eye(3)), atol=1e-12)


def test_both_functions_of_symmetric_matrices_are_the_map_of_its_closed_form():
    log_det = lambda w: jnp.linalg.slogdet(w)[1]
    given = mirror_map(lambda w: -log_det(w), lambda theta: -log_det(-theta) - len(theta))
    theta = -np.array([[2.0, 0.5], [0.5, 1.0]])
    np.testing.assert_allclose(given.to_primal(theta), -np.linalg.inv(theta), atol=1e-12)


@pytest.mark.parametrize("separable", [False, True])
def test_exact_zeros_have_exact_decisions(separable):
    thetas = np.tile([0.0, 2.0, 0.0, -1.0], (5, 1))
    _, seen = solved(bent, thetas, separable=separable)
    np.testing.assert_allclose(seen, np.tile([0.0, 4.0, 0.0, -1.0], (5, 1)), rtol=1e-12)


def test_trees_are_one_long_vector():
    function = lambda w: cosh(w["a"]) + cosh(w["b"]) + 0.1 * jnp.sum(w["a"]) * jnp.sum(w["b"])
    w = {"a": np.array([0.3, -1.0]), "b": np.array([[2.0], [0.1], [0.0]])}
    back = jax.jit(mirror_map(function).project)(w)
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
    theta, p, h = NORMAL[0], 1.3, 1e-5
    value = lambda p, theta: mirror_map(Partial(function, p), **options).conjugate(theta)

    def slopes(p, theta):
        at, slope = jax.value_and_grad(value, (0, 1))(p, theta)
        return slope, (at, slope)

    moves = np.concatenate([np.eye(1 + D), -np.eye(1 + D)], axis=1).reshape(-1, 1 + D) * h
    places = np.concatenate([np.zeros((1, 1 + D)), moves]) + np.array([p, *theta])
    look = jax.jit(jax.vmap(jax.jacfwd(slopes, (0, 1), has_aux=True)))
    bends, (values, firsts) = look(places[:, 0], places[:, 1:])
    seen = jax.tree.map(np.asarray, (values, firsts, bends))
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
    thetas, totals = NORMAL[:2], np.array([1.7, 0.4])
    slopes, bends = jax.jit(jax.vmap(jax.value_and_grad(jax.grad(value))))(totals, thetas)
    # sup of <theta, w> - sum w log w over sum w = s is s (log sum e^theta - log s)
    expected = np.log(np.exp(thetas).sum(axis=1)) - np.log(totals) - 1
    np.testing.assert_allclose(slopes, expected, rtol=1e-10)
    np.testing.assert_allclose(bends, -1 / totals, rtol=1e-10)


def test_a_number_of_the_domain_is_differentiable():
    value = lambda radius: mirrors.euclidean(sets.ball(radius)).conjugate(jnp.array([3.0, 4.0]))
    look = jax.jit(jax.vmap(jax.value_and_grad(jax.grad(value))))
    slopes, bends = look(np.array([2.0, 9.0]))
    np.testing.assert_allclose(slopes[0], 5.0 - 2.0, rtol=1e-14)
    np.testing.assert_allclose(bends[0], -1.0, rtol=1e-14)
    np.testing.assert_array_equal(slopes[1], 0.0)


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
    sizes = np.resize(sizes, 5)  # some of them twice, for one shape
    duals = np.outer(sizes, -POSITIVE[0] if "barrier" in name else NORMAL[0])
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 3e-6)):
        thetas = duals.astype(dtype)
        _, decisions = solved(function, thetas, **options)
        for size, theta, seen in zip(sizes, thetas.astype(float), decisions, strict=True):
            expected = inverse(theta)
            error = np.abs(seen.astype(float) - expected).max()
            assert error <= tolerance * np.abs(expected).max(), (dtype, size)


def test_fifty_ill_conditioned_coordinates():
    basis = np.linalg.qr(RNG.normal(size=(50, 50)))[0]
    matrix = basis @ np.diag(np.geomspace(1e-8, 1, 50)) @ basis.T
    w = RNG.normal(size=50)
    decide = jax.jit(mirror_map(lambda w: w @ matrix @ w / 2).to_primal)
    seen = decide((matrix + matrix.T) @ w / 2)
    np.testing.assert_allclose(seen, w, atol=1e-7)  # eps times the condition number


def test_two_settings_are_one_program():
    traces = itertools.count()  # not a list: a changed list is a new program

    def counted(p, w):
        next(traces)
        return powered(p, w)

    act = jax.jit(lambda mirror, theta: mirror.to_primal(theta))
    theta = jnp.asarray(NORMAL[0])
    act(mirror_map(Partial(counted, 1.0)), theta)
    before = next(traces)
    act(mirror_map(Partial(counted, 2.0)), theta)
    assert next(traces) == before + 1 > 1


def test_a_batch_of_potentials_is_a_loop():
    theta, numbers = jnp.asarray(NORMAL[0]), jnp.array([0.5, 1.0, 3.0])
    act = jax.jit(lambda p: mirror_map(Partial(powered, p)).to_primal(theta))
    together = jax.vmap(act)(numbers)
    slopes = jax.jit(jax.vmap(jax.grad(powered, argnums=1)))(numbers, together)
    for p, slope in zip(numbers, slopes, strict=True):
        np.testing.assert_allclose(slope, theta, atol=1e-12, err_msg=f"p = {p}")


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


SHIFT = 4 * np.eye(4)
FIXED = {  # functions of matrices of one shape: no other shape shows what is wrong with them
    "log-determinant": lambda w: -jnp.linalg.slogdet(w + SHIFT)[1],
    "entropy of eigenvalues": lambda w: -jnp.sum(entr(jnp.linalg.eigvalsh(w + SHIFT))),
}


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize("domain", [None, sets.ball(1.0)])
def test_a_function_of_symmetric_matrices_of_one_shape_is_refused_where_it_starts(name, domain):
    learner = olx.omd(0.1, mirror_map(FIXED[name], domain=domain))
    rounds = olx.Rounds(None, jnp.ones((3, 4, 4)))
    says = r"run: omd: the potential of the mirror map must be strictly convex around `params`"
    with pytest.raises(ValueError, match=rf"(?s){says}.*use `olx.mirrors.log_det`"):
        olx.run(learner, olx.losses.linear_loss, rounds, jnp.zeros((4, 4)))


def test_a_convex_function_of_one_shape_starts():
    bowl = lambda w: jnp.sum((w["a"] + SHIFT) ** 2) + jnp.sum(jnp.cosh(w["b"]))
    start = {"a": jnp.zeros((4, 4)), "b": jnp.zeros(2)}
    rounds = olx.Rounds(None, jax.tree.map(lambda leaf: jnp.ones((3, *leaf.shape)), start))
    learner = olx.omd(0.1, mirror_map(bowl))
    run = olx.run(learner, olx.losses.linear_loss, rounds, start)
    found = olx.decision(learner, run.state, None)
    np.testing.assert_allclose(found["a"], -0.15, atol=1e-5)  # theta is 2 (a + shift) - 0.3
    np.testing.assert_allclose(found["b"], np.arcsinh(-0.3), atol=1e-5)
