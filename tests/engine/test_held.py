"""Learners that hold their decision, and points that learn after the loss, play as in `rollout`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import losses, mirrors
from olx.engine.implementations import dense
from olx.engine.implementations.dense import split_round
from olx.engine.round import Recorder

LEARNERS = {
    "p-norm": olx.classification.pnorm_perceptron(3.0),
    "Winnow": olx.classification.winnow(0.5),
    "numeric": olx.dual_ascent(
        0.5,
        olx.mirror_map(lambda w: jnp.sum(jnp.cosh(w)), separable=True),
        losses.hinge,
        olx.ascents.conservative(),
    ),
}


def rounds(width, length=40):
    draw = np.random.default_rng(width)
    rows = draw.normal(size=(length, width))
    labels = np.where(rows @ np.linspace(-1, 1, width) > 0, 1.0, -1.0)
    weight = jnp.where(jnp.arange(length) % 7 == 3, 0.0, 1.5)
    return olx.Rounds(rows, labels, weight)


def held_by(learner, stream):
    """What is held between the rounds; None if nothing is."""
    here = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), stream)
    state = learner.init(jnp.zeros(stream.context.shape[1]))
    one = functools.partial(dense._round, Recorder())
    parts = split_round(one, (learner, state), (losses.hinge, here))
    return None if parts is None else parts.held((learner, state))


@pytest.mark.parametrize("width", [7, 8])  # from 8 coordinates on powers are held
@pytest.mark.parametrize("name", LEARNERS)
def test_holding_the_decision_changes_nothing(name, width):
    learner, stream, start = LEARNERS[name], rounds(width), jnp.zeros(width)
    held = held_by(learner, stream)
    assert (held is None) == (width == 7 and name != "numeric")
    assert learner.facts.conservative
    keep = olx.record.trace
    play = jax.jit(lambda rounds: olx.rollout(learner, losses.hinge, rounds, start, record=keep))
    wanted, seen = play(stream), olx.run(learner, losses.hinge, stream, start, record=keep)
    states = np.asarray(wanted.trace.state.acc)
    moved = np.any(states[1:] != states[:-1], 1)
    assert 0 < moved.sum() < len(moved)  # some rounds change the state, others no bit of it
    same = lambda a, b: np.testing.assert_allclose(a, b, 1e-13, 1e-13)
    jax.tree.map(same, (seen.losses, seen.trace.state), (wanted.losses, wanted.trace.state))


def test_only_what_is_costly_is_held():
    stream = rounds(9)
    assert held_by(olx.classification.perceptron(), stream) is None
    held = held_by(LEARNERS["p-norm"], stream)
    assert [leaf.shape for leaf in held or []] == [(9,)]
    assert not olx.dual_ascent(
        1.0, mirrors.euclidean(), losses.hinge, olx.ascents.aggressive()
    ).facts.conservative


@pytest.mark.parametrize("width", [63, 64])  # from 64 numbers on an update waits for the loss
def test_an_update_after_the_loss_is_the_same_update(width):
    lost = np.random.default_rng(0).random((50, width))
    stream, start = olx.Rounds(None, lost), jnp.full(width, 1 / width)
    for learner in (olx.hedge(0.3), olx.ogd(0.1)):
        play = jax.jit(
            lambda stream, one=learner: olx.rollout(one, losses.linear_loss, stream, start)
        )
        wanted, seen = play(stream), olx.run(learner, losses.linear_loss, stream, start)
        same = lambda a, b: np.testing.assert_allclose(a, b, 1e-13, 1e-13)
        jax.tree.map(same, (seen.losses, seen.state), (wanted.losses, wanted.state))
