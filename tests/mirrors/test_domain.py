"""A potential on a convex set: the maximizer is the one of an independent solver."""

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import xlogy
from jax.tree_util import Partial

import olx
from olx import mirrors
from olx.convex import sets

THETA = np.array([1.5, -0.3, 0.8, 2.0])
ROWS, ENDS = np.array([[1.0, 1, 0, 0], [0, 1, 1, 1]]), np.array([0.5, 0.2])


def cosh(w):
    return jnp.sum(jnp.cosh(w))


def entropy(w):
    return jnp.sum(xlogy(w, w))


def coupled(w):
    return jnp.vdot(w, w) / 2 + jnp.logaddexp(w[0] + w[1], w[2] - w[3])


EXP = lambda w: cp.sum(cp.exp(w) + cp.exp(-w)) / 2
LOG = lambda w: -cp.sum(cp.entr(w))
CASES = {  # potential, the set, where to start, the same for cvxpy
    "ball": (cosh, sets.ball(1.0), 0.0, EXP, lambda w: [cp.norm(w) <= 1]),
    "polyhedron": (cosh, sets.polyhedron(ROWS, ENDS), 0.0, EXP, lambda w: [ROWS @ w <= ENDS]),
    "entropy and a sum": (
        entropy, sets.halfspace(jnp.ones(4), 1.0), 0.2, LOG, lambda w: [cp.sum(w) <= 1]
    ),
    "coupled": (
        coupled, sets.l1_ball(1.0), 0.0,
        lambda w: cp.sum_squares(w) / 2 + cp.log_sum_exp(cp.hstack([w[0] + w[1], w[2] - w[3]])),
        lambda w: [cp.norm1(w) <= 1],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_decision_is_the_maximizer_on_the_set(case):
    potential, domain, start, value, limits = CASES[case]
    mirror, eps = olx.mirror_map(potential, domain=domain, start=start), 1e-6
    thetas = np.outer([0.3, 5.0], THETA)
    around = thetas[:, None] + eps * np.concatenate([np.zeros((1, 4)), np.eye(4), -np.eye(4)])
    along = lambda theta: jax.jvp(mirror.to_primal, (theta,), (jnp.asarray(THETA),))
    both = jax.jit(jax.vmap(along))
    found, slopes = (each.reshape(2, 9, 4) for each in both(around.reshape(-1, 4)))
    for theta, near, slope in zip(thetas, found, slopes, strict=True):
        w, decision = cp.Variable(4), near[0]
        cp.Problem(cp.Minimize(value(w) - theta @ w), limits(w)).solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(decision, w.value, atol=2e-4)  # of the solver, in value 1e-8
        dual = potential(decision) - theta @ decision
        assert dual <= potential(jnp.asarray(w.value)) - theta @ w.value + 1e-6
        differences = (near[1:5] - near[5:]) / (2 * eps)
        np.testing.assert_allclose(slope[0], THETA @ differences, atol=1e-7)


def test_half_the_squared_norm_is_the_euclidean_projection():
    mirror = olx.mirror_map(lambda w: jnp.vdot(w, w) / 2, domain=sets.l1_ball(1.0))
    theta = jnp.asarray(THETA)
    closed = mirrors.euclidean(sets.l1_ball(1.0))
    found, value = jax.jit(lambda theta: (mirror.to_primal(theta), mirror.conjugate(theta)))(theta)
    np.testing.assert_allclose(found, closed.to_primal(theta), atol=1e-15)
    np.testing.assert_allclose(value, closed.conjugate(theta), atol=1e-15)
    assert mirror.contains(jnp.array([0.5, -0.5, 0, 0]))
    assert not mirror.contains(jnp.array([0.5, -0.6, 0, 0]))


def test_the_entropy_on_the_simplex_is_hedge():
    mirror = olx.mirror_map(entropy, domain=sets.simplex(), start=1.0)
    theta = 5 * jnp.asarray(THETA)
    np.testing.assert_allclose(jax.jit(mirror.to_primal)(theta), jax.nn.softmax(theta), rtol=1e-9)
    rounds = olx.Rounds(None, jax.random.uniform(jax.random.key(0), (10, 4)))
    game = olx.losses.linear_loss, rounds, jnp.full(4, 0.25)
    ours = olx.run(olx.omd(0.3, mirror), *game)
    np.testing.assert_allclose(ours.losses, olx.run(olx.hedge(0.3), *game).losses, atol=1e-12)
    assert olx.certify(olx.omd(0.3, mirror), *game, jnp.eye(4)[2]).holds


def test_the_numbers_of_the_set_and_of_the_potential_have_derivatives():
    def decision(radius, width):
        wide = Partial(lambda width, w: width * jnp.sum(jnp.cosh(w / width)), width)
        return olx.mirror_map(wide, domain=sets.ball(radius)).to_primal(jnp.asarray(THETA))

    eps = 1e-6
    radius, width = eps * np.array([[0, 1, 0, -1, 0], [0, 0, 1, 0, -1]]) + [[0.8], [1.5]]
    along = lambda a, b: jax.jvp(decision, (a, b), (1.0, 2.0))
    found, slopes = jax.jit(jax.vmap(along))(radius, width)
    differences = (found[1] - found[3] + 2 * (found[2] - found[4])) / (2 * eps)
    np.testing.assert_allclose(slopes[0], differences, atol=1e-8)


def test_a_start_outside_the_potential_gives_no_decision():
    mirror = olx.mirror_map(entropy, domain=sets.box(-2.0, -1.0), start=1.0)
    assert jnp.isnan(mirror.to_primal(jnp.asarray(THETA))).all()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"conjugate": cosh, "domain": sets.ball(1.0)}, "`domain` restricts a potential"),
        ({"potential": cosh, "total": 1.0, "domain": sets.ball(1.0)}, "give `domain` alone"),
        ({"potential": cosh, "domain": "ball"}, "`domain` must be a ConvexSet, got str"),
    ],
)
def test_a_domain_that_says_nothing_is_refused(words, said):
    with pytest.raises(TypeError, match=f"mirror_map: {said}"):
        olx.mirror_map(**words)
