"""A learner is taken apart once, unless its numbers may change."""

import dataclasses

import numpy as np

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
