"""All configurations of a learner on a stream: cumulative losses, metrics, and the last state."""

import dataclasses
import inspect
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from olx._pytree import as_tree
from olx.core import Curve, Learner, Rounds, actions
from olx.lab import metrics as measures
from olx.lab.plan import Part
from olx.streams.sparse_rows import SparseRows


class Game(NamedTuple):
    """A stream and what is asked about it."""

    loss: Any
    rounds: Rounds
    start: np.ndarray
    metrics: list[str]
    keep: Any  # which rounds the curve keeps
    half: int | None = None  # where the second half begins, if it is judged apart
    test: Rounds | None = None  # rounds to be tested on after the last, if any


class Limits(NamedTuple):
    bytes: float
    save: float  # rounds times configurations from which on a job saves itself
    folder: Path  # where


class Played(NamedTuple):
    """Configurations first; `own` and `test` are metrics by name."""

    at: np.ndarray
    totals: np.ndarray
    own: dict[str, np.ndarray]
    test: dict[str, np.ndarray]


def play(part: Part, game: Game, limits: Limits) -> Played:
    """Play a part, in groups that fit into memory, each of them one program."""
    count, length = len(part.index), len(game.rounds.outcome)
    thin = not game.metrics and game.half is None
    each = 1 if thin else length * game.start.itemsize * (1 + _action_size(game))
    groups = -(-count // max(1, int(limits.bytes // each)))
    size = -(-count // groups)
    played = []
    for group in range(groups):
        index = np.minimum(np.arange(group * size, (group + 1) * size), count - 1)
        place = limits.folder / f"{part.index[0]}-{group}"
        long = size * length > limits.save
        played.append(_group(part, index, game, thin, place if long else None))
    join = lambda *leaves: np.concatenate(leaves)[:count]
    fields = [jax.tree.map(join, *parts) for parts in zip(*(p[1:] for p in played), strict=True)]
    return Played(played[0].at, *fields)


def batch(part: Part, index: np.ndarray) -> Learner:
    """Some configurations of a part as one batch."""
    numbers = {axis: jnp.asarray(np.asarray(v)[index], float) for axis, v in part.numbers.items()}
    build = lambda configuration, **values: part.make(**values)
    return olx.batch(build, configuration=jnp.asarray(index), **numbers)


def one(part: Part, i: int) -> Learner:
    """A configuration of a part, its numbers as arrays."""
    return jax.tree.map(lambda leaf: leaf[0], batch(part, np.array([i])))


def _measured(names: list[str], losses: Any, acts: Any, outcome: Any) -> dict[str, np.ndarray]:
    given = {"losses": losses, "actions": acts, "outcome": np.asarray(outcome)}
    found = {}
    for name in names:
        measure = getattr(measures, name)
        with np.errstate(over="ignore", invalid="ignore"):
            found[name] = measure(
                **{key: given[key] for key in inspect.signature(measure).parameters}
            )
    return found


def _group(part: Part, index: np.ndarray, game: Game, thin: bool, place: Path | None) -> Played:
    options: dict[str, Any] = {
        "record": actions if _wants_actions(game.metrics) else None,
        "keep": game.keep if thin else None,
        "progress": False if place is None else None,
    }
    where = lambda *inside: place and olx.checkpoint(place.joinpath(*inside))
    if isinstance(game.rounds.context, SparseRows):
        alone = lambda i: olx.run(
            one(part, i), game.loss, game.rounds, game.start, checkpoint=where(str(i)), **options
        )
        run = jax.tree.map(lambda *leaves: np.stack(leaves), *map(alone, index))
        run = dataclasses.replace(run, curve=run.curve and Curve(run.curve.at[0], run.curve.total))
    else:
        learners = batch(part, index)
        run = olx.sweep(learners, game.loss, game.rounds, game.start, checkpoint=where(), **options)
    test = {} if game.test is None else _examine(batch(part, index), run.state, game)
    if run.curve is not None:
        return Played(np.asarray(run.curve.at), np.asarray(run.curve.total), {}, test)
    losses: Any = np.asarray(run.losses)
    acts, outcome = run.trace, game.rounds.outcome
    length = losses.shape[1]
    at = np.union1d(game.keep(0, length), [length]).astype(int)
    with np.errstate(over="ignore", invalid="ignore"):
        spans = zip([0, *at[:-1]], at, strict=True)
        parts = [losses[:, low:high].sum(1, dtype=float) for low, high in spans]
        totals = np.cumsum(parts, axis=0).T
    cut = length if game.half is None else game.half
    split: Any = lambda rows: (None, None) if rows is None else (rows[:, :cut], rows[:, cut:])
    (first, second), (acts, later) = split(losses), split(acts)
    own = _measured(game.metrics, first, acts, outcome[:cut])
    if game.half is not None:
        own["loss"] = np.mean(first, 1, dtype=float)
        test = _measured(game.metrics, second, later, outcome[cut:])
        test["loss"] = np.mean(second, 1, dtype=float)
    return Played(at, totals, own, test)


def _examine(learners: Learner, states: Any, game: Game) -> dict[str, np.ndarray]:
    """Loss and metrics of what was learned, on rounds that teach nothing any more."""
    assert game.test is not None
    losses, acts = map(np.asarray, _predict(learners, states, as_tree(game.loss), game.test))
    found = _measured(game.metrics, losses, acts, game.test.outcome)
    return {**found, "loss": losses.mean(1, dtype=float)}


@jax.jit
def _predict(learners: Learner, states: Any, loss: Any, rounds: Rounds) -> tuple[Any, Any]:
    def at(learner, state, here):
        action = learner.predict(state, here.context)
        return loss(action, here.outcome), action

    over_rounds = jax.vmap(at, (None, None, 0))
    return jax.vmap(over_rounds, (0, 0, None))(learners, states, rounds)


def _wants_actions(names: list[str]) -> bool:
    return any("actions" in inspect.signature(getattr(measures, name)).parameters for name in names)


def _action_size(game: Game) -> int:
    if not _wants_actions(game.metrics):
        return 0
    return 1 if game.rounds.context is not None else len(game.start)
