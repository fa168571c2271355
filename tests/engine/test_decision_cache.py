"""Learners whose decision is kept, and points that learn after the loss, play as in `rollout`."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import losses, mirrors
from olx.testing.learner import check_drivers

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


@pytest.mark.parametrize("name", LEARNERS)
def test_keeping_the_decision_changes_nothing(name):
    learner, stream, start = LEARNERS[name], rounds(8), jnp.zeros(8)
    assert learner.facts.decision is not None
    keep = olx.record.trace
    play = jax.jit(lambda rounds: olx.rollout(learner, losses.hinge, rounds, start, record=keep))
    wanted, seen = play(stream), olx.run(learner, losses.hinge, stream, start, record=keep)
    states = np.asarray(wanted.trace.state.acc)
    moved = np.any(states[1:] != states[:-1], 1)
    assert 0 < moved.sum() < len(moved)  # some rounds change the state, others no bit of it
    same = lambda a, b: np.testing.assert_allclose(a, b, 1e-13, 1e-13)
    jax.tree.map(same, (seen.losses, seen.trace.state), (wanted.losses, wanted.trace.state))


def test_a_decision_is_computed_after_a_change_only():
    """A map that costs nothing, or a step size that reads the row, keeps no decision."""
    learner, stream, start = LEARNERS["p-norm"], rounds(9), jnp.zeros(9)
    play = lambda one: olx.run(one, losses.hinge, stream, start, record=olx.record.trace)
    run, calls = play(learner), []
    states = np.concatenate([run.trace.state.acc, run.state.acc[None]])

    def counted(hp, state):
        jax.debug.callback(lambda: calls.append(1))
        return learner.facts.decision.decision_fn(hp, state)

    decision = dataclasses.replace(learner.facts.decision, decision_fn=counted)
    play(dataclasses.replace(learner, facts=olx.Facts(decision=decision)))
    jax.effects_barrier()
    assert len(calls) == 1 + np.any(states[1:] != states[:-1], 1).sum()
    calls.clear()
    again = dataclasses.replace(learner, facts=olx.Facts(decision=decision))
    olx.certify(again, losses.hinge, stream, start, start, keep=olx.keep.totals)
    jax.effects_barrier()  # the theorems change in every round, the decision does not
    assert len(calls) == 1 + np.any(states[1:] != states[:-1], 1).sum()
    aggressive = olx.dual_ascent(1.0, mirrors.pnorm(1.5), losses.hinge, olx.ascents.aggressive())
    self_tuned = olx.classification.self_tuned_winnow()
    for one in (olx.classification.perceptron(), aggressive, self_tuned):
        assert one.facts.decision is None


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


def test_a_false_decision_is_found_out():
    learner = LEARNERS["p-norm"]
    false = dataclasses.replace(learner.facts.decision, decision_fn=dual)
    wrong = dataclasses.replace(learner, facts=olx.Facts(decision=false))
    play = jax.jit(lambda one, rounds: olx.rollout(one, losses.hinge, rounds, jnp.zeros(8)))
    with pytest.raises(AssertionError, match="`run` differs from `rollout`"):
        check_drivers(wrong, losses.hinge, rounds(8), jnp.zeros(8), play, "this stream")


def dual(hp, state):
    return state.acc
