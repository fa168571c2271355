"""Play all configurations of a learner on a stream: losses and metrics.

Test rounds are played with weight 0, which changes no state: no learner learns from them.
"""

import dataclasses
import functools
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from olx.core import Batch, Curve, Learner, Rounds, Run
from olx.keep import Keep
from olx.lab.metrics import Metric, measure, told
from olx.lab.plan import Part


class LabGame(NamedTuple):
    """A stream, its loss, and what to measure and keep."""

    loss: Any
    rounds: Rounds
    start: Any  # the first decision
    metrics: tuple[Metric, ...]
    keep: Keep  # which rounds the curve keeps
    half: int | None = None  # where the second half begins, if it is judged separately
    test: Rounds | None = None  # `rounds`, and test rounds of weight 0 after them, if any


class Limits(NamedTuple):
    save: float  # rounds times configurations above which a job writes checkpoints
    folder: Path  # of the checkpoints


class Played(NamedTuple):
    """Arrays have a leading axis of configurations; `own` and `test` are metrics by name."""

    at: np.ndarray
    totals: np.ndarray
    own: dict[str, np.ndarray]
    test: dict[str, np.ndarray]


def play(part: Part, game: LabGame, limits: Limits) -> Played:
    """Play a part as one program."""
    rounds = game.rounds if game.test is None else game.test
    count, length, learned = len(part.index), len(rounds.outcome), len(game.rounds.outcome)
    place = limits.folder / str(part.index[0]) if count * length > limits.save else None
    cut = learned if game.half is None else game.half
    run = _run(part, game, rounds, cut, place)
    curve: Any = run.curve
    totals, sums, middle = curve.total, curve.sums, int(np.searchsorted(curve.at, cut))
    first = jax.tree.map(lambda rows: rows[:, middle], (totals, sums))
    if cut == length:
        return Played(curve.at, totals, told(game.metrics, first[1], length), {})
    second = jax.tree.map(lambda rows, before: rows[:, -1] - before, (totals, sums), first)
    halves = [
        {"loss": paid / rounds, **told(game.metrics, measured, rounds)}
        for (paid, measured), rounds in ((first, cut), (second, length - cut))
    ]
    shown = slice(None if game.test is None else middle + 1)  # no curve of test rounds
    return Played(curve.at[shown], totals[:, shown], *halves)


def batch(part: Part, index: np.ndarray | None = None) -> Batch:
    """The configurations `index` of a part as one batch; all of them if None."""
    index = np.arange(len(part.index)) if index is None else index
    numbers = {axis: jnp.asarray(np.asarray(v)[index], float) for axis, v in part.numbers.items()}
    build = lambda configuration, **values: part.make(**values)
    return olx.batch(build, configuration=jnp.asarray(index), **numbers)


def one(part: Part, i: int) -> Learner:
    """Configuration `i` of a part, with its numbers as arrays."""
    return batch(part, np.array([i]))[0]


def _run(part: Part, game: LabGame, rounds: Rounds, cut: int, place: Path | None) -> Run:
    options: Any = {
        "keep": functools.partial(_and_cut, game.keep, cut),
        "measure": measure(game.metrics),
        "checkpoint": None if place is None else olx.checkpoint(place),
        "progress": False if place is None else None,
    }
    learners = batch(part)
    if jax.tree.leaves(learners.learners):
        return olx.sweep(learners, game.loss, rounds, game.start, **options)
    run = olx.run(learners[0], game.loss, rounds, game.start, **options)  # it has no numbers
    curve: Any = run.curve
    once = lambda leaf: np.asarray(leaf)[None]
    stacked = Curve(curve.at, once(curve.total), jax.tree.map(once, curve.sums))
    return dataclasses.replace(run, curve=stacked)


def _and_cut(keep: Keep, cut: int, start: int, stop: int) -> np.ndarray:
    return np.union1d(keep(start, stop), [cut] if start < cut <= stop else []).astype(int)
