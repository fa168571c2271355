"""Polytopes against cvxpy, identities of projections and finite differences."""

from functools import partial

import cvxpy
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from olx import convex
from olx.convex import sets

D, N, M = 6, 4, 5
rng = np.random.default_rng(3)
G, H = rng.normal(size=(8, D)), rng.uniform(0.1, 2.0, 8)
A = rng.normal(size=(2, D))
B = A @ rng.normal(size=D) * 0.01
NORMAL = np.array([1.0, -2.0, 0.0, 0.5, 3.0, 1.0])
LOW, HIGH = np.full(D, -0.5), np.array([0.5, 1.0, 0.2, np.inf, 2.0, np.inf])
ROWS = np.array([1.0, 0.0, 2.0, 0.5])
COLUMNS = np.array([0.5, 1.0, 1.0, 0.7, 0.3])
ENDS = np.isfinite(HIGH)


def sums(w, rows, columns):
    return [w >= 0, cvxpy.sum(w, axis=1) == rows, cvxpy.sum(w, axis=0) == columns]


SETS = {  # the factory with its numbers, the shape of a decision, and the constraints in cvxpy
    "halfspace": (sets.halfspace, (NORMAL, 0.3), (D,), lambda w: [NORMAL @ w <= 0.3]),
    "hyperplane": (sets.hyperplane, (NORMAL, 0.3), (D,), lambda w: [NORMAL @ w == 0.3]),
    "affine": (sets.affine, (A, B), (D,), lambda w: [A @ w == B]),
    "box section": (
        sets.box_section,
        (LOW, HIGH, NORMAL, 0.3),
        (D,),
        lambda w: [w >= LOW, w[ENDS] <= HIGH[ENDS], NORMAL @ w == 0.3],
    ),
    "polyhedron": (sets.polyhedron, (G, H), (D,), lambda w: [G @ w <= H]),
    "with equations": (
        sets.polyhedron,
        (G, H, A, B),
        (D,),
        lambda w: [G @ w <= H, A @ w == B],
    ),
    "transport": (sets.transport, (ROWS, COLUMNS), (N, M), lambda w: sums(w, ROWS, COLUMNS)),
    "birkhoff": (sets.birkhoff, (), (N, N), lambda w: sums(w, np.ones(N), np.ones(N))),
}
every = pytest.mark.parametrize("name", SETS)


def drawn(name, count=6):
    own = np.random.default_rng(7).normal(size=(count, *SETS[name][2]))
    return own * np.array([0.1, 1.0, 50.0]).repeat(2).reshape(-1, *[1] * (own.ndim - 1))


@every
def test_a_projection_is_that_of_cvxpy_and_stays(name):
    make, numbers, shape, constraints = SETS[name]
    domain = make(*numbers)
    near = np.asarray(jax.jit(jax.vmap(domain.project))(drawn(name)))
    for v, own in zip(drawn(name), near, strict=True):
        w = cvxpy.Variable(shape)
        problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(w - v)), constraints(w))
        problem.solve(solver="CLARABEL")
        np.testing.assert_allclose(own, w.value, atol=2e-5 * (1 + np.abs(v).max()))
    again, inside = jax.jit(jax.vmap(lambda w: (domain.project(w), domain.contains(w))))(near)
    np.testing.assert_allclose(again, near, atol=1e-12)
    assert np.all(inside)


@every
def test_the_line_to_the_projection_makes_no_sharp_angle_with_the_set(name):
    """<v - P(v), w - P(v)> <= 0 for every w of the set, which characterizes projections."""
    v = drawn(name).reshape(6, -1)
    near = np.asarray(jax.vmap(SETS[name][0](*SETS[name][1]).project)(drawn(name))).reshape(6, -1)
    angles = np.einsum("id,ijd->ij", v - near, near[None] - near[:, None])
    assert np.all(angles <= 1e-11 * np.abs(v).max() ** 2)


@every
def test_derivatives_agree_with_differences(name):
    make, numbers, shape, _ = SETS[name]
    own = np.random.default_rng(1)
    arguments = [drawn(name)[2], *map(np.asarray, numbers)]
    moves = [np.where(np.isfinite(one), own.normal(size=one.shape), 0.0) for one in arguments]
    if name == "transport":  # both sums change alike, and an empty row stays empty
        moves[1], moves[2] = np.array([1.0, 0.0, -2.0, 1.5]), np.array([0.1, 0.4, -0.3, 0.2, 0.1])
    weights = own.normal(size=shape)

    @jax.jit
    def value(v, *numbers):
        return jnp.vdot(jnp.sin(make(*numbers).project(v)), weights)

    moved = lambda by: [a + by * m for a, m in zip(arguments, moves, strict=True)]
    wanted = (value(*moved(1e-6)) - value(*moved(-1e-6))) / 2e-6
    _, seen = jax.jvp(value, tuple(map(jnp.asarray, arguments)), tuple(map(jnp.asarray, moves)))
    np.testing.assert_allclose(seen, wanted, rtol=1e-5, atol=1e-7)


def test_an_entropic_plan_has_its_sums_and_scales_rows_and_columns_alone():
    logits, rows = drawn("transport")[4] / 10, ROWS + 0.1
    columns = COLUMNS * rows.sum() / COLUMNS.sum()
    plan = np.asarray(convex.entropic_transport(logits, rows, columns))
    np.testing.assert_allclose(plan.sum(1), rows, rtol=1e-12)
    np.testing.assert_allclose(plan.sum(0), columns, rtol=1e-12)
    factor = np.log(plan) - logits
    np.testing.assert_allclose(factor - factor[:, :1] - factor[:1] + factor[0, 0], 0.0, atol=1e-11)


def test_a_sparse_point_of_the_simplex_is_the_best_of_all_supports():
    v = np.array([0.4, -0.3, 0.9, 0.35, 0.1])
    near = np.asarray(convex.sparse_simplex(v, 2, 1.5))
    assert np.count_nonzero(near) == 2
    tried = []
    for support in ([i, j] for i in range(5) for j in range(i)):
        w = np.zeros(5)
        w[support] = np.asarray(sets.simplex(1.5).project(jnp.asarray(v[support])))
        tried.append(np.sum((w - v) ** 2))
    np.testing.assert_allclose(np.sum((near - v) ** 2), min(tried), rtol=1e-12)


def test_a_penalty_in_a_box_is_minimized_by_its_prox():
    strengths = np.array([0.1, 0.5, 2.0, 0.0, 1.0, 0.3])
    penalty = convex.restrict(convex.elastic_net(strengths, 2 * strengths), sets.box(0.0, 0.6))
    v = drawn("affine")[2]
    w = cvxpy.Variable(D)
    cost = strengths @ (cvxpy.abs(w) + cvxpy.square(w)) + cvxpy.sum_squares(w - v) / 2 / 0.7
    cvxpy.Problem(cvxpy.Minimize(cost), [w >= 0, w <= 0.6]).solve(solver="CLARABEL")
    near = penalty.prox(jnp.asarray(v), 0.7)
    np.testing.assert_allclose(near, w.value, atol=1e-6)
    wanted = strengths @ (np.abs(near) + np.square(near))
    np.testing.assert_allclose(penalty.value(near), wanted, rtol=1e-12)
    assert penalty.value(near - 1.0) == np.inf
    with pytest.raises(ValueError, match="sum over coordinates"):
        convex.restrict(convex.linf(), sets.box(0.0, 1.0))


EMPTY = {
    "polyhedron": partial(sets.polyhedron, np.array([[1.0, 0.0], [-1.0, 0.0]]), -np.ones(2)),
    "equations": partial(sets.affine, np.ones((2, 2)), np.array([0.0, 1.0])),
    "box section": partial(sets.box_section, 0.0, 1.0, 1.0, 5.0),
}


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_set_is_refused_or_nan_where_it_is_traced(name):
    project = EMPTY[name]().project
    with pytest.raises(ValueError, match="the set is empty"):
        project(jnp.zeros(2))
    assert np.all(np.isnan(jax.jit(project)(jnp.zeros(2))))


def test_what_cannot_be_a_set_is_refused():
    with pytest.raises(ValueError, match="`normal` must not be 0"):
        sets.halfspace(np.zeros(2), 1.0)
    with pytest.raises(ValueError, match="`rows` must sum to what `columns` do"):
        sets.transport(np.ones(2), np.ones(3)).project(jnp.zeros((2, 3)))
    with pytest.raises(TypeError, match=r"needs one row per number of `most`"):
        sets.polyhedron(np.eye(2), np.ones(3)).project(jnp.zeros(2))
