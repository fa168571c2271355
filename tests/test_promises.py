"""What olx promises: a regularizer in one line gives the map, the learner, the sweep, the gradient
and the certificate; numbers are not programs; a sweep is a loop."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import losses, mirrors, streams

ROUNDS, TRUTH = jax.jit(
    lambda: streams.linear_regression(jax.random.key(3), rounds=60, features=4)
)()
FEW = jax.tree.map(lambda leaf: leaf[:20], ROUNDS)
HYPENTROPY, SQUARE = mirrors.hypentropy(0.5), mirrors.euclidean()

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


def there_and_back(mirror, w):
    return jax.jit(lambda w: mirror.to_primal(mirror.to_dual(w)))(w)


def test_the_dual_leads_back(mirror, key):
    w = jax.random.normal(key, (4,))
    np.testing.assert_allclose(there_and_back(mirror, w), w, atol=1e-10)


def test_a_matrix_potential_leads_back(key):
    def potential(w):
        return jnp.sum(w**2) / 2 + jnp.log(jnp.linalg.det(jnp.eye(3) + w.T @ w)) / 4

    mirror, w = olx.mirror_map(potential), jax.random.normal(key, (2, 3))
    np.testing.assert_allclose(there_and_back(mirror, w), w, atol=1e-10)


@pytest.mark.parametrize("mirror", ["cosh", "power", "sum of two", "separable"], indirect=True)
def test_a_sweep_of_64_steps_is_certified_at_every_round(mirror):
    make = lambda eta: olx.linear(olx.omd(eta, mirror))
    learners = olx.batch(make, eta=jnp.geomspace(1e-3, 1.0, 64))
    runs = olx.sweep(learners, losses.squared, FEW, 0.1 * jnp.ones(4), record=olx.record.trace)
    each_u = jax.vmap(olx.certify, (None, None, 0))
    points = jnp.stack([TRUTH, jnp.zeros(4)])
    proofs = jax.vmap(each_u, (0, 0, None))(learners.learners, runs, points)[0]
    finite = np.all(np.isfinite(runs.losses), axis=1)
    assert proofs.left.shape == (64, 2, 20)
    assert np.all(proofs.holds[finite])
    assert np.sum(finite) >= 48  # the largest steps diverge where the potential is flat


def test_the_hypergradient_agrees_with_differences(mirror):
    make = lambda eta: olx.linear(olx.omd(eta, mirror))
    start = 0.1 * jnp.ones(4)
    total = lambda eta: olx.rollout(make(eta), losses.squared, ROUNDS, start).total
    both = jax.jit(jax.value_and_grad(total))
    difference = (both(0.05 + 1e-6)[0] - both(0.05 - 1e-6)[0]) / 2e-6
    np.testing.assert_allclose(both(0.05)[1], difference, rtol=1e-5)


def test_three_learning_rates_compile_once():
    total = lambda learner: olx.rollout(learner, losses.squared, ROUNDS, jnp.zeros(4)).total
    play = jax.jit(chex.assert_max_traces(total, n=1))
    for eta in (0.01, 0.1, 0.2):
        play(olx.linear(olx.omd(eta, SQUARE)))


def test_total_loss_has_a_gradient_in_the_learner_itself():
    learner = olx.linear(olx.omd(0.05, mirrors.hypentropy(0.7)))
    total = lambda learner: olx.rollout(learner, losses.squared, ROUNDS, jnp.zeros(4)).total
    slope = jax.jit(jax.grad(total))(learner)
    assert isinstance(slope, olx.Learner)
    assert slope.hparams.inner.hparams.eta != 0
    assert all(np.isfinite(leaf) for leaf in jax.tree.leaves(slope))


def test_a_sweep_is_a_loop_over_a_grid():
    make = lambda eta, beta: olx.linear(olx.omd(eta, mirrors.hypentropy(beta)))
    axes = olx.grid(eta=jnp.array([0.01, 0.05]), beta=jnp.array([0.3, 1.0, 3.0]))
    runs = olx.sweep(olx.batch(make, **axes), losses.squared, ROUNDS, jnp.zeros(4))
    play = jax.jit(lambda learner: olx.rollout(learner, losses.squared, ROUNDS, jnp.zeros(4)))
    for i, (eta, beta) in enumerate(zip(axes["eta"], axes["beta"], strict=True)):
        np.testing.assert_allclose(runs.losses[i], play(make(eta, beta)).losses, rtol=1e-12)


def test_hedge_hypergradients_stay_finite_in_float32_at_large_steps():
    rounds = olx.Rounds(None, jax.random.uniform(jax.random.key(0), (500, 5), jnp.float32))
    start = jnp.full(5, 0.2, jnp.float32)
    total = lambda eta: olx.rollout(olx.hedge(eta), losses.linear_loss, rounds, start).total
    slope = jax.jit(jax.grad(total))
    for eta in (0.1, 5.0, 50.0):
        assert np.isfinite(slope(jnp.float32(eta)))


def test_segments_change_neither_the_run_nor_its_gradient():
    make = lambda eta: olx.linear(olx.omd(eta, HYPENTROPY))
    total = lambda eta, segment: (
        olx.rollout(make(eta), losses.squared, ROUNDS, jnp.zeros(4), segment=segment).total
    )
    both = jax.jit(jax.value_and_grad(total), static_argnums=1)
    plain = both(0.05, None)
    for segment in (7, 60, 100):
        np.testing.assert_allclose(both(0.05, segment), plain, rtol=1e-12)
