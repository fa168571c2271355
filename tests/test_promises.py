"""What olx promises: a regularizer in one line gives the map, the learner, the sweep, the gradient
and the certificate; numbers are not programs; a sweep is a loop."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import convex, losses, streams

ROUNDS, TRUTH = streams.linear_regression(jax.random.key(3), rounds=60, features=4)
HYPENTROPY, SQUARE = convex.hypentropy(0.5), convex.euclidean()

UNSEEN = {
    "cosh": (lambda w: jnp.sum(jnp.cosh(w)), {}),
    "power": (lambda w: jnp.sum(jnp.abs(w) ** 1.5) / 1.5, {}),
    "sum of two": (lambda w: HYPENTROPY.potential(w) + SQUARE.potential(w), {}),
    "coupled": (lambda w: jnp.sum(jnp.cosh(w)) + jnp.sum(w) ** 2, {}),
    "separable": (lambda w: jnp.sum(jnp.cosh(w)), {"separable": True}),
}


@pytest.fixture(params=UNSEEN)
def mirror(request):
    potential, options = UNSEEN[request.param]
    return olx.mirror_map(potential, **options)


def test_the_dual_leads_back(mirror, key):
    w = jax.random.normal(key, (4,))
    np.testing.assert_allclose(mirror.to_primal(mirror.to_dual(w)), w, atol=1e-10)


def test_a_matrix_potential_leads_back(key):
    def potential(w):
        return jnp.sum(w**2) / 2 + jnp.log(jnp.linalg.det(jnp.eye(3) + w.T @ w)) / 4

    mirror, w = olx.mirror_map(potential), jax.random.normal(key, (2, 3))
    np.testing.assert_allclose(mirror.to_primal(mirror.to_dual(w)), w, atol=1e-10)


def test_a_sweep_of_64_steps_is_certified_at_every_round(mirror):
    make = lambda eta: olx.linear(olx.omd(eta, mirror))
    learners = olx.batch(make, eta=jnp.geomspace(1e-3, 1.0, 64))
    runs = olx.sweep(learners, losses.squared, ROUNDS, 0.1 * jnp.ones(4), record=olx.trace)
    for u in (TRUTH, jnp.zeros(4)):
        proofs = jax.vmap(olx.certify, (0, 0, None))(learners, runs, u)
        finite = np.all(np.isfinite(runs.losses), axis=1)
        assert np.all(proofs.holds | ~finite)
        assert np.sum(finite) >= 48  # the largest steps diverge where the potential is flat


def test_the_hypergradient_agrees_with_differences(mirror):
    make = lambda eta: olx.linear(olx.omd(eta, mirror))
    start = 0.1 * jnp.ones(4)
    total = jax.jit(lambda eta: olx.rollout(make(eta), losses.squared, ROUNDS, start).total)
    difference = (total(0.05 + 1e-6) - total(0.05 - 1e-6)) / 2e-6
    np.testing.assert_allclose(jax.grad(total)(0.05), difference, rtol=1e-5)


def test_three_learning_rates_compile_once():
    total = lambda learner: olx.rollout(learner, losses.squared, ROUNDS, jnp.zeros(4)).total
    play = jax.jit(chex.assert_max_traces(total, n=1))
    for eta in (0.01, 0.1, 0.2):
        play(olx.linear(olx.omd(eta, SQUARE)))


def test_total_loss_has_a_gradient_in_the_learner_itself():
    learner = olx.linear(olx.omd(0.05, convex.hypentropy(0.7)))
    total = lambda learner: olx.rollout(learner, losses.squared, ROUNDS, jnp.zeros(4)).total
    slope = jax.grad(total)(learner)
    assert isinstance(slope, olx.Learner)
    assert slope.hparams.inner.hparams.eta != 0
    assert all(np.isfinite(leaf) for leaf in jax.tree.leaves(slope))


def test_a_sweep_is_a_loop_over_a_grid():
    make = lambda eta, beta: olx.linear(olx.omd(eta, convex.hypentropy(beta)))
    axes = olx.grid(eta=jnp.array([0.01, 0.05]), beta=jnp.array([0.3, 1.0, 3.0]))
    runs = olx.sweep(olx.batch(make, **axes), losses.squared, ROUNDS, jnp.zeros(4))
    for i in range(6):
        alone = olx.rollout(
            make(axes["eta"][i], axes["beta"][i]), losses.squared, ROUNDS, jnp.zeros(4)
        )
        np.testing.assert_allclose(runs.losses[i], alone.losses, rtol=1e-12)


def test_hedge_hypergradients_stay_finite_in_float32_at_large_steps():
    rounds = olx.Rounds(None, jax.random.uniform(jax.random.key(0), (500, 5), jnp.float32))
    start = jnp.full(5, 0.2, jnp.float32)
    total = lambda eta: olx.rollout(olx.hedge(eta), losses.linear, rounds, start).total
    for eta in (0.1, 5.0, 50.0):
        assert np.isfinite(jax.grad(total)(jnp.float32(eta)))


def test_segments_change_neither_the_run_nor_its_gradient():
    make = lambda eta: olx.linear(olx.omd(eta, HYPENTROPY))
    total = lambda eta, segment: (
        olx.rollout(make(eta), losses.squared, ROUNDS, jnp.zeros(4), segment=segment).total
    )
    plain = jax.value_and_grad(total)(0.05, None)
    for segment in (7, 60, 100):
        np.testing.assert_allclose(jax.value_and_grad(total)(0.05, segment), plain, rtol=1e-12)
