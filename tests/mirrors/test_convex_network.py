"""The convex network against quadrature in NumPy, its strong convexity, and its training."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate

import olx
from olx.mirrors import convex_network

RNG = np.random.default_rng(5)
LEVELS = np.exp(RNG.normal(size=(4, 3)))  # four directions in three dimensions
WIDTHS = np.array([0.5, 2.0]) * np.exp(RNG.normal(size=(4, 1)))
MATRIX = RNG.normal(size=(4, 3))
SQUARE = LEVELS[:3], WIDTHS[:3], MATRIX[:3]
DUALS = 3 * RNG.normal(size=(6, 3))
ROWS = RNG.normal(size=(12, 3))
ROUNDS = olx.Rounds(ROWS, ROWS @ np.array([1.0, 0.0, -0.5]))


def curvature(levels, widths, t):
    """The mean of the levels that the docstring states, with its weights."""
    reached = [0.0, *(1 + t**2 / widths**2) ** -1.5, 1.0]
    return np.diff(reached) @ levels


def integral(levels, widths, t, order):
    """The first or second integral of the curvature, from 0 to t."""
    bend = lambda x: (t - x) ** (order - 1) * curvature(levels, widths, x)
    return integrate.quad(bend, 0.0, t, epsabs=1e-13, epsrel=1e-13)[0]


def expected(order):
    units = [zip(LEVELS, WIDTHS, along, strict=True) for along in DUALS @ MATRIX.T]
    return np.array([[integral(*unit, order) for unit in each] for each in units])


@jax.jit
@partial(jax.vmap, in_axes=(None, None, None, 0, 0))
def look(levels, widths, matrix, theta, w):
    mirror = convex_network(levels, widths, matrix)
    norm = mirror.norm
    return {
        "conjugate": mirror.conjugate(theta),
        "primal": mirror.to_primal(theta),
        "back": mirror.to_dual(mirror.to_primal(theta)),
        "gap": mirror.gap(mirror.to_primal(theta), theta),
        "hessian": jax.hessian(mirror.conjugate)(theta),
        "norms": (norm.primal(w), norm.dual(theta)),
    }


@pytest.fixture(scope="module")
def seen():
    return look(LEVELS, WIDTHS, MATRIX, DUALS, DUALS[::-1])


def test_the_conjugate_and_its_gradient_are_integrals_of_the_curvature(seen):
    np.testing.assert_allclose(seen["conjugate"], expected(2).sum(axis=1), rtol=1e-11)
    np.testing.assert_allclose(seen["primal"], expected(1) @ MATRIX, rtol=1e-10, atol=1e-11)


def test_the_potential_is_found_to_rounding(seen):
    np.testing.assert_allclose(seen["back"], DUALS, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(seen["gap"], 0.0, atol=1e-11)


def test_the_curvature_lies_between_the_least_and_the_largest_levels(seen):
    least, most = (MATRIX.T * bound(LEVELS, axis=1) @ MATRIX for bound in (np.min, np.max))
    for hessian in seen["hessian"]:
        assert np.linalg.eigvalsh(most - hessian)[0] > 0
        assert np.linalg.eigvalsh(hessian - least)[0] > 0
    w, theta = DUALS[::-1], DUALS
    norms = [np.sqrt(np.einsum("ni,ij,nj->n", v, m, v)) for v, m in
             ((w, np.linalg.inv(most)), (theta, most))]  # fmt: skip
    np.testing.assert_allclose(seen["norms"], norms, rtol=1e-10)


def test_a_square_network_obeys_the_laws_of_duality():
    olx.testing.check_mirror(convex_network(*SQUARE), DUALS[0])


def test_without_a_matrix_the_directions_are_the_coordinates():
    alone, same = convex_network(*SQUARE[:2]), convex_network(*SQUARE[:2], np.eye(3))
    assert alone.separable
    assert not same.separable
    np.testing.assert_allclose(alone.conjugate(DUALS[0]), same.conjugate(DUALS[0]), rtol=1e-14)


def test_equal_levels_are_a_quadratic():
    seen = look(np.full_like(LEVELS, 0.7), WIDTHS, MATRIX, DUALS, DUALS)
    np.testing.assert_allclose(seen["primal"], 0.7 * DUALS @ MATRIX.T @ MATRIX, rtol=1e-12)


def test_a_run_is_differentiable_in_every_number_and_certified():
    start, target = np.zeros(3), np.array([1.0, 0.0, -0.5])

    @jax.jit
    @partial(jax.value_and_grad, has_aux=True)
    def total(numbers):
        learner = olx.linear(olx.ftrl(0.1, convex_network(*numbers)))
        run = olx.rollout(learner, olx.losses.squared, ROUNDS, start, record=olx.record.trace)
        return run.total, (learner, run)

    (_, (learner, run)), slopes = total([*SQUARE])
    for i, slope in enumerate(slopes):
        change = [np.zeros_like(each) for each in SQUARE]
        change[i] = 1e-5 * RNG.normal(size=slope.shape)
        up, down = (total([*map(step, SQUARE, change)])[0][0] for step in (np.add, np.subtract))
        np.testing.assert_allclose(2 * np.vdot(slope, change[i]), up - down, rtol=1e-6, atol=1e-13)

    proof = olx.certify(learner, run, target)["master_inequality"]
    assert proof.holds
    assert np.all(proof.right < proof.published)  # the divergences are below their norms
    assert np.all(np.isfinite(proof.published))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: convex_network(-LEVELS, WIDTHS), "`levels` must be positive"),
        (lambda: convex_network(LEVELS, -WIDTHS), "`widths` must be positive"),
        (lambda: convex_network(LEVELS, WIDTHS[:, ::-1]), "`widths` must increase along each row"),
        (lambda: convex_network(LEVELS, WIDTHS[:, :1]), r"got shapes \(4, 3\) and \(4, 1\)"),
        (lambda: convex_network(LEVELS, WIDTHS, MATRIX[:3]), r"got shapes \(3, 3\) and \(4, 3\)"),
        (lambda: convex_network(LEVELS[:2], WIDTHS[:2], MATRIX[:2]), "rank 2 with 3 columns"),
    ],
)
def test_illegal_numbers_are_refused_by_name(call, message):
    with pytest.raises((TypeError, ValueError), match=f"^convex_network: .*{message}"):
        call()


def test_widths_that_do_not_increase_are_nan_under_jit():
    w = jax.jit(lambda b: convex_network(LEVELS[0], b).to_primal(jnp.ones(2)))(WIDTHS[0, ::-1])
    assert np.all(np.isnan(w))
