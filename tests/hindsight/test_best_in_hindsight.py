"""The best comparator against cvxpy and NumPy; the gap must bound what is left to save."""

from functools import cache

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial
from stored import FOLDER, needs

from olx import losses
from olx.convex import sets, tangents
from olx.core import Rounds
from olx.frameworks.lift import dot
from olx.hindsight.best import best_in_hindsight

T, D = 40, 4
RNG = np.random.default_rng(3)
X = RNG.normal(size=(T, D))
SCORE = X @ RNG.normal(size=D) + RNG.normal(size=T)
C = RNG.uniform(0, 2, size=T)
SIGN = np.sign(SCORE)

# name: ours, cvxpy's, outcomes, relative accuracy
LOSSES = {
    "squared": (losses.squared, lambda s: cp.square(s - SCORE) / 2, SCORE, 1e-6),
    "absolute": (losses.absolute, lambda s: cp.abs(s - SCORE), SCORE, 1e-4),
    "tube": (
        losses.epsilon_insensitive(0.3),
        lambda s: cp.pos(cp.abs(s - SCORE) - 0.3),
        SCORE,
        1e-4,
    ),
    "hinge": (losses.hinge, lambda s: cp.pos(1 - cp.multiply(SIGN, s)), SIGN, 1e-4),
    "margin": (losses.margin_hinge(0.4), lambda s: cp.pos(0.4 - cp.multiply(SIGN, s)), SIGN, 1e-4),
    "squared_hinge": (
        losses.squared_hinge,
        lambda s: cp.square(cp.pos(1 - cp.multiply(SIGN, s))) / 2,
        SIGN,
        1e-6,
    ),
    "modified_huber": (
        losses.modified_huber,
        lambda s: cp.huber(cp.pos(1 - cp.multiply(SIGN, s)), 2) / 2,
        SIGN,
        1e-6,
    ),
    "logistic": (losses.logistic, lambda s: cp.logistic(-cp.multiply(SIGN, s)), SIGN, 1e-6),
    "exponential": (losses.exponential, lambda s: cp.exp(-cp.multiply(SIGN, s)), SIGN, 1e-6),
    "linear": (losses.linear_loss, lambda s: cp.multiply(SCORE, s), SCORE, 1e-6),
}
CONSTRAINTS = {
    "everywhere": lambda w: [],
    "ball": lambda w: [cp.norm(w) <= 0.7],
    "simplex": lambda w: [w >= 0, cp.sum(w) == 1],
    "box": lambda w: [w >= -0.2, w <= 0.5],
}
BOUNDED = ("ball", "simplex", "box")
CASES = [
    (loss, domain)
    for loss in LOSSES
    for domain in CONSTRAINTS
    if (loss, domain) != ("linear", "everywhere")
]


@jax.jit
def _any_loss(index, score, outcome):
    return jax.lax.switch(index, [ours for ours, *_ in LOSSES.values()], score, outcome)


def _loss(name):
    # the index is a traced number, so all losses share one program
    return Partial(_any_loss, jnp.asarray(list(LOSSES).index(name)))


BOX = sets.box(-0.2, 0.5)


def _any_domain(radius):
    return [sets.ball(radius), sets.simplex(), BOX]


def _any_project(index, radius, w):
    return jax.lax.switch(index, [domain.project for domain in _any_domain(radius)], w)


def _any_farthest(index, radius, g):
    return jax.lax.switch(index, [domain.farthest for domain in _any_domain(radius)], g)


def _domain(where, radius=0.7):
    # likewise, all bounded domains share one program
    if where == "everywhere":
        return sets.everywhere()
    numbers = jnp.asarray(BOUNDED.index(where)), radius
    return sets.projected(Partial(_any_project, *numbers), Partial(_any_farthest, *numbers))


def _solve(name, domain, x=X, y=None, c=C, **options):
    y = LOSSES[name][2] if y is None else y
    rounds = Rounds(jnp.asarray(x), jnp.asarray(y), jnp.asarray(c))
    best = best_in_hindsight(_loss(name), rounds, jnp.zeros(D), apply=dot, domain=domain, **options)
    return jax.tree.map(np.asarray, best)


@cache
def _solution(name, where):
    return _solve(name, _domain(where))


@cache
def _optimum(name, where):
    w = cp.Variable(D)
    problem = cp.Problem(cp.Minimize(C @ LOSSES[name][1](X @ w)), CONSTRAINTS[where](w))
    return problem.solve(solver=cp.CLARABEL)


@pytest.mark.parametrize(("name", "where"), CASES)
def test_the_gap_is_small_and_bounds_what_an_exact_solver_saves(name, where):
    best, optimum = _solution(name, where), _optimum(name, where)
    assert best.gap <= LOSSES[name][3] * (1 + abs(best.value))
    np.testing.assert_allclose(best.value, optimum, rtol=2 * LOSSES[name][3])
    assert best.value - optimum <= best.gap + 1e-7 * (1 + abs(optimum))


@pytest.mark.parametrize(("name", "where"), CASES)
def test_the_gap_is_true_when_stopped_early(name, where):
    best, optimum = _solve(name, _domain(where), steps=1), _optimum(name, where)
    assert best.value - optimum <= best.gap + 1e-7 * (1 + abs(optimum))


@pytest.mark.parametrize(("name", "where"), CASES)
def test_the_value_is_that_of_a_point_of_the_domain(name, where):
    best = _solution(name, where)
    w = cp.Variable(D)
    w.value = best.u
    assert all(np.max(constraint.violation()) <= 1e-12 for constraint in CONSTRAINTS[where](w))
    np.testing.assert_allclose(best.value, C @ LOSSES[name][1](X @ w).value, rtol=1e-10)


def test_an_unbounded_problem_has_an_infinite_gap():
    assert _solve("linear", sets.everywhere(), steps=100).gap == jnp.inf


def test_least_squares_is_that_of_numpy():
    best = _solution("squared", "everywhere")
    root = np.sqrt(C)
    theirs = np.linalg.lstsq(root[:, None] * X, root * SCORE, rcond=None)[0]
    np.testing.assert_allclose(best.u, theirs, rtol=1e-10)
    assert best.gap <= 1e-10


def test_least_squares_has_the_least_norm_where_there_are_several():
    wide = np.concatenate([X, X[:, :2] + X[:, 2:]], axis=1)
    rounds = Rounds(jnp.asarray(wide), jnp.asarray(SCORE))
    best = best_in_hindsight(losses.squared, rounds, jnp.zeros(6), apply=dot)
    theirs = np.linalg.lstsq(wide, SCORE, rcond=None)[0]
    np.testing.assert_allclose(best.u, theirs, rtol=1e-9)
    assert best.gap <= 1e-10


def test_fewer_rounds_than_features_are_interpolated():
    rounds = Rounds(jnp.asarray(X[:3]), jnp.asarray(SCORE[:3]))
    best = best_in_hindsight(losses.absolute, rounds, jnp.zeros(D), apply=dot)
    assert best.value <= 1e-6
    assert best.gap <= 1e-6


def test_separable_data_cost_nothing():
    for name in ("hinge", "logistic"):
        best = _solve(name, sets.everywhere(), y=np.sign(X[:, 0]))
        assert best.value <= 1e-6
        assert best.gap <= 1e-6


def test_a_round_of_weight_two_is_two_rounds():
    half, both = slice(0, T // 2), np.r_[0 : T // 2, 0 : T // 2]
    weighted = np.where(np.arange(T) < T // 2, 2.0, 0.0)
    one = _solve("logistic", _domain("ball"), c=weighted)
    other = _solve("logistic", _domain("ball"), X[both], SIGN[both], np.ones(T))
    np.testing.assert_allclose(one.u, other.u, atol=1e-3)
    np.testing.assert_allclose(one.value, other.value, rtol=2e-6)
    margins = SIGN[half] * (X[half] @ one.u)
    np.testing.assert_allclose(one.value, 2 * np.log1p(np.exp(-margins)).sum(), rtol=1e-10)


def test_a_scalar_comparator_of_absolute_losses_is_the_median():
    y = RNG.normal(size=11)
    best = best_in_hindsight(losses.absolute, Rounds(None, jnp.asarray(y)), jnp.zeros(()))
    np.testing.assert_allclose(best.u, np.median(y), atol=1e-9)
    np.testing.assert_allclose(best.value, np.abs(y - np.median(y)).sum(), rtol=1e-9)


def test_linear_losses_on_the_simplex_give_the_best_expert():
    table = RNG.uniform(size=(T, 6))
    rounds = Rounds(None, jnp.asarray(table), jnp.asarray(C))
    best = best_in_hindsight(losses.linear_loss, rounds, jnp.full(6, 1 / 6), domain=sets.simplex())
    assert np.argmax(best.u) == (C @ table).argmin()
    np.testing.assert_allclose(best.value, (C @ table).min(), rtol=1e-12)
    assert best.gap <= 1e-12


def test_the_best_constant_rebalanced_portfolio_is_that_of_cvxpy():
    relatives = np.exp(0.2 * RNG.normal(size=(T, 5)) + 0.02)
    rounds = Rounds(None, jnp.asarray(relatives), jnp.asarray(C))
    best = best_in_hindsight(losses.log_loss, rounds, jnp.full(5, 0.2), domain=sets.simplex())
    w = cp.Variable(5)
    cost = cp.Minimize(-C @ cp.log(relatives @ w))
    optimum = cp.Problem(cost, [w >= 0, cp.sum(w) == 1]).solve(solver=cp.CLARABEL)
    assert best.gap <= 1e-6 * (1 + abs(best.value))
    assert best.value - optimum <= best.gap + 1e-8
    np.testing.assert_allclose(best.value, optimum, rtol=3e-6)


def _affine(params, x):
    return dot(params["w"], x) + params["b"]


@pytest.mark.parametrize("radius", [0.5, 50.0])
def test_any_model_convex_in_its_parameters_is_served(radius):
    rounds = Rounds(jnp.asarray(X), jnp.asarray(SIGN), jnp.asarray(C))
    start = {"w": jnp.zeros(D), "b": jnp.zeros(())}
    best = best_in_hindsight(
        losses.logistic, rounds, start, apply=_affine, domain=sets.ball(radius)
    )
    w, b = cp.Variable(D), cp.Variable()
    cost = cp.Minimize(C @ cp.logistic(-cp.multiply(SIGN, X @ w + b)))
    optimum = cp.Problem(cost, [cp.norm(cp.hstack([w, b])) <= radius]).solve(solver=cp.CLARABEL)
    assert best.gap <= 1e-6 * (1 + abs(best.value))
    assert best.value - optimum <= best.gap + 1e-7
    np.testing.assert_allclose(best.value, optimum, rtol=3e-6)


def test_any_other_model_without_a_domain_claims_nothing():
    rounds = Rounds(jnp.asarray(X), jnp.asarray(SIGN), jnp.asarray(C))
    start = {"w": jnp.zeros(D), "b": jnp.zeros(())}
    options = {"apply": _affine, "steps": 300}
    free = best_in_hindsight(losses.logistic, rounds, start, **options)
    held = best_in_hindsight(losses.logistic, rounds, start, domain=sets.ball(50.0), **options)
    assert free.gap == jnp.inf
    np.testing.assert_allclose(free.value, held.value, rtol=1e-5)


def test_many_problems_are_a_loop():
    radii = np.array([0.3, 3.0])
    rounds = Rounds(jnp.asarray(X), jnp.asarray(SIGN), jnp.asarray(C))
    ball = lambda radius: {"apply": dot, "domain": sets.ball(radius)}
    solve = lambda radius: best_in_hindsight(losses.hinge, rounds, jnp.zeros(D), **ball(radius))
    together = jax.tree.map(np.asarray, jax.vmap(solve)(radii))
    for radius, value, gap in zip(radii, together.value, together.gap, strict=True):
        alone = _solve("hinge", _domain("ball", float(radius)))
        np.testing.assert_allclose(value, alone.value, rtol=2e-6)
        assert gap <= 1e-6 * (1 + value)


def test_single_precision_stays_single():
    rounds = Rounds(jnp.asarray(X, jnp.float32), jnp.asarray(SCORE, jnp.float32))
    best = best_in_hindsight(
        losses.absolute, rounds, jnp.zeros(D, jnp.float32), apply=dot, steps=2000
    )
    w = cp.Variable(D)
    optimum = cp.Problem(cp.Minimize(cp.sum(cp.abs(X @ w - SCORE)))).solve(solver=cp.CLARABEL)
    assert best.value.dtype == best.gap.dtype == jnp.float32
    value, gap = float(best.value), float(best.gap)
    assert gap <= 1e-5 * optimum
    assert value - optimum <= gap + 1e-6 * optimum


def test_a_context_unlike_the_parameters_is_refused():
    with pytest.raises(TypeError, match="best_in_hindsight: context"):
        best_in_hindsight(
            losses.hinge, Rounds(jnp.asarray(X), jnp.asarray(SIGN)), jnp.zeros(3), apply=dot
        )


KNOWN = [name for name in LOSSES if name != "linear"]  # those with a conjugate in closed form


@jax.jit
def _prox_and_conjugate(index, z, y, rho):
    loss = Partial(_any_loss, index)
    look = lambda s: jax.vmap(jax.value_and_grad(loss))(s, y)
    s, alpha = tangents.prox(look, z, 1.0, z, rho)
    closed = [jax.vmap(LOSSES[name][0].conjugate) for name in KNOWN]
    conjugate = tangents.conjugate(look, alpha, jnp.zeros_like(z))[0]
    return s, alpha, conjugate, jax.lax.switch(index, closed, alpha, y), jax.vmap(loss)(s, y)


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("rho", [0.01, 1.0, 100.0])
def test_prox_and_conjugate_from_values_and_slopes_are_the_closed_forms(name, rho):
    z, y = 10 * SCORE, LOSSES[name][2]
    seen = _prox_and_conjugate(KNOWN.index(name), z, y, rho)
    s, alpha, conjugate, closed, value = map(np.asarray, seen)
    np.testing.assert_allclose(conjugate, closed, rtol=1e-9, atol=1e-10)
    young = value + conjugate - alpha * s
    np.testing.assert_allclose(young, 0.0, atol=1e-9)  # alpha is a slope at s
    np.testing.assert_allclose(s, z - alpha / rho, rtol=1e-12, atol=1e-9)


def test_the_conjugate_is_infinite_where_no_slope_reaches():
    look = lambda s: jax.vmap(jax.value_and_grad(losses.hinge))(s, jnp.ones(3))
    conjugate = jax.jit(lambda tau: tangents.conjugate(look, tau, jnp.zeros(3))[0])
    assert np.isinf(conjugate(np.array([-1.5, -0.5, 0.5]))).tolist() == [True, False, True]


@needs("portfolio_nyse_o.npz")
def test_the_best_rebalanced_portfolio_of_nyse_beats_the_best_stock():
    relatives = np.load(FOLDER / "portfolio_nyse_o.npz")["X"]
    rounds = Rounds(None, jnp.asarray(relatives))
    assets = relatives.shape[1]
    best = best_in_hindsight(
        losses.log_loss, rounds, jnp.full(assets, 1 / assets), domain=sets.simplex()
    )
    assert best.gap <= 1e-5
    assert np.exp(-best.value) > np.prod(relatives, axis=0).max() > 54.0
    assert np.exp(-best.value) > np.prod(relatives.mean(axis=1)) > 27.0
