"""Theorems can fail: for each of them a mutant of a learner breaks it, and the learner does not.

`python -m benchmarks.mutants` makes the whole table, of all learners, theorems and mutants.
"""

import dataclasses
import sys

import numpy as np
import pytest
from mutant_games import GAMES, MUTANT_CASES, UNBROKEN

import olx
from olx.lab.names import factories
from olx.testing.mutants import Mutant, breaking_games
from olx.theorem import Theorem

CALLED = {"interval_from": "interval"}  # a factory whose theorem has another name


@pytest.mark.parametrize("name", GAMES)
def test_a_mutant_breaks_each_theorem_and_the_learner_does_not(name):
    case, asked = MUTANT_CASES[name], {one for names in GAMES[name].values() for one in names}
    theorems = tuple(one for one in case.learner.theorems if one.name in asked)
    learner = dataclasses.replace(case.learner, theorems=theorems)
    found = breaking_games(learner, *case[1:5], list(GAMES[name]))
    for one, names in GAMES[name].items():
        for theorem in names:
            assert one in found[theorem], f"{one} does not break `{theorem}`"


def test_every_theorem_is_broken_by_a_mutant_or_listed_with_a_reason():
    key = lambda one: (one.name, one.source)
    rows = {key(one) for case in MUTANT_CASES.values() for one in case.learner.theorems}
    broken = {
        key(one)
        for name, games in GAMES.items()
        for one in MUTANT_CASES[name].learner.theorems
        if any(one.name in names for names in games.values())
    }
    assert {name for name, _ in rows - broken} == set(UNBROKEN)
    pages = [module for path, module in sys.modules.items() if path.startswith("olx.")]
    stated = {key(one) for page in pages for one in vars(page).values() if isinstance(one, Theorem)}
    assert not stated - rows
    made_by = {name.rpartition(".")[2] for name, _ in factories(Theorem)}
    assert not {CALLED.get(name, name) for name in made_by} - {name for name, _ in rows}


def test_a_predictor_is_judged_by_the_score_that_it_plays():
    case, game = MUTANT_CASES["omd euclidean"], Mutant("opposite action", "again")
    assert breaking_games(*case[:5], [game]) == {"master_inequality": [game]}


def test_a_mutant_plays_what_its_name_says():
    rounds = olx.Rounds(None, np.tile([1.0, 0.0, 0.5], (3, 1)))
    start = np.full(3, 1 / 3)
    game = olx.losses.linear_loss, rounds, start
    play = lambda learner: np.asarray(olx.rollout(learner, *game, record=olx.record.actions).trace)
    each = {name: play(one) for name, one in olx.testing.mutants(olx.hedge(0.5)).items()}
    right = play(olx.hedge(0.5))
    np.testing.assert_array_equal(each["itself"], right)
    np.testing.assert_allclose(each["opposite action"][2], right[2][[1, 0, 2]])
    np.testing.assert_array_equal(each["constant action"], [[1.0, 0.0, 0.0]] * 3)
    np.testing.assert_array_equal(each["no step"], np.tile(start, (3, 1)))
    np.testing.assert_allclose(each["opposite step"][1], right[1][[1, 0, 2]])
    np.testing.assert_allclose(each["opposite loss"], each["opposite step"])
    np.testing.assert_allclose(each["ten steps"], play(olx.hedge(5.0)), rtol=1e-12)
