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
from olx.convex.norms import schatten_norm, spectral_norm, trace_norm
from olx.mirrors.log_det import log_det
from olx.mirrors.schatten import schatten
from olx.mirrors.von_neumann import von_neumann

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


@jax.jit
def _look(mirror, theta, w):
    """All that a map says of a dual and a decision."""
    decision, dual = mirror.to_primal(theta), mirror.to_dual(w)
    return {
        "potential": mirror.potential(w),
        "conjugate": mirror.conjugate(theta),
        "primal": decision,
        "dual": dual,
        "contains": True if mirror.contains is None else mirror.contains(w),
        "back": mirror.to_primal(dual),
        "retract": mirror.retract(theta),
        "dual of decision": mirror.to_dual(decision),
        "closed gap": mirror.gap(decision, theta),
        "gap": mirror.gap(w, theta),
    }


@jax.jit
def _decide(mirror, theta):
    return mirror.to_primal(theta)


@jax.jit
def _hessian(mirror, theta):
    """Of the conjugate, and its slope."""
    slope = lambda theta: (jax.grad(mirror.conjugate)(theta),) * 2
    return jax.jacfwd(slope, has_aux=True)(theta)


def _check_hessian(mirror, at, atol, eps=1e-5):
    columns = []
    for move in eps * np.eye(at.size).reshape(-1, *at.shape):
        ahead, behind = _hessian(mirror, at + move)[1], _hessian(mirror, at - move)[1]
        columns.append(np.ravel(ahead - behind) / (2 * eps))
    hessian = np.reshape(_hessian(mirror, at)[0], (at.size, at.size))
    np.testing.assert_allclose(hessian, np.stack(columns, 1), atol=atol)


def test_the_von_neumann_conjugate_agrees_with_scipy():
    exponential = scipy.linalg.expm(THETA / 0.7)
    seen = _look(von_neumann(0.7), THETA, DENSITY)
    wanted = 0.7 * (np.log(np.trace(exponential)) - np.log(3))
    np.testing.assert_allclose(seen["conjugate"], wanted, rtol=1e-12)
    softmax = exponential / np.trace(exponential)
    np.testing.assert_allclose(seen["primal"], softmax, atol=1e-13)


def test_the_von_neumann_potential_agrees_with_scipy():
    wanted = 0.7 * (np.trace(DENSITY @ scipy.linalg.logm(DENSITY)) + np.log(3))
    seen = _look(von_neumann(0.7), THETA, DENSITY)["potential"]
    np.testing.assert_allclose(seen, wanted, rtol=1e-12)
    seen = _look(von_neumann(), THETA, np.eye(3) / 3)["potential"]
    np.testing.assert_allclose(seen, 0.0, atol=1e-14)


def test_von_neumann_decisions_are_exactly_symmetric_densities():
    skewed = THETA + np.triu(RNG.normal(size=(3, 3)), 1)
    w = np.asarray(_decide(von_neumann(0.1), skewed))
    np.testing.assert_array_equal(w, w.T)
    np.testing.assert_allclose(np.trace(w), 1.0, atol=1e-14)
    assert np.all(np.linalg.eigvalsh(w) >= -1e-15)
    assert _look(von_neumann(), THETA, w)["contains"]
    assert not _look(von_neumann(), THETA, 2 * w)["contains"]


def test_a_pure_state_is_a_legal_comparator():
    v = np.array([0.6, 0.8, 0.0])
    seen = _look(von_neumann(), THETA, np.outer(v, v))
    np.testing.assert_allclose(seen["potential"], np.log(3), rtol=1e-10)
    assert np.all(np.isfinite(seen["dual"]))


def test_a_huge_dual_gives_a_pure_state():
    w = _decide(von_neumann(), np.diag([1e5, 0.0, -1e5]))
    np.testing.assert_allclose(w, np.diag([1.0, 0.0, 0.0]), atol=1e-14)


@pytest.mark.parametrize("q", [1.1, 1.5, 2.0])
def test_schatten_agrees_with_numpy(q):
    norm = lambda a, q: np.sum(np.linalg.svd(a)[1] ** q) ** (1 / q)
    p = q / (q - 1)
    seen = _look(schatten(q), WIDE, WIDE)
    np.testing.assert_allclose(seen["potential"], norm(WIDE, q) ** 2 / (2 * (q - 1)))
    np.testing.assert_allclose(seen["conjugate"], norm(WIDE, p) ** 2 / (2 * (p - 1)))
    left, values, right = np.linalg.svd(WIDE, full_matrices=False)
    scaled = values ** (p - 1) / ((p - 1) * norm(WIDE, p) ** (p - 2))
    np.testing.assert_allclose(seen["primal"], left * scaled @ right, atol=1e-12)


def test_log_det_agrees_with_numpy():
    mirror, theta, w = MAPS["log_det"]
    seen = _look(mirror, theta, w)
    np.testing.assert_allclose(seen["potential"], -0.7 * np.log(np.linalg.det(w)))
    np.testing.assert_allclose(seen["dual"], -0.7 * np.linalg.inv(w), atol=1e-12)
    outside = _look(mirror, np.eye(3), -np.eye(3))
    assert outside["potential"] == outside["conjugate"] == np.inf
    assert not outside["contains"]


@pytest.mark.parametrize("name", MAPS)
def test_there_and_back_is_the_identity(name):
    mirror, theta, w = MAPS[name]
    seen = _look(mirror, theta, w)
    np.testing.assert_allclose(seen["back"], w, atol=1e-10)
    np.testing.assert_allclose(seen["retract"], seen["dual of decision"], atol=1e-9)


@pytest.mark.parametrize("name", MAPS)
def test_fenchel_young_holds_with_equality_at_the_decision(name):
    mirror, theta, w = MAPS[name]
    seen = _look(mirror, theta, w)
    np.testing.assert_allclose(seen["closed gap"], 0.0, atol=1e-10)
    assert seen["gap"] > 1e-3


@pytest.mark.parametrize("name", [name for name in MAPS if name != "log_det"])
def test_strong_convexity_holds_in_the_norm(name):
    mirror, theta, _ = MAPS[name]
    other = theta + 0.3 * (_symmetric() if theta.shape == (3, 3) else WIDE[::-1])
    drift, energy, bregman, apart = _moved(mirror, other, theta)
    assert drift <= energy + 1e-12
    assert bregman >= mirror.modulus / 2 * apart**2 - 1e-12


@jax.jit
def _moved(mirror, other, theta):
    u, w = mirror.to_primal(other), mirror.to_primal(theta)
    energy = mirror.norm.dual(other - theta) ** 2 / (2 * mirror.modulus)
    return (
        mirror.dual_bregman(other, theta),
        energy,
        mirror.bregman(u, w),
        mirror.norm.primal(u - w),
    )


@pytest.mark.parametrize("case", REPEATED)
def test_the_second_derivative_of_von_neumann_agrees_with_differences(case):
    _check_hessian(von_neumann(0.7), REPEATED[case], atol=1e-8)


@pytest.mark.parametrize("q", [1.3, 2.0])
@pytest.mark.parametrize("case", ["identity", "two equal", "generic"])
def test_the_second_derivative_of_schatten_agrees_with_differences(q, case):
    _check_hessian(schatten(q), REPEATED[case], atol=1e-7)


@jax.jit
def _schatten_at_zero(q):
    zero = jnp.zeros((2, 3))
    functions = schatten(q).potential, schatten(q).conjugate
    slopes = [jax.grad(f)(zero) for f in functions]
    hessians = [jax.hessian(f)(zero) for f in functions]
    return slopes, hessians, jax.grad(lambda q: schatten(q).conjugate(zero))(q)


@pytest.mark.parametrize("q", [1.3, 2.0])
def test_schatten_is_safe_at_zero(q):
    slopes, hessians, by_q = _schatten_at_zero(q)
    np.testing.assert_array_equal(slopes, np.zeros((2, 2, 3)))
    assert np.all(np.isfinite(hessians))
    assert np.isfinite(by_q)


def test_the_frobenius_case_has_the_identity_as_second_derivative_at_zero():
    _, (_, hessian), _ = _schatten_at_zero(2.0)
    np.testing.assert_allclose(np.reshape(hessian, (6, 6)), np.eye(6), atol=1e-14)


@pytest.mark.parametrize("case", REPEATED)
def test_the_second_derivative_of_log_det_agrees_with_differences(case):
    _check_hessian(log_det(0.7), REPEATED[case] - 4 * np.eye(3), atol=1e-8)


@jax.jit
def _sines(s, theta):
    """A smooth function of a decision, and its slopes."""
    loss = lambda s, theta: jnp.sum(jnp.sin(von_neumann(s).to_primal(theta) * 3))
    return jax.value_and_grad(loss, (0, 1))(s, theta)


@pytest.mark.parametrize("case", REPEATED)
def test_a_reverse_derivative_of_decisions_agrees_with_differences(case):
    loss = lambda s, theta: _sines(s, theta)[0]
    theta, eps = REPEATED[case], 1e-5
    _, slopes = _sines(0.7, theta)
    difference = (loss(0.7 + eps, theta) - loss(0.7 - eps, theta)) / (2 * eps)
    np.testing.assert_allclose(slopes[0], difference, atol=1e-8)
    move = _symmetric()
    along = (loss(0.7, theta + eps * move) - loss(0.7, theta - eps * move)) / (2 * eps)
    np.testing.assert_allclose(np.vdot(slopes[1], move), along, atol=1e-8)


@jax.jit
def _derivatives_of_exp(a, first_move, second_move):
    curve = spectral.Curve(Partial(jnp.exp), Partial(jnp.ones_like))
    first = lambda a: jax.jvp(lambda a: spectral.apply(curve, a), (a,), (first_move,))[1]
    return jax.jvp(first, (a,), (second_move,))


@pytest.mark.parametrize("case", REPEATED)
def test_a_function_of_a_matrix_has_every_forward_derivative(case):
    a, moves = REPEATED[case], [_symmetric() for _ in range(2)]
    first, second = _derivatives_of_exp(a, *moves)
    frechet = lambda a: scipy.linalg.expm_frechet(a, moves[0], compute_expm=False)
    np.testing.assert_allclose(first, frechet(a), atol=1e-12)
    eps = 1e-5
    difference = (frechet(a + eps * moves[1]) - frechet(a - eps * moves[1])) / (2 * eps)
    np.testing.assert_allclose(second, difference, atol=1e-8)


@pytest.mark.parametrize(
    ("norm", "sizes"),
    [
        (trace_norm(), (cvxpy.normNuc, cvxpy.sigma_max)),
        (spectral_norm(), (cvxpy.sigma_max, cvxpy.normNuc)),
        (schatten_norm(1.4), None),
    ],
    ids=["trace", "spectral", "schatten"],
)
def test_norms_agree_with_cvxpy_and_are_dual(norm, sizes):
    @jax.jit
    def look(a, b):
        size, slope = jax.value_and_grad(norm.primal)(a)
        return size, slope, norm.dual(slope), norm.dual(a), norm.dual(b)

    a, b = WIDE, RNG.normal(size=(2, 3))
    size, slope, slope_size, dual_size, other_size = look(a, b)
    if sizes is not None:
        np.testing.assert_allclose(size, sizes[0](a).value, rtol=1e-9)
        np.testing.assert_allclose(dual_size, sizes[1](a).value, rtol=1e-9)
    assert np.sum(a * b) <= size * other_size + 1e-12
    np.testing.assert_allclose(slope_size, 1.0, rtol=1e-10)
    np.testing.assert_allclose(np.sum(slope * a), size, rtol=1e-10)


def test_a_density_closest_in_entropy_agrees_with_cvxpy():
    w = cvxpy.Variable((3, 3), symmetric=True)
    objective = cvxpy.Maximize(cvxpy.trace(THETA @ w) + 0.7 * cvxpy.von_neumann_entr(w))
    cvxpy.Problem(objective, [cvxpy.trace(w) == 1]).solve(solver="CLARABEL")
    np.testing.assert_allclose(_decide(von_neumann(0.7), THETA), w.value, atol=1e-5)


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
    together = jax.jit(jax.vmap(lambda s: make(s).to_primal(jnp.array(theta))))(np.array(numbers))
    apart = [_decide(make(s), theta) for s in numbers]
    np.testing.assert_allclose(together, apart, atol=1e-12)


@pytest.mark.parametrize("name", MAPS)
def test_single_precision_stays_single(name):
    mirror, theta, _ = MAPS[name]
    single = _decide(mirror, theta.astype(np.float32))
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, _decide(mirror, theta), atol=1e-5)


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
