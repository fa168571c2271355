"""Theorems about potentials: exponential weights, draws, points of a box."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import experts

T, N, GAMES, DELTA = 80, 6, 200, 0.1
FREAK = 1e-6  # the chance that a true theorem would fail a test, were the seeds not fixed
LOSSES = jnp.stack(
    [
        olx.streams.expert_losses(jax.random.key(0), T, N, gap=0.3).rounds.outcome,
        olx.streams.alternating_losses(T, N).rounds.outcome,
    ]
)
KEYS = jax.random.split(jax.random.key(4), GAMES)


def test_exponential_weights_keep_the_bound_of_every_quantile():
    epsilons = (0.05, 0.3, 1.0)

    @jax.jit
    @jax.vmap
    def play(losses):
        learner, rounds = experts.anytime_hedge(0.4), olx.Rounds(None, losses)
        run = olx.rollout(
            learner, olx.losses.linear_loss, rounds, jnp.ones(N), record=olx.record.trace
        )
        theorems = tuple(olx.theorems.hedge_quantile(epsilon) for epsilon in epsilons)
        return run.losses, list(olx.certify(learner, run, None, theorems=theorems))

    paid, proofs = play(LOSSES)
    regret = np.cumsum(np.asarray(paid)[..., None] - np.asarray(LOSSES), axis=1)
    for epsilon, proof in zip(epsilons, proofs, strict=True):
        assert np.all(proof.holds)
        rank = int(np.ceil(N * epsilon))
        np.testing.assert_allclose(proof.left, np.sort(regret, axis=2)[..., -rank], atol=1e-12)
        wanted = (np.log(1 / epsilon) + np.arange(1, T + 1) * np.log(np.cosh(0.4))) / 0.4
        np.testing.assert_allclose(proof.right[0], wanted, rtol=1e-12)
    assert np.max(proofs[0].tightness) > 0.1


def test_exponential_weights_are_not_judged_where_the_theorem_is_not_about_them():
    rounds = olx.Rounds(None, LOSSES[0][:10])
    uneven = experts.anytime_hedge(0.4, prior=jnp.arange(1.0, N + 1))
    run = olx.rollout(uneven, olx.losses.linear_loss, rounds, jnp.ones(N), record=olx.record.trace)
    half = (olx.theorems.hedge_quantile(0.5),)
    assert np.all(np.isinf(olx.certify(uneven, run, None, theorems=half)[0].right))
    for other in (experts.anytime_hedge(olx.schedules.decay(1.0)), experts.adahedge()):
        with pytest.raises(TypeError, match="is about an `anytime_hedge` with a fixed step"):
            olx.certify(other, run, None, theorems=half)


DRAWN = {
    "hedge": experts.anytime_hedge(float(np.sqrt(2 * np.log(N / DELTA) / T))),
    "normal_hedge_dt": experts.normal_hedge_dt(),
    "ada_normal_hedge": experts.ada_normal_hedge(exponent=0.0),
}


@pytest.mark.parametrize("name", DRAWN)
def test_draws_keep_the_bound_of_their_learner_with_high_probability(name):
    @jax.jit
    def play(losses, key):
        learner = experts.committed(DRAWN[name], key)
        rounds = olx.Rounds(None, losses)
        run = olx.rollout(
            learner, olx.losses.linear_loss, rounds, jnp.ones(N), record=olx.record.trace
        )
        draws = (olx.theorems.committed_draws(DELTA),)
        judge = lambda u: olx.certify(learner, run, u, theorems=draws)[0]
        proofs = jax.vmap(judge)(jnp.eye(N))
        return run.losses, proofs.left, proofs.right, jnp.any(proofs.slack < 0, axis=0)

    over = jax.vmap(jax.vmap(play, (None, 0)), (0, None))
    paid, left, right, broken = jax.tree.map(np.asarray, over(LOSSES, KEYS))
    regret = np.cumsum(paid[..., None] - np.asarray(LOSSES)[:, None], axis=2)
    np.testing.assert_allclose(left, np.moveaxis(regret, 3, 2), atol=1e-10)
    lucky = DELTA + np.sqrt(np.log(1 / FREAK) / (2 * GAMES))
    if name == "hedge":
        assert np.any(broken, axis=2).mean(axis=1).max() <= lucky  # after all rounds at once
        wanted = np.sqrt(2 * T * np.log(N / DELTA))
        assert np.all(right[..., -1] <= wanted)
    assert broken.mean(axis=1).max() <= lucky
    assert np.all(np.isfinite(right))
    assert (left.max(axis=2) / right[:, :, 0]).max() > 0.3


def test_draws_that_the_learner_was_not_charged_with_are_refused():
    run = olx.Run(None, None)
    for other in (
        experts.sampled(DRAWN["hedge"], KEYS[0]),
        experts.committed(olx.hedge(0.1), KEYS[0]),
    ):
        with pytest.raises(TypeError, match="`committed_draws` is about a `committed` learner"):
            olx.certify(other, run, jnp.eye(N)[0], theorems=(olx.theorems.committed_draws(0.1),))


def square(w, y):
    """In [0, 1] on the box."""
    return jnp.sum((w - y) ** 2) / 8


def test_points_of_a_box_keep_theorem_22_for_every_decision():
    side = np.linspace(-1, 1, 11)
    points = jnp.asarray(np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2))
    learner = experts.particles(experts.ada_normal_hedge(), points)
    start, epsilon = jnp.ones(len(points)), 0.02
    outcomes = jnp.asarray(np.random.default_rng(0).uniform(-0.2, 1.0, (50, 2)))
    decisions = jnp.array([[0.37, 0.41], [-0.33, 0.72], [1.0, -1.0]])

    @jax.jit
    def play(outcomes):
        run = olx.rollout(
            learner, square, olx.Rounds(None, outcomes), start, record=olx.record.trace
        )
        near = lambda high: (olx.theorems.nearby_points(epsilon, -1.0, high),)
        judge = lambda u, high: olx.certify(learner, run, u, theorems=near(high))[0]
        proofs = [judge(u, 1.0) for u in decisions]
        return run.losses, proofs, judge(decisions[2], 0.5)

    paid, proofs, outside = play(outcomes)
    for u, proof in zip(decisions, proofs, strict=True):
        assert proof.holds
        other = np.sum((np.asarray(outcomes) - np.asarray(u)) ** 2, axis=1) / 8
        np.testing.assert_allclose(proof.left, np.cumsum(np.asarray(paid) - other), atol=1e-12)
        shrink = (proof.right[-1] - proof.right[0]) / 49
        assert shrink > 0.1  # sqrt(epsilon) is 0.14
    assert np.max([proof.tightness for proof in proofs]) > 0.02
    assert np.all(np.isinf(outside.right))
