"""CBCE: equal to a second implementation, and its theorem on streams that answer its actions."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import reference_reductions as ref
from jax.tree_util import Partial

import olx
from olx.convex import sets
from olx.meta import adaptive, cbce, saol

T, LEVELS, STREAMS = 130, 7, 200
LEARNER = cbce(olx.ogd(0.1, sets.box(-1.0, 1.0)), LEVELS)
START = np.array(-1.0)


def square(w, y):
    return (w - y) ** 2 / 4


def opposite(loss, action):
    return 1 - loss(action)


def answer(hparams, t, action):
    targets, replies = hparams
    return jnp.where(replies[t], jnp.where(action > 0, -1.0, 1.0), targets[t]), t + 1


def targets_and_replies():
    """Targets in [-1, 1], still, drawn, turning and jumping; the rounds that answer the action."""
    rng, t = np.random.default_rng(0), np.arange(T)
    kinds = [
        lambda: np.full(T, rng.choice([-1.0, 1.0])),
        lambda: rng.choice([-1.0, 1.0], T),
        lambda: np.sin(t * rng.uniform(0.01, 1)),
        lambda: np.where(t // rng.choice([3, 8, 16, 40]) % 2, 1.0, -1.0),
    ]
    replies = [rng.random(T) < rng.choice([0, 0.1, 1]) for _ in range(STREAMS)]
    return np.stack([kinds[i % 4]() for i in range(STREAMS)]), np.stack(replies)


@functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
def proofs(learner, hparams):
    def alone(hparams):
        first, ask = lambda hp: jnp.zeros((), int), lambda hp, t: None
        nature = olx.Adversary(hparams, Partial(square), first, ask, answer)
        run = olx.play(learner, nature, START, T, record=olx.record.trace)
        return jax.vmap(lambda u: olx.certify(learner, run, u)[0])(jnp.eye(LEVELS))

    return jax.vmap(alone)(hparams)


def uphill(learner):
    """The same learner, but copies that lose win their bets."""

    def update(hp, state, told):
        wrong = learner.update_fn(hp, state, told._replace(loss=Partial(opposite, told.loss)))
        right = learner.update_fn(hp, state, told).slots.copies
        return wrong._replace(slots=wrong.slots._replace(copies=right))

    return dataclasses.replace(learner, update_fn=update)


def test_the_theorem_holds_on_200_streams_and_fails_for_a_wrong_sign():
    targets, replies = targets_and_replies()
    proof = proofs(LEARNER, (targets, replies))
    assert np.all(np.isfinite(proof.right))
    assert not np.any(proof.fails)
    t = np.arange(1, T + 1)
    age = t % 2 ** np.arange(LEVELS)[:, None] + 1
    assert np.all(proof.published <= np.sqrt(age * (7 * np.log(t) + 5)))
    assert np.all(np.max(proof.left, axis=(0, 2)) > 0)
    assert np.max(proof.ratio) > 0.2
    far = np.all((targets == 1) & ~replies, axis=1)  # copies that start again are far off
    failed = np.any(proofs(uphill(LEARNER), (targets, replies)).fails, axis=(1, 2))
    assert np.sum(far) > 4
    assert np.all(failed[far])


def test_decisions_equal_the_reference():
    t = np.arange(200)
    targets = np.where(t // 30 % 2, 0.9, -0.7) + np.random.default_rng(0).uniform(-0.2, 0.2, 200)
    game = square, olx.Rounds(None, targets), np.zeros(())
    done = olx.rollout(cbce(olx.ogd(0.5), 8, 1.5), *game, record=olx.record.actions)
    np.testing.assert_allclose(done.trace, ref.cbce(targets, 0.5, 1.5), atol=1e-12)


def test_a_tie_of_the_copies_is_exact():
    """If all copies that play have the same loss, no bet is made from rounding."""
    targets = np.where(np.arange(100) // 30 % 2, 0.9, -0.7)
    game = square, olx.Rounds(None, targets), np.zeros(())
    done = olx.rollout(cbce(olx.ogd(0.5), LEVELS), *game, record=olx.record.actions)
    np.testing.assert_allclose(done.trace, ref.cbce(targets, 0.5, 1.0), atol=1e-12)


def test_it_follows_a_jump():
    rounds = olx.Rounds(None, np.where(np.arange(400) < 200, 1.0, -1.0))
    slow = olx.md(olx.schedules.decay(2.0, 1.0), olx.mirrors.euclidean())
    play = lambda learner: olx.rollout(learner, square, rounds, np.zeros(())).total
    alone, mixed, strong = map(play, (slow, cbce(slow, 8), saol(slow, 8)))
    assert mixed < 0.1 * alone
    assert mixed < 0.5 * strong


def test_losses_beyond_the_span_are_named():
    rounds = olx.Rounds(None, np.where(np.arange(40) < 20, 3.0, -3.0))
    learner = cbce(olx.ogd(3.0), 4, 0.01)
    run = olx.rollout(learner, square, rounds, np.zeros(()), record=olx.record.trace)
    proof = olx.certify(learner, run, np.eye(4)[0])[0]
    assert adaptive.NEAR in proof.summary.reasons
    assert np.isposinf(proof.right[-1])
