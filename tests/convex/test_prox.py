"""Penalties against cvxpy, optimality conditions and finite differences."""

import re
from functools import cache, partial

import cvxpy
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from olx.convex import sets
from olx.convex.prox import Penalty, elastic_net, group_l2, indicator, l1, linf, nuclear, squared_l2

RNG = np.random.default_rng(3)
MATRIX = RNG.normal(size=(4, 3))

CASES = {
    "l1": (l1, lambda w, s: s * cvxpy.sum(cvxpy.abs(w))),
    "squared_l2": (squared_l2, lambda w, s: s / 2 * cvxpy.sum_squares(w)),
    "elastic_net": (
        lambda s: elastic_net(s, 2 * s),
        lambda w, s: s * cvxpy.sum(cvxpy.abs(w)) + s * cvxpy.sum_squares(w),
    ),
    "group_l2": (group_l2, lambda w, s: s * cvxpy.sum(cvxpy.norm(w, 2, axis=1))),
    "nuclear": (nuclear, lambda w, s: s * cvxpy.normNuc(w)),
    "linf": (linf, lambda w, s: s * cvxpy.max(cvxpy.abs(w))),
}


def _cvxpy_prox(penalty, v, step):
    w = cvxpy.Variable(v.shape)
    objective = step * penalty(w) + cvxpy.sum_squares(w - v) / 2
    cvxpy.Problem(cvxpy.Minimize(objective)).solve(
        solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
    )
    return w.value


@jax.jit
def _look(penalty, v, step):
    """The prox and the value at a point."""
    return penalty.prox(v, step), penalty.value(v)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("strength", [0.3, 1.1])
def test_prox_agrees_with_cvxpy(name, strength):
    make, formula = CASES[name]
    mine, _ = _look(make(strength), MATRIX, 0.8)
    theirs = _cvxpy_prox(lambda w: formula(w, strength), MATRIX, 0.8)
    np.testing.assert_allclose(mine, theirs, atol=2e-6)


@pytest.mark.parametrize("name", CASES)
def test_no_nearby_point_does_better_than_prox(name):
    moves = RNG.normal(size=(200, 4, 3)) * 10.0 ** RNG.uniform(-4, 0, (200, 1, 1))
    best, others = _costs(CASES[name][0](0.7), moves)
    assert np.all(others >= best)


@jax.jit
def _costs(penalty, moves):
    """Of the prox, and of points around it."""
    cost = lambda w: 0.8 * penalty.value(w) + jnp.sum((w - MATRIX) ** 2) / 2
    best = penalty.prox(jnp.array(MATRIX), 0.8)
    return cost(best), jax.vmap(cost)(best + moves)


@pytest.mark.parametrize("name", CASES)
def test_value_agrees_with_numpy(name):
    w, s = MATRIX, 0.7
    reference = {
        "l1": s * np.abs(w).sum(),
        "squared_l2": s / 2 * (w**2).sum(),
        "elastic_net": s * np.abs(w).sum() + s * (w**2).sum(),
        "group_l2": s * np.linalg.norm(w, axis=1).sum(),
        "nuclear": s * np.linalg.svd(w)[1].sum(),
        "linf": s * np.abs(w).max(),
    }
    _, value = _look(CASES[name][0](s), w, 0.8)
    np.testing.assert_allclose(value, reference[name], rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_prox_of_strength_zero_is_the_identity_with_its_derivative(name):
    for v in (MATRIX, np.zeros((4, 3))):
        jacobian, moved = _prox_jacobian(CASES[name][0](0.0), v)
        np.testing.assert_allclose(moved, v, atol=1e-14)
        np.testing.assert_allclose(jacobian.reshape(12, 12), np.eye(12), atol=1e-12)


@jax.jit
def _prox_jacobian(penalty, v):
    prox = lambda v: (penalty.prox(v, 0.8),) * 2
    return jax.jacrev(prox, has_aux=True)(v)


@partial(jax.jit, static_argnums=0)
def _slopes(make, v, strength, step):
    """A smooth function of the prox plus the value, and its slopes in all numbers."""

    def loss(v, strength, step):
        penalty = make(strength)
        return jnp.sum(jnp.sin(penalty.prox(v, step)) * MATRIX[::-1]) + penalty.value(v)

    return jax.value_and_grad(loss, argnums=(0, 1, 2))(v, strength, step)


@pytest.mark.parametrize("name", CASES)
def test_derivatives_of_prox_and_value_agree_with_differences(name):
    look = partial(_slopes, CASES[name][0])
    loss, eps = lambda *given: look(*given)[0], 1e-6
    _, grads = look(MATRIX, 0.4, 0.8)
    move = RNG.normal(size=(4, 3))
    along = (loss(MATRIX + eps * move, 0.4, 0.8) - loss(MATRIX - eps * move, 0.4, 0.8)) / (2 * eps)
    np.testing.assert_allclose(np.vdot(grads[0], move), along, rtol=1e-6, atol=1e-8)
    along = (loss(MATRIX, 0.4 + eps, 0.8) - loss(MATRIX, 0.4 - eps, 0.8)) / (2 * eps)
    np.testing.assert_allclose(grads[1], along, rtol=1e-6, atol=1e-8)
    along = (loss(MATRIX, 0.4, 0.8 + eps) - loss(MATRIX, 0.4, 0.8 - eps)) / (2 * eps)
    np.testing.assert_allclose(grads[2], along, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "v", [np.zeros((4, 3)), np.ones((4, 3)), np.eye(4, 3)], ids=["zero", "ones", "eye"]
)
def test_gradients_at_kinks_are_finite(name, v):
    for strength in (0.0, 1.0):
        _, grads = _slopes(CASES[name][0], v, strength, 1.0)
        assert all(np.all(np.isfinite(grad)) for grad in grads)


@cache
def _batch(name):
    """The prox of a point for four strengths, of which the last is not legal."""
    prox = lambda s: CASES[name][0](s).prox(jnp.array(MATRIX), 0.8)
    return np.asarray(jax.jit(jax.vmap(prox))(np.array([0.0, 0.3, 2.0, -1.0])))


@pytest.mark.parametrize("name", CASES)
def test_a_batch_of_strengths_is_a_loop(name):
    for together, strength in zip(_batch(name)[:3], (0.0, 0.3, 2.0), strict=True):
        apart, _ = _look(CASES[name][0](strength), MATRIX, 0.8)
        np.testing.assert_allclose(together, apart, atol=1e-12, err_msg=f"strength = {strength}")


@pytest.mark.parametrize("name", CASES)
def test_a_bad_strength_in_a_batch_shows_as_nan_at_its_index(name):
    assert np.all(np.isfinite(_batch(name)[:-1]))
    assert np.any(np.isnan(_batch(name)[-1]))


@pytest.mark.parametrize("name", CASES)
def test_single_precision_stays_single(name):
    penalty = CASES[name][0](0.4)
    single, value = _look(penalty, MATRIX.astype(np.float32), 0.8)
    assert single.dtype == value.dtype == jnp.float32
    np.testing.assert_allclose(single, _look(penalty, MATRIX, 0.8)[0], atol=1e-5)


def test_a_norm_and_the_projection_on_its_dual_ball_add_up():
    clipped = np.clip(MATRIX, -0.4, 0.4)
    np.testing.assert_allclose(_look(l1(0.4), MATRIX, 1.0)[0], MATRIX - clipped, atol=1e-14)
    left, values, right = np.linalg.svd(MATRIX, full_matrices=False)
    on_ball = left * np.minimum(values, 0.4) @ right
    np.testing.assert_allclose(_look(nuclear(0.4), MATRIX, 1.0)[0], MATRIX - on_ball, atol=1e-12)


@pytest.mark.parametrize(
    "penalty", [l1(0.4), squared_l2(0.4), elastic_net(0.4, 1.0), indicator(sets.box(-0.2, 0.3))]
)
def test_separable_penalties_take_a_step_for_each_coordinate(penalty):
    v, steps = np.array([1.0, -0.7, 0.3]), np.array([0.1, 1.0, 5.0])
    together, _ = _look(penalty, {"a": v}, {"a": steps})
    apart = [_look(penalty, *pair)[0] for pair in zip(v, steps, strict=True)]
    np.testing.assert_allclose(together["a"], apart, atol=1e-15)


def test_groups_are_rows_of_matrices_and_whole_vectors():
    tree = {
        "a": np.array([[3.0, 4.0], [0.0, 1.0]]),
        "b": np.array([6.0, 8.0]),
        "c": np.array(2.0),
    }
    moved, value = _look(group_l2(1.0), tree, 1.0)
    np.testing.assert_allclose(moved["a"], [[2.4, 3.2], [0.0, 0.0]], atol=1e-14)
    np.testing.assert_allclose(moved["b"], [5.4, 7.2], atol=1e-14)
    np.testing.assert_allclose(moved["c"], 1.0)
    np.testing.assert_allclose(value, 5.0 + 1.0 + 10.0 + 2.0)


def test_the_box_is_free_inside_and_infinite_outside():
    penalty = indicator(sets.box(-1.0, np.array([1.0, 2.0])))
    assert _look(penalty, np.array([1.0, 2.0]), 0.5)[1] == 0
    assert _look(penalty, np.array([1.1, 0.0]), 0.5)[1] == np.inf
    np.testing.assert_allclose(_look(penalty, np.array([-3.0, 3.0]), 0.5)[0], [-1.0, 2.0])


def test_repeated_singular_values_have_a_derivative():
    prox = lambda v: nuclear(0.4).prox(v, 1.0)
    push = jax.jit(lambda v: jax.jvp(prox, (v,), (jnp.array(MATRIX),)))
    center, eps = np.eye(4, 3), 1e-6
    _, tangent = push(center)
    along = (push(center + eps * MATRIX)[0] - push(center - eps * MATRIX)[0]) / (2 * eps)
    np.testing.assert_allclose(tangent, along, atol=1e-8)


REFUSALS = [
    (lambda: l1(-0.1), "l1: `strength` must be non-negative, got -0.1."),
    (lambda: squared_l2(-1.0), "squared_l2: `strength` must be non-negative, got -1.0."),
    (lambda: elastic_net(1.0, -2.0), "elastic_net: `l2` must be non-negative, got -2.0."),
    (lambda: group_l2(-0.1), "group_l2: `strength` must be non-negative, got -0.1."),
    (lambda: nuclear(-0.1), "nuclear: `strength` must be non-negative, got -0.1."),
    (lambda: linf(-0.1), "linf: `strength` must be non-negative, got -0.1."),
    (lambda: indicator(sets.box(1.0, 0.5)), "box: `low` must not exceed `high`, got 1.0 and 0.5."),
]


@pytest.mark.parametrize(("make", "message"), REFUSALS)
def test_bad_values_are_refused(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()


def test_a_vector_has_no_nuclear_norm():
    with pytest.raises(TypeError, match="every array must be a matrix"):
        nuclear().value(jnp.ones(3))


def test_a_penalty_passes_through_jit():
    moved = jax.jit(lambda penalty, v: penalty.prox(v, 1.0))(l1(0.5), jnp.array([1.0, 0.2]))
    np.testing.assert_allclose(moved, [0.5, 0.0])
    assert isinstance(l1(), Penalty)
