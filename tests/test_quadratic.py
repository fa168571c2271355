"""Quadratic potentials with penalties against cvxpy, SciPy and finite differences."""

import functools
import re

import cvxpy
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from olx.convex.full_quadratic import full_quadratic
from olx.convex.prox import box, elastic_net, group_l2, l1, linf, nuclear, squared_l2
from olx.convex.quadratic import quadratic

RNG = np.random.default_rng(23)
CURVATURE = RNG.exponential(size=5) + 0.2
THETA = 2 * RNG.normal(size=5)
FACTOR = RNG.normal(size=(5, 5))
MATRIX = FACTOR @ FACTOR.T + 0.1 * np.eye(5)

SEPARABLE = {
    "none": (None, lambda w: 0.0),
    "l1": (l1(0.8), lambda w: 0.8 * cvxpy.norm1(w)),
    "squared_l2": (squared_l2(0.8), lambda w: 0.4 * cvxpy.sum_squares(w)),
    "elastic_net": (
        elastic_net(0.8, 0.5),
        lambda w: 0.8 * cvxpy.norm1(w) + 0.25 * cvxpy.sum_squares(w),
    ),
    "box": (box(-0.4, 0.5), lambda w: 0.0),
}
PENALTIES = SEPARABLE | {
    "group_l2": (group_l2(0.8), lambda w: 0.8 * cvxpy.norm2(w)),
    "linf": (linf(0.8), lambda w: 0.8 * cvxpy.norm_inf(w)),
}


def _decide(matrix, name, strength, theta=THETA):
    w = cvxpy.Variable(theta.size)
    smooth = cvxpy.quad_form(w, cvxpy.psd_wrap(matrix)) / 2 - theta @ w
    within = [w >= -0.4, w <= 0.5] if name == "box" else []
    problem = cvxpy.Problem(cvxpy.Minimize(smooth + strength * PENALTIES[name][1](w)), within)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return w.value


@functools.cache
def _full(name):
    """Decisions of a full quadratic as one compiled function of all its numbers."""
    make = lambda matrix, strength: full_quadratic(matrix, PENALTIES[name][0], strength)
    return jax.jit(lambda matrix, strength, theta: make(matrix, strength).to_primal(theta))


@pytest.mark.parametrize("name", SEPARABLE)
def test_a_diagonal_decision_agrees_with_cvxpy(name):
    w = quadratic(jnp.array(CURVATURE), SEPARABLE[name][0], 0.7).to_primal(jnp.array(THETA))
    np.testing.assert_allclose(w, _decide(np.diag(CURVATURE), name, 0.7), atol=2e-6)


@pytest.mark.parametrize("name", ["group_l2", "linf"])
def test_one_curvature_takes_any_penalty(name):
    w = quadratic(1.7, PENALTIES[name][0], 0.7).to_primal(jnp.array(THETA))
    np.testing.assert_allclose(w, _decide(1.7 * np.eye(5), name, 0.7), atol=2e-6)


@pytest.mark.parametrize("name", PENALTIES)
def test_a_full_decision_agrees_with_cvxpy(name):
    w = _full(name)(jnp.array(MATRIX), 0.7, jnp.array(THETA))
    np.testing.assert_allclose(w, _decide(MATRIX, name, 0.7), atol=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_a_lasso_decision_satisfies_its_optimality_conditions_to_rounding(seed):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(5, 5)) * 10.0 ** rng.uniform(-1, 1, 5)
    matrix, theta = factor @ factor.T + 0.01 * np.eye(5), 5 * rng.normal(size=5)
    w = np.asarray(_full("l1")(jnp.array(matrix), 0.7, jnp.array(theta)))
    slope = theta - matrix @ w
    rounding = 1e-13 * (np.abs(matrix) @ np.abs(w) + np.abs(theta)).max()
    np.testing.assert_allclose(slope[w != 0], 0.56 * np.sign(w[w != 0]), atol=rounding)
    assert np.all(np.abs(slope[w == 0]) <= 0.56 + rounding)


def test_a_lasso_agrees_with_scipy_on_its_split_form():
    split = np.block([[MATRIX, -MATRIX], [-MATRIX, MATRIX]])
    cost = lambda w: w @ split @ w / 2 - np.concatenate([THETA, -THETA]) @ w + 0.56 * w.sum()
    slope = lambda w: split @ w - np.concatenate([THETA, -THETA]) + 0.56
    found = scipy.optimize.minimize(
        cost,
        np.zeros(10),
        jac=slope,
        bounds=[(0, None)] * 10,
        method="L-BFGS-B",
        options={"ftol": 1e-16, "gtol": 1e-10, "maxiter": 10_000},
    )
    w = _full("l1")(jnp.array(MATRIX), 0.7, jnp.array(THETA))
    np.testing.assert_allclose(w, found.x[:5] - found.x[5:], atol=1e-5)


@pytest.mark.parametrize("name", ["none", "l1", "box", "group_l2"])
def test_fenchel_young_holds_with_equality_at_the_decision(name):
    maps = [full_quadratic(jnp.array(MATRIX), PENALTIES[name][0], 0.7)]
    if name in SEPARABLE:
        maps.append(quadratic(jnp.array(CURVATURE), PENALTIES[name][0], 0.7))
    for mirror in maps:
        theta = jnp.array(THETA)
        w = jax.jit(mirror.to_primal)(theta)
        gaps = jax.jit(mirror.gap)
        np.testing.assert_allclose(gaps(w, theta), 0.0, atol=1e-12)
        for scale in (1e-3, 0.1, 1.0):
            other = jnp.clip(w + scale * jnp.array(RNG.normal(size=5)), -0.4, 0.5)
            assert gaps(other, theta) >= -1e-12


@pytest.mark.parametrize("name", PENALTIES)
def test_derivatives_of_a_full_decision_agree_with_differences(name):
    decide = _full(name)
    given, eps = (jnp.array(MATRIX), 0.7, jnp.array(THETA)), 1e-6
    move = jnp.array(RNG.normal(size=(5, 5)))
    moves = (move + move.T, 0.9, jnp.array(RNG.normal(size=5)))
    shifted = lambda size: tuple(a + size * b for a, b in zip(given, moves, strict=True))
    along = (decide(*shifted(eps)) - decide(*shifted(-eps))) / (2 * eps)
    _, tangent = jax.jvp(decide, given, moves)
    np.testing.assert_allclose(tangent, along, rtol=1e-6, atol=1e-6)
    cotangent = jnp.array(RNG.normal(size=5))
    grads = jax.jit(jax.grad(lambda *given: decide(*given) @ cotangent, (0, 1, 2)))(*given)
    pulled = sum(np.sum(a * b) for a, b in zip(grads, moves, strict=True))
    np.testing.assert_allclose(pulled, cotangent @ tangent, rtol=1e-10)


@pytest.mark.parametrize("name", ["l1", "group_l2"])
def test_second_derivatives_of_a_full_decision_agree_with_differences(name):
    decide = _full(name)
    loss = lambda r: jnp.sum(jnp.sin(decide(r * MATRIX, 0.7 / r, jnp.array(THETA))))
    slope, eps = jax.jit(jax.grad(loss)), 1e-6
    second = jax.jit(jax.grad(jax.grad(loss)))(1.1)
    np.testing.assert_allclose(second, (slope(1.1 + eps) - slope(1.1 - eps)) / (2 * eps), rtol=1e-6)


def test_derivatives_of_a_diagonal_decision_agree_with_differences():
    loss = lambda c, r: jnp.sum(jnp.sin(quadratic(c, l1(), r).to_primal(jnp.array(THETA))))
    c, eps = jnp.array(CURVATURE), 1e-6
    slopes = jax.grad(loss, (0, 1))(c, 0.5)
    move = jnp.array(RNG.normal(size=5))
    along = (loss(c + eps * move, 0.5) - loss(c - eps * move, 0.5)) / (2 * eps)
    np.testing.assert_allclose(slopes[0] @ move, along, rtol=1e-7)
    along = (loss(c, 0.5 + eps) - loss(c, 0.5 - eps)) / (2 * eps)
    np.testing.assert_allclose(slopes[1], along, rtol=1e-7)


def test_the_gradient_of_the_conjugate_in_its_numbers_is_right():
    value = lambda c, r: quadratic(c, l1(), r).conjugate(jnp.array(THETA))
    eps = 1e-6
    slope = jax.grad(value, 1)(jnp.array(CURVATURE), 0.5)
    along = (value(CURVATURE, 0.5 + eps) - value(CURVATURE, 0.5 - eps)) / (2 * eps)
    np.testing.assert_allclose(slope, along, rtol=1e-7)


@pytest.mark.parametrize("name", SEPARABLE)
def test_an_unseen_coordinate_is_zero_and_differentiable(name):
    curvature, theta = jnp.array([1.0, 0.0]), jnp.array([1.5, 0.0])
    decide = lambda c, r, theta: quadratic(c, SEPARABLE[name][0], r).to_primal(theta)
    assert decide(curvature, 0.3, theta)[1] == 0
    grads = jax.grad(lambda *given: jnp.sum(decide(*given) ** 2), (0, 1, 2))(curvature, 0.3, theta)
    assert all(np.all(np.isfinite(grad)) for grad in grads)


def test_norms_agree_with_numpy_and_bound_the_drift():
    theta, z = jnp.array(THETA), jnp.array(RNG.normal(size=5))
    for mirror, matrix in [
        (quadratic(jnp.array(CURVATURE), l1(), 0.7), np.diag(CURVATURE)),
        (full_quadratic(jnp.array(MATRIX), l1(), 0.7), MATRIX),
    ]:
        np.testing.assert_allclose(mirror.norm.primal(z), np.sqrt(z @ matrix @ z))
        np.testing.assert_allclose(mirror.norm.dual(z), np.sqrt(z @ np.linalg.inv(matrix) @ z))
        assert jax.jit(mirror.dual_bregman)(theta + z, theta) <= mirror.energy(z) + 1e-12
        zero = jnp.zeros(5)
        assert np.all(np.isfinite(jax.grad(mirror.norm.primal)(zero)))
        assert np.all(np.isfinite(jax.grad(mirror.norm.dual)(zero)))


def test_the_dual_norm_of_an_unseen_coordinate():
    norm = quadratic(jnp.array([4.0, 0.0])).norm
    np.testing.assert_allclose(norm.dual(jnp.array([2.0, 0.0])), 1.0)
    assert norm.dual(jnp.array([2.0, 1.0])) == jnp.inf


def test_a_dictionary_is_a_long_vector():
    split = lambda v: {"a": jnp.array(v[:2]), "b": jnp.array(v[2:])}
    flat = quadratic(jnp.array(CURVATURE), l1(), 0.7).to_primal(jnp.array(THETA))
    tree = quadratic(split(CURVATURE), l1(), 0.7).to_primal(split(THETA))
    np.testing.assert_allclose(jnp.concatenate([tree["a"], tree["b"]]), flat, atol=1e-15)
    single = quadratic(2.0, l1(), 0.7).to_primal(split(THETA))
    np.testing.assert_allclose(
        single["b"], quadratic(2.0, l1(), 0.7).to_primal(jnp.array(THETA))[2:]
    )


def test_a_constraint_holds_at_strength_zero():
    mirror = quadratic(1.0, box(-1.0, 1.0), 0.0)
    assert mirror.potential(jnp.array([0.5, 2.0])) == jnp.inf
    np.testing.assert_allclose(mirror.to_primal(jnp.array([0.5, 2.0])), [0.5, 1.0])
    assert not mirror.contains(jnp.array([0.5, 2.0]))


@pytest.mark.parametrize("name", ["none", "l1", "linf"])
def test_a_batch_of_full_quadratics_is_a_loop(name):
    strengths = jnp.array([0.0, 0.3, 2.0, 50.0])
    matrices = jnp.array(MATRIX) * jnp.array([1.0, 2.0, 0.5, 1.0])[:, None, None]
    decide = lambda matrix, strength: _full(name)(matrix, strength, jnp.array(THETA))
    together = jax.vmap(decide)(matrices, strengths)
    apart = [decide(m, float(s)) for m, s in zip(matrices, strengths, strict=True)]
    np.testing.assert_allclose(together, jnp.stack(apart), atol=1e-11)


def test_a_batch_of_diagonal_quadratics_is_a_loop():
    strengths = jnp.array([0.0, 0.3, 2.0])
    decide = lambda r: quadratic(jnp.array(CURVATURE), l1(), r).to_primal(jnp.array(THETA))
    apart = jnp.stack([decide(float(r)) for r in strengths])
    np.testing.assert_allclose(jax.vmap(decide)(strengths), apart, atol=1e-15)


def test_a_bad_curvature_in_a_batch_shows_as_nan_at_its_index():
    decide = lambda c: quadratic(c, l1(), 0.1).to_primal(jnp.array(THETA))
    w = jax.vmap(decide)(jnp.array([1.0, -1.0]))
    assert np.all(np.isfinite(w[0]))
    assert np.all(np.isnan(w[1]))


def test_single_precision_stays_single():
    theta = jnp.array(THETA, jnp.float32)
    w = quadratic(jnp.array(CURVATURE, jnp.float32), l1(), 0.7).to_primal(theta)
    assert w.dtype == jnp.float32
    w = jax.jit(full_quadratic(jnp.array(MATRIX, jnp.float32), l1(0.8), 0.7).to_primal)(theta)
    assert w.dtype == jnp.float32
    wanted = _full("l1")(jnp.array(MATRIX), 0.7, jnp.array(THETA))
    np.testing.assert_allclose(w, wanted, rtol=1e-3, atol=1e-4)


REFUSALS = [
    (lambda: quadratic(-1.0), "quadratic: `curvature` must be non-negative, got -1.0."),
    (lambda: quadratic(1.0, l1(), -0.1), "quadratic: `strength` must be non-negative, got -0.1."),
    (
        lambda: full_quadratic(jnp.diag(jnp.array([1.0, -2.0]))),
        "full_quadratic: `matrix` must be positive definite, got an eigenvalue of -2.",
    ),
    (
        lambda: full_quadratic(jnp.array([[1.0, 0.5], [0.0, 1.0]])),
        "full_quadratic: `matrix` must be symmetric.",
    ),
    (
        lambda: full_quadratic(jnp.eye(2), l1(), -1.0),
        "full_quadratic: `strength` must be non-negative, got -1.0.",
    ),
]


@pytest.mark.parametrize(("make", "message"), REFUSALS)
def test_bad_values_are_refused(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()


@pytest.mark.parametrize("penalty", [group_l2(), linf(), nuclear()])
def test_a_penalty_that_mixes_coordinates_refuses_a_curvature_for_each(penalty):
    with pytest.raises(TypeError, match="needs one curvature for all of them"):
        quadratic(jnp.array(CURVATURE), penalty)


def test_a_vector_of_curvatures_is_no_matrix():
    with pytest.raises(TypeError, match=r"must be square, got shape \(5,\)"):
        full_quadratic(jnp.array(CURVATURE))
