"""What the engine remembers of a learner, a start or a game, and when it looks again."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import losses
from olx.engine.arguments import check_game
from olx.engine.numbers import numbers_of


def game_of(learner):
    return numbers_of(learner, losses.squared, check_game)


def test_a_learner_is_remembered_by_its_identity():
    learner = olx.linear(olx.ogd(0.1))
    assert game_of(learner) is game_of(learner)
    other = game_of(olx.linear(olx.ogd(0.1)))
    assert other is not game_of(learner)
    assert other.leaves.structure is game_of(learner).leaves.structure  # so programs are found fast


def test_numbers_that_may_change_are_read_in_every_run():
    eta = np.array(0.1)
    learner = dataclasses.replace(olx.ogd(0.1), hparams=eta, theorems=())
    assert [float(leaf) for leaf in game_of(learner).leaves.own] == [0.1]
    eta[()] = 0.2
    assert [float(leaf) for leaf in game_of(learner).leaves.own] == [0.2]


@pytest.mark.parametrize("play", [olx.run, olx.rollout])
def test_an_entry_of_a_dictionary_that_changes_is_read_in_every_call(play):
    update = lambda hp, w, told: w - hp["eta"] * told.grad
    numbers = {"eta": 0.1}
    learner = olx.Learner(numbers, lambda hp, params: params, lambda hp, w, x: w, update)
    rounds, start = olx.Rounds(None, np.ones((3, 2))), jnp.zeros(2)
    for eta in (0.1, 0.5):
        numbers["eta"] = eta
        run = play(learner, losses.linear_loss, rounds, start)
        np.testing.assert_allclose(run.state, -3 * eta)
        np.testing.assert_allclose(
            olx.step(learner, losses.linear_loss, start, None, np.ones(2)).state, -eta
        )


def test_a_start_of_the_same_arrays_in_another_tree_is_another_start():
    learner, one, two = olx.ogd(0.1), jnp.ones(2), jnp.zeros(2)
    total = lambda w, y: sum(jnp.sum((leaf - y) ** 2) for leaf in jax.tree.leaves(w))
    rounds = olx.Rounds(None, np.ones(3))
    for start in ({"a": one, "b": two}, {"c": one, "d": two}, [one, two]):
        state = olx.run(learner, total, rounds, start).state
        assert jax.tree.structure(state.theta) == jax.tree.structure(start)


@pytest.mark.parametrize("first", [olx.run, olx.sweep])
def test_a_learner_whose_numbers_are_a_vector_is_not_a_stack_of_learners(first):
    nothing = lambda hp, *given: None
    learner = olx.Learner(jnp.arange(4.0), nothing, lambda hp, state, x: hp * x, nothing)
    total = lambda action, y: jnp.sum((action - y) ** 2)
    game = learner, total, olx.Rounds(np.ones(5), np.zeros(5)), jnp.zeros(())
    shapes = {olx.run: (5,), olx.sweep: (4, 5)}
    for play in (first, *shapes):
        assert play(*game).losses.shape == shapes[play]
