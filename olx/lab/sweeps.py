"""Play all configurations of a learner on a stream: losses, metrics, and the last states."""

import functools
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from olx._pytree import as_tree
from olx.core import Batch, Learner, Rounds, Run
from olx.engine.protocol import feedback_of
from olx.keep import Keep
from olx.lab.metrics import Metric, measure, told
from olx.lab.plan import Part

_ENTRIES = 1 << 22  # the largest table of configurations times test rounds


class Game(NamedTuple):
    """A stream, its loss, and what to measure and keep."""

    loss: Any
    rounds: Rounds
    start: np.ndarray
    metrics: tuple[Metric, ...]
    keep: Keep  # which rounds the curve keeps
    half: int | None = None  # where the second half begins, if it is judged separately
    test: Rounds | None = None  # test rounds after the last round, if any


class Limits(NamedTuple):
    save: float  # rounds times configurations above which a job writes checkpoints
    folder: Path  # of the checkpoints


class Played(NamedTuple):
    """Arrays have a leading axis of configurations; `own` and `test` are metrics by name."""

    at: np.ndarray
    totals: np.ndarray
    own: dict[str, np.ndarray]
    test: dict[str, np.ndarray]


def play(part: Part, game: Game, limits: Limits) -> Played:
    """Play a part as one program."""
    count, length = len(part.index), len(game.rounds.outcome)
    place = limits.folder / str(part.index[0]) if count * length > limits.save else None
    run = _run(part, game, place)
    curve: Any = run.curve
    totals, sums = curve.total, curve.sums
    if game.half is None:
        own = told(game.metrics, jax.tree.map(lambda rows: rows[:, -1], sums), length)
        test = {} if game.test is None else _examine(batch(part).learners, run.state, game)
        return Played(curve.at, totals, own, test)
    middle = int(np.searchsorted(curve.at, game.half))
    first = jax.tree.map(lambda rows: rows[:, middle], (totals, sums))
    second = jax.tree.map(lambda rows, before: rows[:, -1] - before, (totals, sums), first)
    halves = [
        {"loss": paid / rounds, **told(game.metrics, measured, rounds)}
        for (paid, measured), rounds in ((first, game.half), (second, length - game.half))
    ]
    return Played(curve.at, totals, *halves)


def batch(part: Part, index: np.ndarray | None = None) -> Batch:
    """The configurations `index` of a part as one batch; all of them if None."""
    index = np.arange(len(part.index)) if index is None else index
    numbers = {axis: jnp.asarray(np.asarray(v)[index], float) for axis, v in part.numbers.items()}
    build = lambda configuration, **values: part.make(**values)
    return olx.batch(build, configuration=jnp.asarray(index), **numbers)


def one(part: Part, i: int) -> Learner:
    """Configuration `i` of a part, with its numbers as arrays."""
    return batch(part, np.array([i]))[0]


def _run(part: Part, game: Game, place: Path | None) -> Run:
    keep = game.keep if game.half is None else functools.partial(_and_half, game.keep, game.half)
    return olx.sweep(
        batch(part),
        game.loss,
        game.rounds,
        game.start,
        keep=keep,
        measure=measure(game.metrics),
        checkpoint=None if place is None else olx.checkpoint(place),
        progress=False if place is None else None,
    )


def _and_half(keep: Keep, half: int, start: int, stop: int) -> np.ndarray:
    return np.union1d(keep(start, stop), [half] if start < half <= stop else []).astype(int)


def _examine(learners: Learner, states: Any, game: Game) -> dict[str, np.ndarray]:
    """Loss and metrics on the test rounds, without learning."""
    assert game.test is not None
    loss, of = as_tree(game.loss), measure(game.metrics)
    length, count = len(game.test.outcome), len(jax.tree.leaves(states)[0])
    step, sums = max(1, _ENTRIES // count), []
    for low in range(0, length, step):
        here = jax.tree.map(lambda leaf, low=low: leaf[low : low + step], game.test)
        paid = _predict(of, learners, states, loss, here)
        sums.append(jax.tree.map(lambda rows: np.asarray(rows).sum(1, dtype=float), paid))
    paid, measured = jax.tree.map(lambda *parts: sum(parts), *sums)
    return {**told(game.metrics, measured, length), "loss": paid / length}


@functools.partial(jax.jit, static_argnums=0)
def _predict(of: Any, learners: Learner, states: Any, loss: Any, rounds: Rounds) -> Any:
    """Loss and metrics by configuration and round."""

    def at(learner, state, here):
        action = learner.predict(state, here.context)
        feedback = feedback_of(loss, here.context, action, here.outcome, 1.0)
        return feedback.value, None if of is None else of(feedback)

    over_rounds = jax.vmap(at, (None, None, 0))
    return jax.vmap(over_rounds, (0, 0, None))(learners, states, rounds)
