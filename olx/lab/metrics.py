"""What a run is judged by besides its loss; `olx.lab.tasks` says which task has which.

A metric is a number of every round, which is summed over the rounds as they are played.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from olx.core import Feedback


def mean(total: np.ndarray, rounds: int) -> np.ndarray:
    return total / rounds


def growth(total: np.ndarray, rounds: int) -> np.ndarray:
    return np.exp(total)


class Metric(NamedTuple):
    round: Callable[[Feedback], Array]  # what a round adds; its name is that of the metric
    of: Callable[[np.ndarray, int], np.ndarray] = mean  # (sum, number of rounds) -> what is told
    rising: bool = False  # whether more is better

    @property
    def name(self) -> str:
        return self.round.__name__


def error(feedback: Feedback) -> Array:
    r"""The share of mistakes, $y s \le 0$; a score that is not a number is one."""
    return ~(feedback.action * feedback.outcome > 0)


def absolute_error(feedback: Feedback) -> Array:
    """The mean distance of prediction and outcome."""
    return jnp.abs(feedback.action - feedback.outcome)


def squared_error(feedback: Feedback) -> Array:
    """The mean squared distance of prediction and outcome."""
    return (feedback.action - feedback.outcome) ** 2


def wealth(feedback: Feedback) -> Array:
    """What one unit of money became, where the loss is the log loss."""
    return -feedback.value


@functools.cache
def measure(metrics: tuple[Metric, ...]) -> Callable[[Feedback], dict[str, Array]] | None:
    """All of these in a round, for `olx.run` and `olx.sweep`; None if there are none."""
    return functools.partial(_measure, metrics) if metrics else None


def _measure(metrics: tuple[Metric, ...], feedback: Feedback) -> dict[str, Array]:
    return {metric.name: metric.round(feedback) for metric in metrics}


def told(metrics: tuple[Metric, ...], sums: Any, rounds: int) -> dict[str, np.ndarray]:
    """The metrics by name, from their sums over so many rounds."""
    with np.errstate(over="ignore"):
        return {each.name: each.of(np.asarray(sums[each.name]), rounds) for each in metrics}
