"""Quadratic potentials with penalties against cvxpy, SciPy and finite differences."""

import re

import cvxpy
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from jax.tree_util import Partial

from olx.convex import sets
from olx.convex.prox import Penalty, elastic_net, group_l2, indicator, l1, linf, nuclear, squared_l2
from olx.mirrors.quadratic import full_quadratic, quadratic

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
    "box": (indicator(sets.box(-0.4, 0.5)), lambda w: 0.0),
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


def _any(name):
    """A penalty by its number, which is traced, so that all of them share one program."""
    if name == "none":
        return None
    index = list(CHOICES).index(name)
    return Penalty(Partial(_any_value, index), Partial(_any_prox, index))


def _any_value(index, w):
    return jax.lax.switch(index, [penalty.value for penalty in CHOICES.values()], w)


def _any_prox(index, v, step):
    return jax.lax.switch(index, [penalty.prox for penalty in CHOICES.values()], v, step)


CHOICES = {name: penalty for name, (penalty, _) in PENALTIES.items() if penalty is not None}


@jax.jit
def _full(penalty, matrix, strength, theta):
    """Decisions of a full quadratic as one compiled function of all its numbers."""
    return full_quadratic(matrix, penalty, strength).to_primal(theta)


@jax.jit
def _act(mirror, theta):
    return mirror.to_primal(theta)


@pytest.mark.parametrize("name", SEPARABLE)
def test_a_diagonal_decision_agrees_with_cvxpy(name):
    w = _act(quadratic(CURVATURE, SEPARABLE[name][0], 0.7), THETA)
    np.testing.assert_allclose(w, _decide(np.diag(CURVATURE), name, 0.7), atol=2e-6)


@pytest.mark.parametrize("name", ["group_l2", "linf"])
def test_one_curvature_takes_any_penalty(name):
    w = _act(quadratic(1.7, PENALTIES[name][0], 0.7), THETA)
    np.testing.assert_allclose(w, _decide(1.7 * np.eye(5), name, 0.7), atol=2e-6)


@pytest.mark.parametrize("name", PENALTIES)
def test_a_full_decision_agrees_with_cvxpy(name):
    w = _full(_any(name), MATRIX, 0.7, THETA)
    np.testing.assert_allclose(w, _decide(MATRIX, name, 0.7), atol=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_a_lasso_decision_satisfies_its_optimality_conditions_to_rounding(seed):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(5, 5)) * 10.0 ** rng.uniform(-1, 1, 5)
    matrix, theta = factor @ factor.T + 0.01 * np.eye(5), 5 * rng.normal(size=5)
    w = np.asarray(_full(_any("l1"), matrix, 0.7, theta))
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
    w = _full(_any("l1"), MATRIX, 0.7, THETA)
    np.testing.assert_allclose(w, found.x[:5] - found.x[5:], atol=1e-5)


@pytest.mark.parametrize("name", ["none", "l1", "box", "group_l2"])
def test_fenchel_young_holds_with_equality_at_the_decision(name):
    maps = [full_quadratic(MATRIX, PENALTIES[name][0], 0.7)]
    if name in SEPARABLE:
        maps.append(quadratic(CURVATURE, PENALTIES[name][0], 0.7))
    for mirror in maps:
        noise = np.array([[1e-3], [0.1], [1.0]]) * RNG.normal(size=(3, 5))
        closed, others = _gaps(mirror, noise)
        np.testing.assert_allclose(closed, 0.0, atol=1e-12)
        assert np.all(others >= -1e-12)


@jax.jit
def _gaps(mirror, noise):
    """At the decision, and at points of the box around it."""
    w = mirror.to_primal(THETA)
    others = jnp.clip(w + noise, -0.4, 0.5)
    return mirror.gap(w, THETA), jax.vmap(lambda other: mirror.gap(other, THETA))(others)


@pytest.mark.parametrize("name", PENALTIES)
def test_derivatives_of_a_full_decision_agree_with_differences(name):
    given, eps = (MATRIX, 0.7, THETA), 1e-6
    move = RNG.normal(size=(5, 5))
    moves = (move + move.T, 0.9, RNG.normal(size=5))
    shifted = lambda size: tuple(a + size * b for a, b in zip(given, moves, strict=True))
    ahead, behind = (np.asarray(_full(_any(name), *shifted(size))) for size in (eps, -eps))
    cotangent = RNG.normal(size=5)
    tangent, grads = _pushed_and_pulled(_any(name), given, moves, cotangent)
    np.testing.assert_allclose(tangent, (ahead - behind) / (2 * eps), rtol=1e-6, atol=1e-6)
    pulled = sum(np.sum(a * b) for a, b in zip(grads, moves, strict=True))
    np.testing.assert_allclose(pulled, cotangent @ tangent, rtol=1e-10)


@jax.jit
def _pushed_and_pulled(penalty, given, moves, cotangent):
    decide = lambda *given: _full(penalty, *given)
    _, tangent = jax.jvp(decide, given, moves)
    _, pull = jax.vjp(decide, *given)
    return tangent, pull(cotangent)


@pytest.mark.parametrize("name", ["l1", "group_l2"])
def test_second_derivatives_of_a_full_decision_agree_with_differences(name):
    decide = lambda r: _full(PENALTIES[name][0], r * MATRIX, 0.7 / r, THETA)
    look = jax.jit(jax.value_and_grad(jax.grad(lambda r: jnp.sum(jnp.sin(decide(r))))))
    (_, second), eps = look(1.1), 1e-6
    ahead, behind = look(1.1 + eps)[0], look(1.1 - eps)[0]
    np.testing.assert_allclose(second, (ahead - behind) / (2 * eps), rtol=1e-6)


def test_derivatives_of_a_diagonal_decision_agree_with_differences():
    decide = lambda c, r: quadratic(c, l1(), r).to_primal(jnp.array(THETA))
    look = jax.jit(jax.value_and_grad(lambda c, r: jnp.sum(jnp.sin(decide(c, r))), (0, 1)))
    value, eps = lambda c, r: look(c, r)[0], 1e-6
    slopes = look(CURVATURE, 0.5)[1]
    move = RNG.normal(size=5)
    along = value(CURVATURE + eps * move, 0.5) - value(CURVATURE - eps * move, 0.5)
    np.testing.assert_allclose(slopes[0] @ move, along / (2 * eps), rtol=1e-7)
    along = value(CURVATURE, 0.5 + eps) - value(CURVATURE, 0.5 - eps)
    np.testing.assert_allclose(slopes[1], along / (2 * eps), rtol=1e-7)


def test_the_gradient_of_the_conjugate_in_its_numbers_is_right():
    value = lambda r: quadratic(CURVATURE, l1(), r).conjugate(jnp.array(THETA))
    look, eps = jax.jit(jax.value_and_grad(value)), 1e-6
    along = (look(0.5 + eps)[0] - look(0.5 - eps)[0]) / (2 * eps)
    np.testing.assert_allclose(look(0.5)[1], along, rtol=1e-7)


@pytest.mark.parametrize("name", SEPARABLE)
def test_an_unseen_coordinate_is_zero_and_differentiable(name):
    def decide(c, r, theta):
        w = quadratic(c, SEPARABLE[name][0], r).to_primal(theta)
        return jnp.sum(w**2), w

    look = jax.jit(jax.grad(decide, (0, 1, 2), has_aux=True))
    grads, w = look(np.array([1.0, 0.0]), 0.3, np.array([1.5, 0.0]))
    assert w[1] == 0
    assert all(np.all(np.isfinite(grad)) for grad in grads)


@pytest.mark.parametrize(
    ("mirror", "matrix"),
    [
        (quadratic(CURVATURE, l1(), 0.7), np.diag(CURVATURE)),
        (full_quadratic(MATRIX, l1(), 0.7), MATRIX),
    ],
    ids=["diagonal", "full"],
)
def test_norms_agree_with_numpy_and_bound_the_drift(mirror, matrix):
    @jax.jit
    def look(z):
        norm, zero = mirror.norm, jnp.zeros(5)
        drift = mirror.dual_bregman(THETA + z, jnp.array(THETA))
        flat = jax.grad(norm.primal)(zero), jax.grad(norm.dual)(zero)
        return norm.primal(z), norm.dual(z), drift, mirror.energy(z), flat

    z = RNG.normal(size=5)
    primal, dual, drift, energy, flat = look(z)
    np.testing.assert_allclose(primal, np.sqrt(z @ matrix @ z))
    np.testing.assert_allclose(dual, np.sqrt(z @ np.linalg.inv(matrix) @ z))
    assert drift <= energy + 1e-12
    assert np.all(np.isfinite(flat))


def test_the_dual_norm_of_an_unseen_coordinate():
    size = jax.jit(quadratic(np.array([4.0, 0.0])).norm.dual)
    np.testing.assert_allclose(size(np.array([2.0, 0.0])), 1.0)
    assert size(np.array([2.0, 1.0])) == np.inf


def test_a_dictionary_is_a_long_vector():
    split = lambda v: {"a": v[:2], "b": v[2:]}
    flat = _act(quadratic(CURVATURE, l1(), 0.7), THETA)
    tree = _act(quadratic(split(CURVATURE), l1(), 0.7), split(THETA))
    np.testing.assert_allclose(np.concatenate([tree["a"], tree["b"]]), flat, atol=1e-15)
    single = _act(quadratic(2.0, l1(), 0.7), split(THETA))
    np.testing.assert_allclose(single["b"], _act(quadratic(2.0, l1(), 0.7), THETA)[2:])


def test_a_constraint_holds_at_strength_zero():
    mirror = quadratic(1.0, indicator(sets.box(-1.0, 1.0)), 0.0)
    look = jax.jit(lambda w: (mirror.potential(w), mirror.to_primal(w), mirror.contains(w)))
    potential, decision, inside = look(np.array([0.5, 2.0]))
    assert potential == np.inf
    np.testing.assert_allclose(decision, [0.5, 1.0])
    assert not inside


@pytest.mark.parametrize("name", ["none", "l1", "linf"])
def test_a_batch_of_full_quadratics_is_a_loop(name):
    strengths = np.array([0.0, 0.3, 2.0, 50.0])
    matrices = MATRIX * np.array([1.0, 2.0, 0.5, 1.0])[:, None, None]
    together = _full_batch(_any(name), matrices, strengths, THETA)
    for matrix, strength, w in zip(matrices, strengths, together, strict=True):
        apart = _full(_any(name), matrix, float(strength), THETA)
        np.testing.assert_allclose(w, apart, atol=1e-11, err_msg=f"strength = {strength}")


_full_batch = jax.jit(jax.vmap(_full, (None, 0, 0, None)))


def test_a_batch_of_diagonal_quadratics_is_a_loop():
    strengths = np.array([0.0, 0.3, 2.0])
    decide = lambda r: quadratic(CURVATURE, l1(), r).to_primal(jnp.array(THETA))
    apart = [_act(quadratic(CURVATURE, l1(), float(r)), THETA) for r in strengths]
    np.testing.assert_allclose(jax.jit(jax.vmap(decide))(strengths), apart, atol=1e-15)


def test_a_bad_curvature_in_a_batch_shows_as_nan_at_its_index():
    decide = lambda c: quadratic(c, l1(), 0.1).to_primal(jnp.array(THETA))
    w = np.asarray(jax.jit(jax.vmap(decide))(np.array([1.0, -1.0])))
    assert np.all(np.isfinite(w[0]))
    assert np.all(np.isnan(w[1]))


def test_single_precision_stays_single():
    curvature, matrix, theta = (a.astype(np.float32) for a in (CURVATURE, MATRIX, THETA))
    assert _act(quadratic(curvature, l1(), 0.7), theta).dtype == jnp.float32
    w = _act(full_quadratic(matrix, l1(0.8), 0.7), theta)
    assert w.dtype == jnp.float32
    wanted = _full(_any("l1"), MATRIX, 0.7, THETA)
    np.testing.assert_allclose(w, wanted, rtol=1e-3, atol=1e-4)


REFUSALS = [
    (lambda: quadratic(-1.0), "quadratic: `curvature` must be non-negative, got -1.0."),
    (lambda: quadratic(1.0, l1(), -0.1), "quadratic: `strength` must be non-negative, got -0.1."),
    (
        lambda: full_quadratic(np.diag([1.0, -2.0])),
        "full_quadratic: `matrix` must be positive definite, got an eigenvalue of -2.",
    ),
    (
        lambda: full_quadratic(np.array([[1.0, 0.5], [0.0, 1.0]])),
        "full_quadratic: `matrix` must be symmetric.",
    ),
    (
        lambda: full_quadratic(np.eye(2), l1(), -1.0),
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
