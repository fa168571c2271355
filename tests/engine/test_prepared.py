"""Games of a kind that was played before are played without a new plan, and judged as new ones."""

import jax
import numpy as np
import pytest

import olx
from olx import losses
from olx.engine.prepared import PREPARED

N = 40  # more rounds than NumPy plays
LEARNER = olx.linear(olx.ogd(0.1))
BATCH = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=[0.1, 0.01, 0.001])
START = np.zeros(3)
PLAYERS = {"run": (olx.run, LEARNER), "sweep": (olx.sweep, BATCH)}
player = pytest.mark.parametrize("name", PLAYERS)


def rows(seed=0, count=N):
    rng = np.random.default_rng(seed)
    return olx.Rounds(rng.normal(size=(count, 3)), rng.normal(size=count), np.ones(count))


def played(name, rounds, **options):
    play, learner = PLAYERS[name]
    return play(learner, losses.squared, rounds, START, **options)


def is_prepared(name, rounds, **options):
    """Whether a game is played without a plan: it adds no entry where there is one."""
    PREPARED.clear()
    played(name, rounds, **options)
    return bool(PREPARED._entries)


@player
def test_the_second_game_of_a_kind_has_the_numbers_of_a_first_one(name):
    assert is_prepared(name, rows(), implementation="dense")
    for options in ({}, {"keep": olx.keep.every(7)}, {"record": olx.record.actions}):
        again = played(name, rows(1), implementation="dense", **options)
        PREPARED.clear()
        first = played(name, rows(1), implementation="dense", **options)
        assert jax.tree.structure(again) == jax.tree.structure(first)
        jax.tree.map(np.testing.assert_array_equal, again, first)


@player
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: r._replace(context=np.where(np.eye(N, 3) > 0, np.nan, r.context)), "holds nan"),
        (lambda r: r._replace(outcome=np.full(N, np.inf)), "holds inf at row 0"),
        (lambda r: r._replace(weight=-r.weight), "must be non-negative, got -1.0 at row 0"),
    ],
)
def test_bad_rounds_of_a_known_kind_are_refused_in_the_same_words(name, change, words):
    assert is_prepared(name, rows())
    said = []
    for known in (True, False):
        if not known:
            PREPARED.clear()
        with pytest.raises(ValueError, match=words) as caught:
            played(name, change(rows()))
        said.append(str(caught.value))
    assert said[0] == said[1]


@player
def test_a_demand_on_the_rows_is_looked_at_in_every_game(name):
    play, learner = PLAYERS[name]
    labels = rows()._replace(outcome=np.ones(N))
    for _ in range(2):
        play(learner, losses.hinge, labels, START)
    labels.outcome[3] = 0.5
    with pytest.raises(ValueError, match=r"hinge: .* at row 3"):
        play(learner, losses.hinge, labels, START)


@player
def test_a_result_does_not_change_with_the_arrays_of_the_game(name):
    rounds = rows()
    for _ in range(2):
        done = played(name, rounds)
        before = jax.tree.map(np.array, done)
        rounds.context[:] = rounds.outcome[:] = 7.0
        played(name, rounds)
        jax.tree.map(np.testing.assert_array_equal, done, before)
        rounds = rows(2)


@player
def test_games_of_another_length_are_another_kind(name):
    assert is_prepared(name, rows())
    kinds = len(PREPARED._entries)
    played(name, rows(3))
    assert len(PREPARED._entries) == kinds
    assert played(name, rows(count=N + 1)).losses.shape[-1] == N + 1
    assert len(PREPARED._entries) == kinds + 1


def test_the_same_arrays_are_another_kind_in_another_precision():
    for wide in (True, False, True):
        with jax.enable_x64(wide):
            done = played("run", rows())
        assert done.losses.dtype == (np.float64 if wide else np.float32)


@player
def test_a_bad_number_that_shows_in_the_output_is_found_in_wide_rows(name):
    play, learner = PLAYERS[name]
    rounds, start = olx.Rounds(np.ones((2000, 100)) / 100, np.ones(2000)), np.zeros(100)
    PREPARED.clear()
    play(learner, losses.squared, rounds, start)
    assert [one.shown for one in PREPARED._entries.values()] == [{0}]
    rounds.context[1234, 56] = np.nan
    with pytest.raises(ValueError, match=r"rounds.context holds nan at row 1234, column 56"):
        play(learner, losses.squared, rounds, start)
