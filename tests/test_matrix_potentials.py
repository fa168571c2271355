"""Potentials of matrices against NumPy, SciPy, cvxpy and finite differences."""

import re

import cvxpy
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.tree_util import Partial

from olx.convex import _spectral as spectral
from olx.convex.log_det import log_det
from olx.convex.schatten import schatten, schatten_norm, spectral_norm, trace_norm
from olx.convex.von_neumann import von_neumann

RNG = np.random.default_rng(11)


def _symmetric(d=3):
    a = RNG.normal(size=(d, d))
    return (a + a.T) / 2


def _density(d=3):
    a = RNG.normal(size=(d, d))
    return (a @ a.T + 0.1 * np.eye(d)) / np.trace(a @ a.T + 0.1 * np.eye(d))


THETA, DENSITY, WIDE = _symmetric(), _density(), RNG.normal(size=(2, 3))

REPEATED = {
    "zero": np.zeros((3, 3)),
    "identity": np.eye(3),
    "two equal": np.diag([1.0, 1.0, -0.5]),
    "nearly equal": np.diag([1.0, 1.0 + 1e-9, 1.05]),
    "generic": THETA,
}

# mirror map, duals, decisions
MAPS = {
    "von_neumann": (von_neumann(0.7), THETA, DENSITY),
    "schatten": (schatten(1.5), WIDE, RNG.normal(size=(2, 3))),
    "schatten 2": (schatten(2.0), WIDE, RNG.normal(size=(2, 3))),
    "log_det": (log_det(0.7), -_density() - np.eye(3), _density() + np.eye(3)),
}


def _hessian_by_differences(slope, at, eps=1e-5):
    columns = []
    for i in range(at.size):
        move = np.zeros(at.size)
        move[i] = eps
        move = move.reshape(at.shape)
        columns.append((slope(at + move) - slope(at - move)).ravel() / (2 * eps))
    return np.stack(columns, 1)


def test_the_von_neumann_conjugate_agrees_with_scipy():
    exponential = scipy.linalg.expm(THETA / 0.7)
    mirror = von_neumann(0.7)
    wanted = 0.7 * (np.log(np.trace(exponential)) - np.log(3))
    np.testing.assert_allclose(mirror.conjugate(jnp.array(THETA)), wanted, rtol=1e-12)
    softmax = exponential / np.trace(exponential)
    np.testing.assert_allclose(mirror.to_primal(jnp.array(THETA)), softmax, atol=1e-13)


def test_the_von_neumann_potential_agrees_with_scipy():
    wanted = 0.7 * (np.trace(DENSITY @ scipy.linalg.logm(DENSITY)) + np.log(3))
    np.testing.assert_allclose(von_neumann(0.7).potential(jnp.array(DENSITY)), wanted, rtol=1e-12)
    np.testing.assert_allclose(von_neumann().potential(jnp.eye(3) / 3), 0.0, atol=1e-14)


def test_von_neumann_decisions_are_exactly_symmetric_densities():
    skewed = THETA + np.triu(RNG.normal(size=(3, 3)), 1)
    w = von_neumann(0.1).to_primal(jnp.array(skewed))
    np.testing.assert_array_equal(w, w.T)
    np.testing.assert_allclose(jnp.trace(w), 1.0, atol=1e-14)
    assert np.all(np.linalg.eigvalsh(w) >= -1e-15)
    assert von_neumann().contains(w)
    assert not von_neumann().contains(2 * w)


def test_a_pure_state_is_a_legal_comparator():
    v = np.array([0.6, 0.8, 0.0])
    pure = jnp.array(np.outer(v, v))
    np.testing.assert_allclose(von_neumann().potential(pure), np.log(3), rtol=1e-10)
    assert np.all(np.isfinite(von_neumann().to_dual(pure)))


def test_a_huge_dual_gives_a_pure_state():
    w = von_neumann().to_primal(jnp.diag(jnp.array([1e5, 0.0, -1e5])))
    np.testing.assert_allclose(w, np.diag([1.0, 0.0, 0.0]), atol=1e-14)


@pytest.mark.parametrize("q", [1.1, 1.5, 2.0])
def test_schatten_agrees_with_numpy(q):
    norm = lambda a, q: np.sum(np.linalg.svd(a)[1] ** q) ** (1 / q)
    p = q / (q - 1)
    mirror = schatten(q)
    np.testing.assert_allclose(
        mirror.potential(jnp.array(WIDE)), norm(WIDE, q) ** 2 / (2 * (q - 1))
    )
    np.testing.assert_allclose(
        mirror.conjugate(jnp.array(WIDE)), norm(WIDE, p) ** 2 / (2 * (p - 1))
    )
    left, values, right = np.linalg.svd(WIDE, full_matrices=False)
    scaled = values ** (p - 1) / ((p - 1) * norm(WIDE, p) ** (p - 2))
    np.testing.assert_allclose(mirror.to_primal(jnp.array(WIDE)), left * scaled @ right, atol=1e-12)


def test_log_det_agrees_with_numpy():
    w = MAPS["log_det"][2]
    mirror = log_det(0.7)
    np.testing.assert_allclose(mirror.potential(jnp.array(w)), -0.7 * np.log(np.linalg.det(w)))
    np.testing.assert_allclose(mirror.to_dual(jnp.array(w)), -0.7 * np.linalg.inv(w), atol=1e-12)
    assert mirror.potential(-jnp.eye(3)) == jnp.inf
    assert mirror.conjugate(jnp.eye(3)) == jnp.inf
    assert not mirror.contains(-jnp.eye(3))


@pytest.mark.parametrize("name", MAPS)
def test_there_and_back_is_the_identity(name):
    mirror, theta, w = MAPS[name]
    np.testing.assert_allclose(mirror.to_primal(mirror.to_dual(jnp.array(w))), w, atol=1e-10)
    point = mirror.to_primal(jnp.array(theta))
    np.testing.assert_allclose(mirror.retract(jnp.array(theta)), mirror.to_dual(point), atol=1e-9)


@pytest.mark.parametrize("name", MAPS)
def test_fenchel_young_holds_with_equality_at_the_decision(name):
    mirror, theta, w = MAPS[name]
    theta = jnp.array(theta)
    np.testing.assert_allclose(mirror.gap(mirror.to_primal(theta), theta), 0.0, atol=1e-10)
    assert mirror.gap(jnp.array(w), theta) > 1e-3


@pytest.mark.parametrize("name", [name for name in MAPS if name != "log_det"])
def test_strong_convexity_holds_in_the_norm(name):
    mirror, theta, _ = MAPS[name]
    other = jnp.array(theta + 0.3 * (_symmetric() if theta.shape == (3, 3) else WIDE[::-1]))
    drift = mirror.dual_bregman(other, jnp.array(theta))
    assert drift <= mirror.norm.dual(other - theta) ** 2 / (2 * mirror.modulus) + 1e-12
    u, w = mirror.to_primal(other), mirror.to_primal(jnp.array(theta))
    assert mirror.bregman(u, w) >= mirror.modulus / 2 * mirror.norm.primal(u - w) ** 2 - 1e-12


@pytest.mark.parametrize("case", REPEATED)
def test_the_second_derivative_of_von_neumann_agrees_with_differences(case):
    slope = jax.jit(jax.grad(von_neumann(0.7).conjugate))
    theta = jnp.array(REPEATED[case])
    hessian = jax.jit(jax.hessian(von_neumann(0.7).conjugate))(theta).reshape(9, 9)
    np.testing.assert_allclose(hessian, _hessian_by_differences(slope, theta), atol=1e-8)


@pytest.mark.parametrize("q", [1.3, 2.0])
@pytest.mark.parametrize("case", ["identity", "two equal", "generic"])
def test_the_second_derivative_of_schatten_agrees_with_differences(q, case):
    slope = jax.jit(jax.grad(schatten(q).conjugate))
    theta = jnp.array(REPEATED[case])
    hessian = jax.jit(jax.hessian(schatten(q).conjugate))(theta).reshape(9, 9)
    np.testing.assert_allclose(hessian, _hessian_by_differences(slope, theta), atol=1e-7)


@pytest.mark.parametrize("q", [1.3, 2.0])
def test_schatten_is_safe_at_zero(q):
    zero = jnp.zeros((2, 3))
    for f in (schatten(q).potential, schatten(q).conjugate):
        np.testing.assert_array_equal(jax.jit(jax.grad(f))(zero), zero)
        assert np.all(np.isfinite(jax.jit(jax.hessian(f))(zero)))
    by_q = lambda q, w: schatten(q).conjugate(w)
    assert np.isfinite(jax.grad(by_q)(q, zero))


def test_the_frobenius_case_has_the_identity_as_second_derivative_at_zero():
    hessian = jax.jit(jax.hessian(schatten(2.0).conjugate))(jnp.zeros((2, 3))).reshape(6, 6)
    np.testing.assert_allclose(hessian, np.eye(6), atol=1e-14)


@pytest.mark.parametrize("case", REPEATED)
def test_the_second_derivative_of_log_det_agrees_with_differences(case):
    theta = jnp.array(REPEATED[case] - 4 * np.eye(3))
    slope = jax.jit(jax.grad(log_det(0.7).conjugate))
    hessian = jax.jit(jax.hessian(log_det(0.7).conjugate))(theta).reshape(9, 9)
    np.testing.assert_allclose(hessian, _hessian_by_differences(slope, theta), atol=1e-8)


@pytest.mark.parametrize("case", REPEATED)
def test_a_reverse_derivative_of_decisions_agrees_with_differences(case):
    loss = jax.jit(lambda s, theta: jnp.sum(jnp.sin(von_neumann(s).to_primal(theta) * 3)))
    theta, eps = jnp.array(REPEATED[case]), 1e-5
    slope = jax.grad(loss)(0.7, theta)
    difference = (loss(0.7 + eps, theta) - loss(0.7 - eps, theta)) / (2 * eps)
    np.testing.assert_allclose(slope, difference, atol=1e-8)
    move = _symmetric()
    along = (loss(0.7, theta + eps * move) - loss(0.7, theta - eps * move)) / (2 * eps)
    np.testing.assert_allclose(jnp.vdot(jax.grad(loss, 1)(0.7, theta), move), along, atol=1e-8)


@pytest.mark.parametrize("case", REPEATED)
def test_a_function_of_a_matrix_has_every_forward_derivative(case):
    curve = spectral.Curve(Partial(jnp.exp), Partial(jnp.ones_like))
    a, moves = REPEATED[case], [_symmetric() for _ in range(2)]
    mine = lambda a: spectral.apply(curve, a)
    first = lambda a: jax.jvp(mine, (a,), (jnp.array(moves[0]),))[1]
    second = jax.jvp(first, (jnp.array(a),), (jnp.array(moves[1]),))[1]
    wanted = scipy.linalg.expm_frechet(a, moves[0], compute_expm=False)
    np.testing.assert_allclose(first(jnp.array(a)), wanted, atol=1e-12)
    eps = 1e-5
    frechet = lambda a: scipy.linalg.expm_frechet(a, moves[0], compute_expm=False)
    difference = (frechet(a + eps * moves[1]) - frechet(a - eps * moves[1])) / (2 * eps)
    np.testing.assert_allclose(second, difference, atol=1e-8)


def test_norms_agree_with_cvxpy_and_are_dual():
    a, b = WIDE, RNG.normal(size=(2, 3))
    np.testing.assert_allclose(trace_norm().primal(jnp.array(a)), cvxpy.normNuc(a).value, rtol=1e-9)
    np.testing.assert_allclose(trace_norm().dual(jnp.array(a)), cvxpy.sigma_max(a).value, rtol=1e-9)
    for norm in (trace_norm(), spectral_norm(), schatten_norm(1.4)):
        assert np.sum(a * b) <= norm.primal(jnp.array(a)) * norm.dual(jnp.array(b)) + 1e-12
        dual = jax.grad(norm.primal)(jnp.array(a))
        np.testing.assert_allclose(norm.dual(dual), 1.0, rtol=1e-10)
        np.testing.assert_allclose(jnp.sum(dual * a), norm.primal(jnp.array(a)), rtol=1e-10)


def test_a_density_closest_in_entropy_agrees_with_cvxpy():
    w = cvxpy.Variable((3, 3), symmetric=True)
    objective = cvxpy.Maximize(cvxpy.trace(THETA @ w) + 0.7 * cvxpy.von_neumann_entr(w))
    cvxpy.Problem(objective, [cvxpy.trace(w) == 1]).solve(solver="CLARABEL")
    np.testing.assert_allclose(von_neumann(0.7).to_primal(jnp.array(THETA)), w.value, atol=1e-5)


@pytest.mark.parametrize(
    ("make", "theta", "numbers"),
    [
        (von_neumann, THETA, [0.5, 1.0, 2.0]),
        (schatten, WIDE, [1.1, 1.5, 2.0]),
        (log_det, -DENSITY - np.eye(3), [0.5, 1.0, 2.0]),
    ],
    ids=["von_neumann", "schatten", "log_det"],
)
def test_a_batch_is_a_loop(make, theta, numbers):
    theta = jnp.array(theta)
    together = jax.vmap(lambda s: make(s).to_primal(theta))(jnp.array(numbers))
    apart = jnp.stack([make(s).to_primal(theta) for s in numbers])
    np.testing.assert_allclose(together, apart, atol=1e-12)


@pytest.mark.parametrize("name", MAPS)
def test_single_precision_stays_single(name):
    mirror, theta, _ = MAPS[name]
    single = mirror.to_primal(jnp.array(theta, jnp.float32))
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, mirror.to_primal(jnp.array(theta)), atol=1e-5)


REFUSALS = [
    (lambda: von_neumann(0.0), "von_neumann: `scale` must be positive, got 0.0."),
    (lambda: log_det(-1.0), "log_det: `scale` must be positive, got -1.0."),
    (lambda: schatten(1.0), "schatten: `q` must lie in (1, 2], got 1.0."),
    (lambda: schatten(2.5), "schatten: `q` must lie in (1, 2], got 2.5."),
]


@pytest.mark.parametrize(("make", "message"), REFUSALS)
def test_bad_values_are_refused(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()


@pytest.mark.parametrize("mirror", [von_neumann(), log_det(), schatten(1.5)])
def test_a_vector_is_not_a_matrix(mirror):
    with pytest.raises(TypeError, match="a decision must be a"):
        mirror.conjugate(jnp.ones(3))
