"""Metrics of a run besides its loss; `olx.lab.tasks` says which task has which metrics.

A metric is one number per round, summed over rounds while they are played.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from olx.core import Feedback
from olx.losses.margin import mistaken


def mean(total: np.ndarray, rounds: int) -> np.ndarray:
    return total / rounds


def growth(total: np.ndarray, rounds: int) -> np.ndarray:
    return np.exp(total)


class Metric(NamedTuple):
    round: Callable[[Feedback], Array]  # the number of a round; its name names the metric
    of: Callable[[np.ndarray, int], np.ndarray] = mean  # (sum, number of rounds) -> metric
    rising: bool = False  # whether more is better

    @property
    def name(self) -> str:
        return self.round.__name__


def error(feedback: Feedback) -> Array:
    """The share of mistakes; a score that is NaN is a mistake."""
    return mistaken(feedback.action, feedback.outcome)


def absolute_error(feedback: Feedback) -> Array:
    """The mean distance of prediction and outcome."""
    return jnp.abs(feedback.action - feedback.outcome)


def squared_error(feedback: Feedback) -> Array:
    """The mean squared distance of prediction and outcome."""
    return (feedback.action - feedback.outcome) ** 2


def wealth(feedback: Feedback) -> Array:
    """The final value of one unit of money; for the log loss of portfolios."""
    return -feedback.value


@functools.cache
def measure(metrics: tuple[Metric, ...]) -> Callable[[Feedback], dict[str, Array]] | None:
    """A function that measures all `metrics` in a round, for `olx.run`; None without metrics."""
    return functools.partial(_measure, metrics) if metrics else None


def _measure(metrics: tuple[Metric, ...], feedback: Feedback) -> dict[str, Array]:
    return {metric.name: metric.round(feedback) for metric in metrics}


def told(metrics: tuple[Metric, ...], sums: Any, rounds: int) -> dict[str, np.ndarray]:
    """The metrics by name, from their sums over `rounds` rounds."""
    with np.errstate(over="ignore"):
        return {each.name: each.of(np.asarray(sums[each.name]), rounds) for each in metrics}
