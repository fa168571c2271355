"""Numbers of learners that are chosen on one stream and played on another."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx


class Entry(NamedTuple):
    """A learner of the table, and the values that are tried of each of its numbers."""

    make: Callable[..., olx.Learner]
    grid: dict[str, np.ndarray]


class Played(NamedTuple):
    error: float
    numbers: dict[str, float]


def chosen(entry: Entry, loss: Callable, rounds: olx.Rounds) -> dict[str, float]:
    """The numbers of the grid that err least on these rounds."""
    axes = olx.grid(**entry.grid)
    best = errors(entry.make, loss, rounds, **axes).argmin()
    return {name: float(values[best]) for name, values in axes.items()}


def compared(entry: Entry, loss: Callable, tuning: olx.Rounds, rounds: olx.Rounds) -> Played:
    """The error on `rounds` with the numbers that are best on `tuning`."""
    numbers = chosen(entry, loss, tuning)
    axes = {name: np.array([value]) for name, value in numbers.items()}
    return Played(float(errors(entry.make, loss, rounds, **axes)[0]), numbers)


def errors(make: Callable, loss: Callable, rounds: olx.Rounds, **axes: np.ndarray) -> np.ndarray:
    """The share of mistakes of one pass for each entry of the axes, played as one program."""
    start = jnp.zeros(rounds.context.shape[1])
    batch = olx.batch(make, **{name: jnp.asarray(v, start.dtype) for name, v in axes.items()})
    runs = olx.sweep(batch, loss, rounds, start, measure=mistake, keep=olx.keep.totals)
    return np.asarray(runs.curve.sums[:, -1]) / len(rounds.outcome)


def mistake(feedback: olx.Feedback) -> jax.Array:
    return jnp.where(feedback.action * feedback.outcome > 0, 0.0, 1.0)
