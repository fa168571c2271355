"""Distributions over points: against NumPy, and against their theorems."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx.experts.ada_normal_hedge import ada_normal_hedge
from olx.experts.gibbs import gibbs
from olx.experts.particles import particles

T, P, GAMES = 250, 81, 300
GRID = np.linspace(0.0, 1.0, P)
POINTS, PRIOR = jnp.asarray(GRID), jnp.full(P, 1 / P)
SLOPED = jnp.asarray(np.linspace(1.0, 3.0, P) / np.linspace(1.0, 3.0, P).sum())
ETAS = jnp.array([0.05, 0.3, 2.0])
RNG = np.random.default_rng(0)
OUTCOMES = jnp.asarray(
    np.stack(
        [
            RNG.uniform(size=T),
            np.where(np.arange(T) < T // 2, 0.1, 0.9),
            RNG.integers(0, 2, T).astype(float),
        ]
    )
)
WEIGHTS = jnp.asarray(RNG.choice([0.0, 0.5, 1.0], T))


def wavy(w, y):
    """Far from convex, in [0, 1]."""
    return (jnp.sin(25 * (w - y)) ** 2 + jnp.abs(w - y)) / 2


def distance(w, y):
    return jnp.abs(w - y)


def comparators():
    narrow = np.exp(-0.5 * ((GRID - 0.4) / 0.05) ** 2)
    return jnp.asarray(np.stack([np.eye(P)[10], narrow / narrow.sum(), np.full(P, 1 / P)]))


def table(outcomes):
    """Weighted losses of all points [T, P], in NumPy."""
    apart = GRID - np.asarray(outcomes)[:, None]
    return np.asarray(WEIGHTS)[:, None] * (np.sin(25 * apart) ** 2 + np.abs(apart)) / 2


@pytest.fixture(scope="module")
def drawn():
    @jax.jit
    def play(outcomes, eta, prior):
        learner = gibbs(eta, POINTS, jax.random.key(1))
        rounds = olx.Rounds(None, outcomes, WEIGHTS)
        run = olx.rollout(learner, wavy, rounds, prior, record=olx.record.trace)
        proofs = jax.vmap(lambda u: olx.certify(learner, run, u)[0])(comparators())
        return jnp.exp(run.trace.state.log_weights), run.trace.feedback.action, proofs

    over_eta = jax.vmap(play, (None, 0, None))
    return jax.vmap(over_eta, (0, None, None))(OUTCOMES, ETAS, SLOPED)


def test_the_gibbs_distribution_is_what_the_notes_say(drawn):
    p, _, _ = drawn
    for k, outcomes in enumerate(OUTCOMES):
        total = np.cumsum(np.vstack([np.zeros(P), table(outcomes)[:-1]]), axis=0)
        for j, eta in enumerate(np.asarray(ETAS)):
            w = np.asarray(SLOPED) * np.exp(-eta * (total - total.min(1, keepdims=True)))
            np.testing.assert_allclose(p[k, j], w / w.sum(1, keepdims=True), atol=1e-12)


def test_a_gibbs_action_is_one_of_the_points(drawn):
    assert np.isin(np.asarray(drawn[1]), GRID).all()


def test_gibbs_keeps_its_bound_after_every_round_without_convexity(drawn):
    proofs = drawn[2]
    assert proofs.left.shape == (3, 3, 3, T)
    assert np.all(proofs.holds)
    assert np.max(proofs.tightness) > 0.8
    assert np.max(proofs.left / proofs.published) > 0.3


def test_the_printed_gibbs_bound_is_that_of_the_notes(drawn):
    p0, u = np.asarray(SLOPED), np.asarray(comparators()[1])
    kl = np.sum(u * np.log(u / p0))
    losses = table(OUTCOMES[0])
    spread = np.cumsum(np.ptp(losses, axis=1) ** 2)
    played = np.cumsum(np.asarray(WEIGHTS) > 0) > 0  # before the first round both sides are 0
    for j, eta in enumerate(np.asarray(ETAS)):
        wanted = np.where(played, kl / eta + eta / 8 * spread, 0.0)
        np.testing.assert_allclose(drawn[2].published[0, j, 1], wanted, rtol=1e-10)


def test_points_are_drawn_as_often_as_the_distribution_says():
    """Fails by chance with probability below 1e-6, were the keys not fixed."""

    @jax.jit
    def play(key):
        run = olx.rollout(
            gibbs(2.0, POINTS, key),
            wavy,
            olx.Rounds(None, OUTCOMES[1][:40]),
            PRIOR,
            record=olx.record.trace,
        )
        return run.trace.feedback.action, jnp.exp(run.trace.state.log_weights)

    action, p = jax.vmap(play)(jax.random.split(jax.random.key(5), GAMES))
    seen, p = np.asarray(action), np.asarray(p[0])
    below = np.array([(seen <= w + 1e-9).mean(0) for w in GRID]).T
    apart = np.abs(below - np.cumsum(p, axis=1)).max()
    assert apart < np.sqrt(np.log(2 * 40 * P / 1e-6) / (2 * GAMES))
    assert np.ptp(np.cumsum(p, axis=1)[:, 20]) > 0.3  # the distribution moves


LEARNERS = {
    "hedge": olx.hedge(0.5),
    "ada normal hedge": ada_normal_hedge(),
    "normal hedge dt": ada_normal_hedge(exponent=0.0),
}


@pytest.fixture(scope="module", params=LEARNERS)
def averaged(request):
    learner = particles(LEARNERS[request.param], POINTS)

    @jax.jit
    def play(outcomes):
        run = olx.rollout(
            learner, distance, olx.Rounds(None, outcomes), PRIOR, record=olx.record.trace
        )
        p = jax.vmap(learner.hparams.inner.predict)(run.trace.state)
        proofs = jax.vmap(lambda u: olx.certify(learner, run, u)[0])(comparators())
        return run.losses, run.trace.feedback.action, p, proofs

    return request.param, jax.vmap(play)(OUTCOMES)


def test_the_mean_of_the_points_is_played(averaged):
    _, (_, action, p, _) = averaged
    np.testing.assert_allclose(action, np.asarray(p) @ GRID, atol=1e-12)


def test_the_mean_keeps_the_bound_of_the_expert_learner(averaged):
    proofs = averaged[1][3]
    assert np.all(proofs.holds)
    assert np.max(proofs.tightness) > 0.1  # the mean pays less than the bound speaks of


def test_the_mean_competes_with_the_whole_set(averaged):
    """Theorem 22 for d = 1: the points near the best one are a share epsilon of all, and each
    loses at most epsilon more a round than the best one of the whole set."""
    name, (losses, *_) = averaged
    t = np.arange(1, T + 1)
    fine = np.linspace(0, 1, 2001)
    potential = np.cumsum(np.expm1(4 / (3 * t))) / 2
    for k, outcomes in enumerate(np.asarray(OUTCOMES)):
        best = np.cumsum(np.abs(fine[:, None] - outcomes), axis=1).min(0)
        regret = np.cumsum(np.asarray(losses[k])) - best
        for epsilon in (0.05, 0.2):
            share = np.floor(epsilon * (P - 1)) / P
            quantile = {
                "hedge": np.log(1 / share) / 0.5 + t * np.log(np.cosh(0.5)) / 0.5,
                "normal hedge dt": np.sqrt(3 * t * np.log(potential / share + 1)),
            }
            if name in quantile:
                assert np.all(regret <= quantile[name] + t * epsilon)


def test_points_may_be_dictionaries():
    points = {"w": jnp.asarray(RNG.normal(size=(7, 2))), "b": jnp.asarray(RNG.normal(size=7))}
    loss = lambda params, y: jnp.tanh((params["w"].sum() + params["b"] - y) ** 2)
    rounds = olx.Rounds(None, OUTCOMES[0][:10])
    run = olx.rollout(
        particles(olx.hedge(1.0), points),
        loss,
        rounds,
        jnp.full(7, 1 / 7),
        record=olx.record.actions,
    )
    assert run.trace["w"].shape == (10, 2)
    np.testing.assert_allclose(run.trace["b"][0], np.asarray(points["b"]).mean(), rtol=1e-12)


def test_a_step_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="gibbs: `eta` must be positive"):
        gibbs(0.0, POINTS, jax.random.key(0))
