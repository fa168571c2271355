"""Every potential against its formulas, written out again in NumPy."""

import dataclasses
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial
from scipy import optimize

from olx import mirrors
from olx.convex import sets

D = 5
RNG = np.random.default_rng(7)
DUALS = np.concatenate([RNG.normal(size=(6, D)) * 2, RNG.normal(size=(2, D)) * 0.1, np.eye(1, D)])
STEPS = RNG.normal(size=DUALS.shape)
HUGE = np.outer([1e4, -1e4, 1e6, -1e6, 1e-30], DUALS[0])
WEIGHTS = np.array([1.0, 2.0, 0.0, 0.5, 1.5])
PRIOR = np.array([0.1, 0.2, 0.3, 0.15, 0.25])


class Case(NamedTuple):
    make: Callable[..., Any]  # numbers -> MirrorMap
    numbers: tuple  # at which the map is tested
    others: tuple  # of the same length, for the batch
    potential: Callable  # (numbers, w)
    primal: Callable  # (numbers, theta): the maximizer
    dual: Callable  # (numbers, w): a gradient of the potential
    points: Callable  # (numbers, rng): one in the domain
    open: bool = True  # whether to_dual inverts to_primal
    fold: Callable = lambda theta: theta  # brings a dual to the domain of the conjugate


def bisect(excess, low, high):
    return optimize.brentq(excess, low, high, xtol=1e-15, rtol=1e-15, maxiter=500)


def half(n, w):
    return 0.5 * w @ w


def itself(n, w):
    return w


def ball(n, theta):
    return theta * min(1.0, n[0] / max(np.linalg.norm(theta), 1e-300))


def simplex(n, theta):
    mu = np.sort(theta)[::-1]
    sums = (np.cumsum(mu) - n[0]) / np.arange(1, D + 1)
    return np.maximum(theta - sums[np.nonzero(mu - sums > 0)[0].max()], 0)


def l1_ball(n, theta):
    soft = lambda t: np.sign(theta) * np.maximum(np.abs(theta) - t, 0)
    if np.abs(theta).sum() <= n[0]:
        return theta
    return soft(bisect(lambda t: np.abs(soft(t)).sum() - n[0], 0.0, np.abs(theta).max()))


def entropy(n, w, prior=None):
    prior = np.full(D, 1 / D) if prior is None else prior
    terms = [a * np.log(a / p) if a > 0 else 0.0 for a, p in zip(w, prior, strict=True)]
    return n[0] * np.sum(terms)


def softmax(n, theta, prior=None):
    prior = np.full(D, 1 / D) if prior is None else prior
    u = prior * np.exp((theta - theta.max()) / n[0])
    return u / u.sum()


def floored(n, theta):
    floor, scale = n
    u = np.exp((theta - theta.max()) / scale)
    order = np.argsort(u)
    w, held, z = np.full(D, floor), 0, u.sum()
    while u[order[held]] / z < floor:
        held += 1
        z = u[order[held:]].sum() / (1 - held * floor)
    w[order[held:]] = u[order[held:]] / z
    return w


def q_norm(n, w, a=None):
    a = np.ones(D) if a is None else a
    return (a @ np.abs(w) ** n[0]) ** (2 / n[0]) / (2 * (n[0] - 1))


def q_norm_dual(n, w, a=None):
    a = np.ones(D) if a is None else a
    q = n[0]
    size = (a @ np.abs(w) ** q) ** (1 / q)
    return a * np.sign(w) * np.abs(w) ** (q - 1) * size ** (2 - q) / (q - 1)


def q_norm_primal(n, theta, a=None):
    q = n[0]
    p = q / (q - 1)
    b = np.ones(D) if a is None else np.where(a > 0, np.where(a > 0, a, 1.0) ** (1 - p), 0.0)
    size = (b @ np.abs(theta) ** p) ** (1 / p)
    if size == 0:
        return np.zeros(D)
    return b * np.sign(theta) * np.abs(theta) ** (p - 1) * size ** (2 - p) / (p - 1)


def binary(n, w):
    return n[0] * np.sum(w * np.log(w) + (1 - w) * np.log(1 - w) + np.log(2))


def hyperbolic(n, w):
    return np.sum(w * np.arcsinh(w / n[0]) - np.sqrt(w**2 + n[0] ** 2) + n[0])


def barrier_simplex(n, theta):
    weights = lambda t: n[0] / (theta.max() + t - theta)
    return weights(bisect(lambda t: weights(t).sum() - 1, n[0] / 2, 2 * D * n[0]))


def tsallis(n, w):
    alpha, scale = n
    return scale / (1 - alpha) * (D ** (1 - alpha) - 1 + np.sum(w - w**alpha))


def tsallis_primal(n, theta):
    alpha, scale = n
    unit = scale * alpha / (1 - alpha)
    weights = lambda t: (unit / (theta.max() + t - theta)) ** (1 / (1 - alpha))
    return weights(bisect(lambda t: weights(t).sum() - 1, unit / 2, 2 * unit * D ** (1 - alpha)))


def anywhere(n, rng):
    return rng.normal(size=D) * 2


def probabilities(n, rng):
    return rng.dirichlet(np.ones(D))


def positive(n, rng):
    return rng.gamma(1.0, size=D) + 0.01


def on(make):
    return lambda *numbers: mirrors.euclidean(make(*numbers))


CASES = {
    "euclidean": Case(mirrors.euclidean, (), (), half, itself, itself, anywhere),
    "ball": Case(
        on(sets.ball), (1.3,), (3.0,), half, ball, itself,
        lambda n, rng: ball(n, rng.normal(size=D)), open=False,
    ),
    "box": Case(
        on(sets.box), (-0.5, 0.7), (-2.0, 0.1), half,
        lambda n, theta: np.clip(theta, *n), itself,
        lambda n, rng: rng.uniform(*n, size=D), open=False,
    ),
    "simplex": Case(
        on(sets.simplex), (1.5,), (0.4,), half, simplex, itself,
        lambda n, rng: n[0] * rng.dirichlet(np.ones(D)), open=False,
    ),
    "l1_ball": Case(
        on(sets.l1_ball), (1.5,), (4.0,), half, l1_ball, itself,
        lambda n, rng: l1_ball(n, rng.normal(size=D)), open=False,
    ),
    "orthant": Case(
        on(lambda: sets.projected(lambda w: jnp.maximum(w, 0.0))), (), (), half,
        lambda n, theta: np.maximum(theta, 0), itself, positive, open=False,
    ),
    "negative_entropy": Case(
        mirrors.negative_entropy, (0.8,), (3.0,), entropy, softmax,
        lambda n, w: n[0] * (np.log(w * D) + 1), probabilities, open=False,
    ),
    "negative_entropy_to_prior": Case(
        lambda s: mirrors.negative_entropy(s, jnp.asarray(PRIOR)), (0.8,), (3.0,),
        lambda n, w: entropy(n, w, PRIOR), lambda n, theta: softmax(n, theta, PRIOR),
        lambda n, w: n[0] * (np.log(w / PRIOR) + 1), probabilities, open=False,
    ),
    "floored_entropy": Case(
        mirrors.floored_entropy, (0.06, 0.8), (0.1, 2.0), lambda n, w: entropy(n[1:], w), floored,
        lambda n, w: n[1] * (np.log(w * D) + 1),
        lambda n, rng: n[0] + (1 - D * n[0]) * rng.dirichlet(np.ones(D)), open=False,
    ),
    "unnormalized_entropy": Case(
        mirrors.unnormalized_entropy, (0.8,), (2.0,),
        lambda n, w: n[0] * np.sum(w * np.log(w) - w + 1),
        lambda n, theta: np.exp(theta / n[0]), lambda n, w: n[0] * np.log(w), positive,
    ),
    "unnormalized_entropy_to_prior": Case(
        lambda s: mirrors.unnormalized_entropy(s, jnp.asarray(PRIOR)), (0.8,), (2.0,),
        lambda n, w: n[0] * np.sum(w * np.log(w / PRIOR) - w + PRIOR),
        lambda n, theta: PRIOR * np.exp(theta / n[0]), lambda n, w: n[0] * np.log(w / PRIOR),
        positive,
    ),
    "pnorm": Case(
        mirrors.pnorm, (1.4,), (1.1,), q_norm, q_norm_primal, q_norm_dual, anywhere
    ),
    "pnorm_2": Case(mirrors.pnorm, (2.0,), (1.9,), q_norm, q_norm_primal, q_norm_dual, anywhere),
    "weighted_pnorm": Case(
        lambda q: mirrors.weighted_pnorm(q, jnp.asarray(WEIGHTS)), (1.4,), (1.7,),
        lambda n, w: q_norm(n, w, WEIGHTS), lambda n, theta: q_norm_primal(n, theta, WEIGHTS),
        lambda n, w: q_norm_dual(n, w, WEIGHTS),
        lambda n, rng: rng.normal(size=D) * (WEIGHTS > 0), open=False,
    ),
    "binary_entropy": Case(
        mirrors.binary_entropy, (0.6,), (2.0,), binary,
        lambda n, theta: 1 / (1 + np.exp(-theta / n[0])),
        lambda n, w: n[0] * np.log(w / (1 - w)), lambda n, rng: rng.uniform(0.01, 0.99, D),
    ),
    "hypentropy": Case(
        mirrors.hypentropy, (0.3,), (2.0,), hyperbolic, lambda n, theta: n[0] * np.sinh(theta),
        lambda n, w: np.arcsinh(w / n[0]), anywhere,
    ),
    "log_barrier": Case(
        mirrors.log_barrier, (0.8,), (2.0,), lambda n, w: -n[0] * np.sum(np.log(w)),
        lambda n, theta: -n[0] / theta, lambda n, w: -n[0] / w, positive,
        fold=lambda theta: -np.abs(theta) - 0.1,
    ),
    "log_barrier_simplex": Case(
        mirrors.log_barrier_simplex, (0.8,), (0.01,), lambda n, w: -n[0] * np.sum(np.log(D * w)),
        barrier_simplex, lambda n, w: -n[0] / w, probabilities, open=False,
    ),
    "tsallis": Case(
        mirrors.tsallis, (0.5, 0.9), (0.3, 2.0), tsallis, tsallis_primal,
        lambda n, w: n[1] * (1 - n[0] * w ** (n[0] - 1)) / (1 - n[0]), probabilities, open=False,
    ),
    "tsallis_near_1": Case(
        mirrors.tsallis, (0.95, 0.9), (0.05, 2.0), tsallis, tsallis_primal,
        lambda n, w: n[1] * (1 - n[0] * w ** (n[0] - 1)) / (1 - n[0]), probabilities, open=False,
    ),
}  # fmt: skip
SEPARABLE = {
    "euclidean", "box", "unnormalized_entropy", "unnormalized_entropy_to_prior",
    "binary_entropy", "hypentropy", "log_barrier",
}  # fmt: skip
WITHOUT_NORM = {
    "unnormalized_entropy", "unnormalized_entropy_to_prior", "hypentropy", "log_barrier",
}  # fmt: skip

every = pytest.mark.parametrize("name", CASES)
numbered = pytest.mark.parametrize("name", [name for name in CASES if CASES[name].numbers])
normed = pytest.mark.parametrize("name", [name for name in CASES if name not in WITHOUT_NORM])


@every
def test_potential_and_its_gradient_are_the_formulas(name):
    case, points, seen = CASES[name], points_of(name), seen_of(name)
    close(seen["potential"], [case.potential(case.numbers, w) for w in points], 1e-12)
    close(seen["dual"], [case.dual(case.numbers, w) for w in points], 1e-12)


@every
def test_conjugate_and_its_gradient_are_the_formulas(name):
    seen = seen_of(name)
    close(
        seen["primal"], [CASES[name].primal(CASES[name].numbers, t) for t in duals_of(name)], 1e-12
    )
    close(seen["conjugate"], [conjugate(name, theta) for theta in duals_of(name)], 1e-12)


@every
def test_float32_stays_float32_and_close(name):
    case, seen = CASES[name], seen_of(name, jnp.float32)
    assert all(values.dtype in (np.float32, bool) for values in seen.values())
    points = points_of(name).astype(np.float32).astype(float)
    duals = duals_of(name).astype(np.float32).astype(float)
    close(seen["potential"], [case.potential(case.numbers, w) for w in points], 2e-6)
    close(seen["primal"], [case.primal(case.numbers, theta) for theta in duals], 2e-6)
    close(seen["conjugate"], [conjugate(name, theta) for theta in duals], 2e-6)


@every
def test_conjugate_is_an_upper_bound_attained_in_the_domain(name):
    case, seen = CASES[name], seen_of(name)
    rng = np.random.default_rng(0)
    points = np.array([case.points(case.numbers, rng) for _ in range(300)])
    values = duals_of(name) @ points.T - [case.potential(case.numbers, w) for w in points]
    assert np.all(values <= seen["conjugate"][:, None] + 1e-10)
    size = 1 + np.abs(seen["conjugate"]) + np.abs(np.sum(duals_of(name) * seen["primal"], axis=1))
    assert np.all(np.abs(seen["gap"]) <= 1e-13 * size)
    assert np.all(seen["contains"])


@every
def test_gap_is_never_negative_and_zero_at_dual_pairs(name):
    seen = seen_of(name)
    assert np.all(seen["mixed_gap"] >= -1e-12)
    assert np.max(seen["mixed_gap"]) > 1e-3
    np.testing.assert_allclose(seen["closed_gap"], 0, atol=1e-11)


@every
def test_to_primal_inverts_to_dual_in_the_domain(name):
    np.testing.assert_allclose(seen_of(name)["round_trip"], points_of(name), rtol=1e-10, atol=1e-10)


@every
def test_retraction_is_the_dual_of_the_decision(name):
    case, seen = CASES[name], seen_of(name)
    expected = [case.dual(case.numbers, w) for w in seen["primal"]]
    close(seen["retract"], expected, 1e-10)
    if case.open:
        close(seen["retract"], duals_of(name), 1e-10)


@every
def test_second_derivative_is_the_slope_of_the_decision(name):
    case, step = CASES[name], 1e-6
    for hessian, theta in zip(seen_of(name)["hessian"], duals_of(name), strict=True):
        if np.any(theta == 0) and name != "pnorm_2":
            continue  # at a kink of some maps
        slopes = [
            case.primal(case.numbers, theta + step * e)
            - case.primal(case.numbers, theta - step * e)
            for e in np.eye(D)
        ]
        expected = np.stack(slopes, axis=1) / (2 * step)
        np.testing.assert_allclose(
            hessian, expected, rtol=2e-5, atol=2e-8 * (1 + np.abs(expected).max())
        )


@numbered
def test_a_batch_of_numbers_is_a_loop(name):
    case = CASES[name]
    for numbers, seen in zip((case.numbers, case.others), grid_of(name)["primal"], strict=True):
        close(seen[:-1], [case.primal(numbers, theta) for theta in duals_of(name)], 1e-12)


@numbered
def test_gradient_in_the_numbers_is_that_of_the_formula(name):
    case = CASES[name]
    for row, numbers in enumerate((case.numbers, case.others)):
        for k, slopes in enumerate(grid_of(name)["slope"]):
            up, down = list(numbers), list(numbers)
            up[k], down[k] = up[k] + 1e-6 * (up[k] != 2.0 or name != "pnorm_2"), down[k] - 1e-6
            both = [[conjugate(name, t, tuple(n)) for t in duals_of(name)] for n in (up, down)]
            expected = np.subtract(*both) / (up[k] - down[k])
            rough = 1e-6 if up[k] != numbers[k] else 1e-4  # one-sided at the end of the range
            np.testing.assert_allclose(
                slopes[row, :-1], expected, rtol=rough, atol=rough * np.abs(expected).max()
            )


@numbered
def test_gradients_in_the_numbers_are_finite_at_zero(name):
    grid = grid_of(name)
    assert all(np.all(np.isfinite(slope)) for slope in grid["slope"] + grid["through_primal"])


@normed
def test_smoothness_of_the_conjugate(name):
    seen = seen_of(name)
    assert np.all(seen["moved"] <= seen["step_norm"] / seen["modulus"] + 1e-12)
    assert np.all(seen["drift"] >= -1e-12)
    assert np.all(seen["drift"] <= seen["step_norm"] ** 2 / (2 * seen["modulus"]) + 1e-12)


@normed
def test_norms_are_dual(name):
    seen, points = seen_of(name), points_of(name)
    sizes = np.outer(seen["dual_norm"], seen["difference_norm"])
    differences = np.roll(points, -1, axis=0) - points
    assert np.all(duals_of(name) @ differences.T <= sizes + 1e-12)
    np.testing.assert_allclose(seen["best_norm"], 1.0, rtol=1e-12)
    np.testing.assert_allclose(seen["best_value"], seen["dual_norm"], rtol=1e-12)


@every
def test_facts_are_stated(name):
    mirror = CASES[name].make(*CASES[name].numbers)
    assert mirror.separable == (name in SEPARABLE)
    assert (mirror.norm is None) == (name in WITHOUT_NORM) == (mirror.modulus is None)


@every
def test_separable_means_coordinate_by_coordinate(name):
    mirror, hessians = CASES[name], seen_of(name)["hessian"]
    cross = np.abs(hessians * (1 - np.eye(D))).max()
    assert (cross == 0) == (name in SEPARABLE | {"orthant", "pnorm_2"}), mirror


@every
def test_huge_duals_give_no_nan(name):
    w = huge_of(name)["primal"]
    assert not np.any(np.isnan(w))
    if np.all(np.isfinite(w)):
        assert np.all(huge_of(name)["contains"])


DIVERGENCES = {
    "euclidean": lambda u, w: 0.5 * np.sum((u - w) ** 2),
    "negative_entropy": lambda u, w: 0.8 * np.sum(u * np.log(u / w)),
    "unnormalized_entropy": lambda u, w: 0.8 * np.sum(u * np.log(u / w) - u + w),
    "log_barrier": lambda u, w: 0.8 * np.sum(u / w - np.log(u / w) - 1),
    "binary_entropy": lambda u, w: (
        0.6 * np.sum(u * np.log(u / w) + (1 - u) * np.log((1 - u) / (1 - w)))
    ),
}


@pytest.mark.parametrize("name", DIVERGENCES)
def test_bregman_divergence_is_the_formula(name):
    mirror = CASES[name].make(*CASES[name].numbers)
    u, w = points_of(name)[:2]
    seen = jax.jit(mirror.bregman)(u, w)
    np.testing.assert_allclose(seen, DIVERGENCES[name](u, w), rtol=1e-12)


@pytest.mark.parametrize(
    ("mirror", "value"),
    [
        (mirrors.negative_entropy(), np.log(3)),
        (mirrors.floored_entropy(0.0), np.log(3)),
        (mirrors.tsallis(0.5), 2 * (np.sqrt(3) - 1)),
        (mirrors.unnormalized_entropy(), 2.0),
        (mirrors.binary_entropy(), 3 * np.log(2)),
        (mirrors.euclidean(sets.simplex()), 0.5),
        (mirrors.log_barrier_simplex(), np.inf),
    ],
)
def test_a_vertex_is_a_legal_comparator(mirror, value):
    seen = jax.jit(mirror.potential)(np.array([0.0, 1.0, 0.0]))
    np.testing.assert_allclose(seen, value, rtol=1e-14)


def test_a_floor_of_zero_is_the_softmax():
    seen, _ = decide(mirrors.floored_entropy(0.0, 0.8), DUALS[0])
    np.testing.assert_allclose(seen, softmax((0.8,), DUALS[0]), rtol=1e-13)


def test_a_floor_no_point_can_keep_gives_nan():
    w = jax.jit(lambda floor: mirrors.floored_entropy(floor).to_primal(jnp.zeros(4)))(0.3)
    assert np.all(np.isnan(w))


def test_tsallis_of_order_one_is_the_entropy():
    near, _ = decide(mirrors.tsallis(1 - 1e-9, 0.8), DUALS[0])
    np.testing.assert_allclose(near, softmax((0.8,), DUALS[0]), rtol=1e-7)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("make", [mirrors.log_barrier_simplex, lambda s: mirrors.tsallis(0.5, s)])
def test_a_thousand_weights_add_up_to_one(make, scale, dtype):
    theta = jnp.asarray(np.random.default_rng(1).normal(size=1000) * 1e4, dtype)
    w, inside = decide(make(scale), theta)
    assert inside
    assert np.all(w > 0)


def test_pnorm_at_zero_has_the_curvature_it_has_along_each_coordinate():
    zero = np.zeros(3)

    @jax.jit
    def look(q):
        functions = mirrors.pnorm(q).potential, mirrors.pnorm(q).conjugate
        return [[of(f)(zero) for f in functions] for of in (jax.grad, jax.hessian)]

    for q in (1.4, 2.0):
        slopes, curvatures = look(q)
        np.testing.assert_array_equal(slopes, [zero, zero])
        np.testing.assert_allclose(curvatures, [np.eye(3) / (q - 1), np.eye(3) * (q - 1)], 1e-14)


@pytest.mark.parametrize("size", [1e-100, 1e150])
def test_pnorm_keeps_its_digits_at_any_size(size):
    theta = np.array([3.0, -2.0, 1.0, 0.0, 1e-3])
    seen, _ = decide(mirrors.pnorm(1.05), size * theta)
    np.testing.assert_allclose(seen, size * q_norm_primal((1.05,), theta), rtol=1e-12)


def test_a_coordinate_of_weight_zero_is_absent():
    @jax.jit
    def look(weights, theta):
        mirror = mirrors.weighted_pnorm(1.5, weights)
        w = mirror.to_primal(theta)
        through = lambda a: jnp.sum(mirrors.weighted_pnorm(1.5, a).to_primal(w) ** 2)
        return w, mirror.contains(w), mirror.contains(jnp.ones(3)), jax.grad(through)(weights)

    w, inside, ones_inside, slopes = look(np.array([1.0, 0.0, 2.0]), np.array([1.0, 100.0, -1.0]))
    assert w[1] == 0
    assert inside
    assert not ones_inside
    assert np.all(np.isfinite(slopes))


@pytest.mark.parametrize("name", ["box", "negative_entropy", "pnorm", "tsallis"])
def test_a_tree_is_its_flat_vector(name):
    case = CASES[name]
    split = lambda v: {"a": v[:2], "b": (v[2:].reshape(3, 1),)}
    joined, inside = decide(case.make(*case.numbers), split(DUALS[0]))
    flat = np.concatenate([joined["a"], joined["b"][0][:, 0]])
    np.testing.assert_allclose(flat, case.primal(case.numbers, DUALS[0]), rtol=1e-12)
    assert inside


def test_a_box_may_differ_by_coordinate():
    low, high = {"a": jnp.array([0.0, -1.0]), "b": jnp.array(2.0)}, 3.0
    w, _ = decide(
        mirrors.euclidean(sets.box(low, high)), {"a": np.array([-5.0, 5.0]), "b": np.array(0.0)}
    )
    np.testing.assert_array_equal(w["a"], [0.0, 3.0])
    assert w["b"] == 2.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sets.ball(0.0), "ball: `radius` must be positive, got 0.0."),
        (lambda: sets.box(1.0, 0.5), "box: `low` must not exceed `high`, got 1.0 and 0.5."),
        (lambda: sets.simplex(-1.0), "simplex: `total` must be positive, got -1.0."),
        (lambda: sets.l1_ball(-1.0), "l1_ball: `radius` must be positive, got -1.0."),
        (
            lambda: mirrors.negative_entropy(0.0),
            "negative_entropy: `scale` must be positive, got 0.0.",
        ),
        (
            lambda: mirrors.unnormalized_entropy(1.0, np.array([1.0, -2.0])),
            "unnormalized_entropy: `prior` must be positive, got -2.0.",
        ),
        (
            lambda: mirrors.floored_entropy(-0.1),
            "floored_entropy: `floor` must lie in [0, 1], got -0.1.",
        ),
        (lambda: mirrors.pnorm(1.0), "pnorm: `q` must lie in (1, 2], got 1.0."),
        (
            lambda: mirrors.weighted_pnorm(1.5, np.array([1.0, -1.0])),
            "weighted_pnorm: `weights` must be non-negative, got -1.0.",
        ),
        (
            lambda: mirrors.binary_entropy(-1.0),
            "binary_entropy: `scale` must be positive, got -1.0.",
        ),
        (lambda: mirrors.hypentropy(0.0), "hypentropy: `beta` must be positive, got 0.0."),
        (lambda: mirrors.log_barrier(-1.0), "log_barrier: `scale` must be positive, got -1.0."),
        (lambda: mirrors.tsallis(0.0), "tsallis: `alpha` must be positive, got 0.0."),
        (lambda: mirrors.tsallis(1.5), "tsallis: `1 - alpha` must be positive, got -0.5."),
    ],
)
def test_a_bad_number_is_refused(call, message):
    with pytest.raises(ValueError, match="must") as refusal:
        call()
    assert str(refusal.value) == message


def test_a_bad_point_of_a_grid_is_nan_at_its_index():
    scales = jnp.array([1.0, -1.0])
    decide = lambda scale: mirrors.tsallis(0.5, scale).to_primal(jnp.zeros(3))
    grid = jax.jit(jax.vmap(decide))(scales)
    np.testing.assert_array_equal(np.isnan(grid).all(axis=1), [False, True])


@cache
def points_of(name):
    rng = np.random.default_rng(3)
    return np.array([CASES[name].points(CASES[name].numbers, rng) for _ in range(len(DUALS))])


def duals_of(name):
    return CASES[name].fold(DUALS)


def conjugate(name, theta, numbers=None):
    numbers = CASES[name].numbers if numbers is None else numbers
    w = CASES[name].primal(numbers, theta)
    return theta @ w - CASES[name].potential(numbers, w)


def close(seen, expected, tolerance):
    expected = np.asarray(expected)
    size = np.max(np.abs(expected))
    np.testing.assert_allclose(seen, expected, rtol=tolerance, atol=tolerance * size)


def seen_of(name, dtype=jnp.float64):
    """All that the library says about a case at the points and duals."""
    return {key: value[: len(DUALS)] for key, value in looked_at(name, dtype).items()}


def huge_of(name):
    """The same, at the huge duals."""
    return {key: value[len(DUALS) :] for key, value in looked_at(name, jnp.float64).items()}


@cache
def looked_at(name, dtype):
    mirror = jax.tree.map(
        lambda leaf: leaf.astype(dtype) if jnp.ndim(leaf) else leaf,
        CASES[name].make(*CASES[name].numbers),
    )
    duals = np.concatenate([duals_of(name), CASES[name].fold(HUGE)])
    points = points_of(name)
    paired = [points, np.roll(points, -1, axis=0), STEPS]  # and again, beside the huge duals
    rows = [duals, *(np.resize(row, duals.shape) for row in paired)]
    seen = look_at_rows(mirror, *(row.astype(dtype) for row in rows))
    return {key: np.asarray(value) for key, value in seen.items()}


@jax.jit
def look_at_rows(mirror, *rows):
    traced_once = lambda function: Partial(jax.jit(lambda f, x: f(x)), function)
    mirror = dataclasses.replace(
        mirror, potential=traced_once(mirror.potential), conjugate=traced_once(mirror.conjugate)
    )
    view = look if rows[0].dtype == jnp.float64 else glance
    return jax.lax.map(lambda row: view(mirror, *row), rows)


@jax.jit
def decide(mirror, theta):
    """The decision, and whether it lies in the domain."""
    w = mirror.to_primal(theta)
    return w, True if mirror.contains is None else mirror.contains(w)


@cache
def grid_of(name):
    """Two settings of the numbers crossed with the duals and, last, zero."""
    case = CASES[name]
    numbers = tuple(np.array(pair) for pair in zip(case.numbers, case.others, strict=True))
    duals = np.concatenate([duals_of(name), case.fold(np.zeros((1, D)))])
    return jax.tree.map(np.asarray, look_at_grid(case.make, numbers, duals))


@partial(jax.jit, static_argnums=0)
def look_at_grid(make, numbers, duals):
    def one(numbers, theta):
        def through(numbers):
            w = make(*numbers).to_primal(theta)
            return jnp.sum(w**2), w

        through_primal, w = jax.grad(through, has_aux=True)(numbers)
        slope = jax.grad(lambda numbers: make(*numbers).conjugate(theta))(numbers)
        return {"primal": w, "slope": slope, "through_primal": through_primal}

    return jax.vmap(jax.vmap(one, in_axes=(None, 0)), in_axes=(0, None))(numbers, duals)


def glance(mirror, theta, w, other, step):
    return {
        "potential": mirror.potential(w),
        "conjugate": mirror.conjugate(theta),
        "primal": mirror.to_primal(theta),
    }


def look(mirror, theta, w, other, step):
    primal, moved = mirror.to_primal(theta), mirror.to_primal(theta + step * 0.1)
    dual = mirror.to_dual(w)
    seen = {
        "potential": mirror.potential(w),
        "dual": dual,
        "conjugate": mirror.conjugate(theta),
        "primal": primal,
        "gap": mirror.gap(primal, theta),
        "mixed_gap": mirror.gap(w, theta),
        "closed_gap": mirror.gap(w, dual),
        "contains": True if mirror.contains is None else mirror.contains(primal),
        "round_trip": mirror.to_primal(dual),
        "retract": mirror.retract(theta),
        "hessian": jax.hessian(mirror.conjugate)(theta),
    }
    if mirror.norm is not None:
        best = jax.grad(mirror.norm.dual)(theta)
        seen |= {
            "moved": mirror.norm.primal(moved - primal),
            "step_norm": mirror.norm.dual(step * 0.1),
            "drift": mirror.dual_bregman(theta + step * 0.1, theta),
            "modulus": jnp.asarray(mirror.modulus, theta.dtype),
            "dual_norm": mirror.norm.dual(theta),
            "difference_norm": mirror.norm.primal(other - w),
            "best_norm": mirror.norm.primal(best),
            "best_value": jnp.vdot(best, theta),
        }
    return seen
