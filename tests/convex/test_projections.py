"""Projections against brute force, cvxpy, optimality conditions and finite differences."""

import itertools
import re
from functools import cache

import cvxpy
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from olx.convex.projections import (
    capped_simplex,
    entropic_cap,
    entropic_floor,
    simplex,
    slab,
    slab_semidefinite,
    subsimplex,
    weighted_l1_ball,
)

RNG = np.random.default_rng(5)
SEEDS = range(6)

compiled = cache(jax.jit)


def _minimize(objective, constraints, w):
    problem = cvxpy.Problem(cvxpy.Minimize(objective), constraints)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    return w.value


def _nearest(v, constraints):
    w = cvxpy.Variable(v.size)
    return _minimize(cvxpy.sum_squares(w - v), constraints(w), w)


def _brute_force(u, bound, keep):
    """Hold every subset in turn at the bound; of the legal points, the one of least divergence."""
    best, least = None, np.inf
    for held in itertools.product([False, True], repeat=u.size):
        held = np.array(held)
        left = 1 - bound * held.sum()
        if held.all() or left < -1e-12:
            continue
        w = np.where(held, bound, max(left, 0.0) * u / u[~held].sum())
        if keep(w):
            cost = np.sum(np.where(w > 0, w * np.log(np.where(w > 0, w, 1.0) / u), 0.0))
            best, least = (w, cost) if cost < least else (best, least)
    return best


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("floor", [0.0, 0.05, 0.12, 0.1999])
def test_the_entropic_floor_agrees_with_brute_force(seed, floor):
    logits = np.random.default_rng(seed).normal(size=5) * 2
    wanted = _brute_force(np.exp(logits), floor, lambda w: np.all(w >= floor - 1e-12))
    np.testing.assert_allclose(compiled(entropic_floor)(logits, floor), wanted, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("cap", [0.2001, 0.3, 0.5, 1.0])
def test_the_entropic_cap_agrees_with_brute_force(seed, cap):
    logits = np.random.default_rng(seed).normal(size=5) * 2
    wanted = _brute_force(np.exp(logits), cap, lambda w: np.all(w <= cap + 1e-12))
    np.testing.assert_allclose(compiled(entropic_cap)(logits, cap), wanted, atol=1e-12)


@pytest.mark.parametrize(("project", "bound"), [(entropic_floor, 0.1), (entropic_cap, 0.3)])
def test_huge_logits_lose_nothing(project, bound):
    logits = np.array([0.0, -2000.0, -2001.0, -5000.0, 3000.0])
    w = np.asarray(compiled(project)(logits, bound))
    assert np.all(np.isfinite(w))
    np.testing.assert_allclose(np.sum(w), 1.0, atol=1e-14)
    grad = jax.jit(jax.jacobian(project))(logits, bound)
    assert np.all(np.isfinite(grad))


def test_the_cap_splits_what_is_left_among_weights_far_below_it():
    logits = np.array([0.0, -2000.0, -2000.0 - np.log(3.0)])
    np.testing.assert_allclose(compiled(entropic_cap)(logits, 0.6), [0.6, 0.3, 0.1], atol=1e-12)


@pytest.mark.parametrize(("project", "bound"), [(entropic_floor, 0.25), (entropic_cap, 0.25)])
def test_the_tightest_bound_gives_the_uniform_point(project, bound):
    w = jax.jit(lambda v: project(v, bound))(np.array([0.0, 3.0, -1.0, 0.5]))
    np.testing.assert_allclose(w, np.full(4, 0.25), atol=1e-15)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("cap", "total"), [(0.3, 1.0), (2.0, 1.0), (0.5, 2.2), (0.25, 1.0)])
def test_the_capped_simplex_agrees_with_cvxpy(seed, cap, total):
    v = np.random.default_rng(seed).normal(size=5)
    wanted = _nearest(v, lambda w: [w >= 0, w <= cap, cvxpy.sum(w) == total])
    w = np.asarray(compiled(capped_simplex)(v, cap, total))
    np.testing.assert_allclose(w, wanted, atol=2e-6)
    np.testing.assert_allclose(np.sum(w), total, atol=1e-12)
    assert np.all((w >= 0) & (w <= cap))


def test_caps_may_differ():
    v, caps = np.array([2.0, 1.0, 0.3, -1.0]), np.array([0.2, 0.5, 0.9, 1.0])
    wanted = _nearest(v, lambda w: [w >= 0, w <= caps, cvxpy.sum(w) == 1])
    np.testing.assert_allclose(compiled(capped_simplex)(v, caps), wanted, atol=2e-6)


def test_caps_that_just_add_up_are_all_reached():
    w = jax.jit(lambda v: capped_simplex(v, 0.1))(np.arange(10.0))  # nor is the number refused
    np.testing.assert_allclose(w, np.full(10, 0.1), atol=1e-14)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("total", [0.0, 0.4, 5.0])
def test_the_subsimplex_agrees_with_cvxpy(seed, total):
    v = np.random.default_rng(seed).normal(size=5)
    wanted = _nearest(v, lambda w: [w >= 0, cvxpy.sum(w) <= total])
    np.testing.assert_allclose(compiled(subsimplex)(v, total), wanted, atol=2e-5)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("radius", [0.0, 0.7, 30.0])
def test_the_weighted_ball_agrees_with_cvxpy(seed, radius):
    rng = np.random.default_rng(seed)
    v, a = 2 * rng.normal(size=6), rng.exponential(size=6) * np.array([1, 1, 0, 1, 1, 0])
    wanted = _nearest(v, lambda w: [a @ cvxpy.abs(w) <= radius])
    w = np.asarray(compiled(weighted_l1_ball)(v, a, radius))
    np.testing.assert_allclose(w, wanted, atol=3e-5)
    assert a @ np.abs(w) <= radius + 1e-12
    np.testing.assert_array_equal(w[a == 0], v[a == 0])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_weighted_ball_satisfies_its_variational_inequality(seed):
    rng = np.random.default_rng(seed)
    v, a = 2 * rng.normal(size=6), rng.exponential(size=6)
    w = np.asarray(compiled(weighted_l1_ball)(v, a, 0.7))
    corners = np.concatenate([np.diag(0.7 / a), -np.diag(0.7 / a)])
    assert np.all((corners - w) @ (v - w) <= 1e-12)


def _geometry(rng, rank):
    b = rng.normal(size=(4, rank))
    return b @ b.T


@pytest.mark.parametrize("seed", SEEDS)
def test_a_slab_agrees_with_cvxpy(seed):
    rng = np.random.default_rng(seed)
    matrix = _geometry(rng, 4) + 0.2 * np.eye(4)
    v, x = 3 * rng.normal(size=4), rng.normal(size=4)
    w = cvxpy.Variable(4)
    cost = cvxpy.quad_form(w - v, cvxpy.psd_wrap(matrix))
    wanted = _minimize(cost, [x @ w >= -0.3, x @ w <= 0.5], w)
    seen = compiled(slab)(v, x, -0.3, 0.5, np.linalg.inv(matrix))
    np.testing.assert_allclose(seen, wanted, atol=2e-5)


def test_a_diagonal_and_a_number_are_matrices():
    v, x = np.array([2.0, -1.0, 3.0]), np.array([1.0, 0.5, 1.0])
    diagonal, move = np.array([0.5, 2.0, 1.0]), compiled(slab)
    full = move(v, x, -1.0, 1.0, np.diag(diagonal))
    np.testing.assert_allclose(move(v, x, -1.0, 1.0, diagonal), full, atol=1e-14)
    tripled = move(v, x, -1.0, 1.0, 3.0 * np.eye(3))
    np.testing.assert_allclose(move(v, x, -1.0, 1.0), tripled, atol=1e-14)


def test_a_zero_direction_moves_nothing_and_has_a_gradient():
    v, zero = np.array([1.0, 2.0]), np.zeros(2)
    np.testing.assert_array_equal(compiled(slab)(v, zero, -1.0, 1.0), v)
    square = lambda v, x: jnp.sum(slab(v, x, 0.5, 1.0) ** 2)
    grads = jax.jit(jax.grad(square, (0, 1)))(v, zero)
    assert all(np.all(np.isfinite(grad)) for grad in grads)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_semidefinite_slab_in_range_costs_no_more_than_any_point(seed):
    rng = np.random.default_rng(seed)
    matrix = _geometry(rng, 2)
    v, x = 3 * rng.normal(size=4), matrix @ rng.normal(size=4)
    w = np.asarray(compiled(slab_semidefinite)(v, x, -0.3, 0.5, matrix))
    pinv = np.linalg.pinv(matrix)
    excess = x @ v - np.clip(x @ v, -0.3, 0.5)
    np.testing.assert_allclose(w, v - excess * (pinv @ x) / (x @ pinv @ x), atol=1e-9)
    assert -0.3 - 1e-9 <= x @ w <= 0.5 + 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_a_semidefinite_slab_out_of_range_moves_for_free_by_the_least(seed):
    rng = np.random.default_rng(seed)
    matrix = _geometry(rng, 2)
    v, x = 3 * rng.normal(size=4), rng.normal(size=4)
    w = np.asarray(compiled(slab_semidefinite)(v, x, -0.3, 0.5, matrix))
    np.testing.assert_allclose(matrix @ (w - v), 0.0, atol=1e-9)
    free = cvxpy.Variable(4)
    constraints = [matrix @ (free - v) == 0, x @ free >= -0.3, x @ free <= 0.5]
    wanted = _minimize(cvxpy.sum_squares(free - v), constraints, free)
    np.testing.assert_allclose(w, wanted, atol=1e-5)


def test_a_semidefinite_slab_of_a_definite_matrix_is_a_slab():
    matrix = _geometry(RNG, 4) + np.eye(4)
    v, x = 3 * RNG.normal(size=4), RNG.normal(size=4)
    wanted = compiled(slab)(v, x, -0.1, 0.1, np.linalg.inv(matrix))
    seen = compiled(slab_semidefinite)(v, x, -0.1, 0.1, matrix)
    np.testing.assert_allclose(seen, wanted, atol=1e-10)


V = np.array([0.9, -0.4, 0.35, 1.7, 0.1])
X = np.array([1.0, 0.5, -0.2, 0.7, 0.3])
PSD = np.diag([1.0, 1.0, 2.0, 0.0, 0.0])

SMOOTH = {
    "entropic_floor": lambda v, r: entropic_floor(v, 0.1 * r),
    "entropic_cap": lambda v, r: entropic_cap(v, 0.3 * r),
    "capped_simplex": lambda v, r: capped_simplex(v, 0.5 * r, 1.0 * r),
    "subsimplex": lambda v, r: subsimplex(v, 1.0 * r),
    "weighted_l1_ball": lambda v, r: weighted_l1_ball(v, r * jnp.abs(X), 1.0 * r),
    "slab": lambda v, r: slab(v, X, -0.2 * r, 0.2 * r, jnp.abs(X)),
    "slab_semidefinite": lambda v, r: slab_semidefinite(v, X, -0.2 * r, 0.2 * r, r * PSD),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_agree_with_differences(name):
    project, eps = compiled(SMOOTH[name]), 1e-6
    by_point, by_number = _jacobians(name)(V, 1.0)
    differences = [
        (project(V + eps * e, 1.0) - project(V - eps * e, 1.0)) / (2 * eps) for e in np.eye(5)
    ]
    np.testing.assert_allclose(by_point, np.stack(differences, 1), atol=1e-8)
    difference = (project(V, 1.0 + eps) - project(V, 1.0 - eps)) / (2 * eps)
    np.testing.assert_allclose(by_number, difference, atol=1e-8)


@cache
def _jacobians(name):
    """By the point, pulled back, and by the number, pushed forward."""
    both = jax.jacrev(SMOOTH[name]), jax.jacfwd(SMOOTH[name], 1)
    return jax.jit(lambda v, r: [jacobian(v, r) for jacobian in both])


@pytest.mark.parametrize("name", SMOOTH)
def test_a_batch_is_a_loop(name):
    points, numbers = np.stack([V, -V, V[::-1], np.zeros(5)]), np.array([1.0, 0.9, 0.8, 1.0])
    together = jax.jit(jax.vmap(SMOOTH[name]))(points, numbers)
    for v, r, w in zip(points, numbers, together, strict=True):
        apart = compiled(SMOOTH[name])(v, float(r))
        np.testing.assert_allclose(w, apart, atol=1e-12, err_msg=f"{v}, {r}")


@pytest.mark.parametrize("name", ["entropic_floor", "entropic_cap", "capped_simplex", "subsimplex"])
def test_single_precision_stays_single(name):
    single = compiled(SMOOTH[name])(V.astype(np.float32), 1.0)
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, compiled(SMOOTH[name])(V, 1.0), atol=1e-6)


@pytest.mark.parametrize(
    ("project", "given", "atol"),
    [
        (slab, (V, X), 1e-6),
        (slab_semidefinite, (V, X, PSD), 1e-5),
        (weighted_l1_ball, (V, np.abs(X)), 1e-6),
    ],
)
def test_slabs_and_balls_in_single_precision(project, given, atol):
    numbers = (1.0,) if project is weighted_l1_ball else (-0.2, 0.2)
    move = lambda v, x, *matrix: compiled(project)(v, x, *numbers, *matrix)
    single = move(*(array.astype(np.float32) for array in given))
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, move(*given), atol=atol)


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_are_finite_where_coordinates_tie(name):
    by_point, _ = _jacobians(name)(np.ones(5), 1.0)
    assert np.all(np.isfinite(by_point))


@pytest.mark.parametrize(
    "project", [lambda t: entropic_floor(t, 0.1), lambda t: capped_simplex(t, 0.5), subsimplex]
)
def test_a_tree_is_one_long_vector(project):
    tree = {"a": V[:2], "b": V[2:]}
    moved, flat = jax.jit(lambda tree, v: (project(tree), project(v)))(tree, V)
    np.testing.assert_allclose(np.concatenate([moved["a"], moved["b"]]), flat, atol=1e-15)


REFUSALS = [
    (lambda: entropic_floor(V, 0.3), "entropic_floor: `floor` must lie in [0, 0.2], got 0.3."),
    (lambda: entropic_cap(V, 0.1), "entropic_cap: `cap` must lie in [0.2, inf], got 0.1."),
    (lambda: capped_simplex(V, 0.1), "capped_simplex: `cap` must sum to at least 1, got 0.5."),
    (lambda: capped_simplex(V, -0.1), "capped_simplex: `cap` must be non-negative, got -0.1."),
    (lambda: subsimplex(V, -1.0), "subsimplex: `total` must be non-negative, got -1.0."),
    (
        lambda: weighted_l1_ball(V, -X, 1.0),
        "weighted_l1_ball: `weights` must be non-negative, got -1.0.",
    ),
    (lambda: slab(V, X, 1.0, 0.0), "slab: `low` must not exceed `high`, got 1.0 and 0.0."),
]


@pytest.mark.parametrize(("make", "message"), REFUSALS)
def test_bad_values_are_refused(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()


@pytest.mark.parametrize(
    ("project", "bad"),
    [(entropic_floor, 0.3), (entropic_cap, 0.1), (capped_simplex, 0.1), (subsimplex, -1.0)],
)
def test_a_bad_number_in_a_batch_shows_as_nan_at_its_index(project, bad):
    w = jax.jit(jax.vmap(lambda r: project(jnp.array(V), r)))(np.array([0.2, bad]))
    w = np.asarray(w)
    assert np.all(np.isfinite(w[0]))
    assert np.all(np.isnan(w[1]))


def test_the_simplex_is_reached_from_far_points_that_are_products():
    """The compiler may fuse the product, and round it differently where it is used again."""
    far = lambda v: jax.vmap(lambda w: simplex(w, 1.0))(1e4 * v)
    v = np.random.default_rng(0).normal(size=(8, 3))
    wanted = np.eye(3)[v.argmax(-1)]
    np.testing.assert_allclose(jax.jit(far)(v), wanted, atol=1e-9)
