"""What a run is judged by besides its loss; a config names these functions.

A metric is a number of every round, which is summed over the rounds as they are played.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from olx.core import Feedback


class Metric(NamedTuple):
    round: Callable[[Feedback], Array]  # what a round adds
    of: Callable[[np.ndarray, int], np.ndarray]  # (sum, number of rounds) -> what is told
    tasks: tuple[str, ...]  # those it makes sense for


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


def _mean(total: np.ndarray, rounds: int) -> np.ndarray:
    return total / rounds


def _growth(total: np.ndarray, rounds: int) -> np.ndarray:
    return np.exp(total)


METRICS = {
    "error": Metric(error, _mean, ("binary",)),
    "absolute_error": Metric(absolute_error, _mean, ("binary", "regression")),
    "squared_error": Metric(squared_error, _mean, ("binary", "regression")),
    "wealth": Metric(wealth, _growth, ("portfolio",)),
}


@functools.cache
def measure(names: tuple[str, ...]) -> Callable[[Feedback], dict[str, Array]] | None:
    """All of these in a round, for `olx.run` and `olx.sweep`; None if there are none."""
    return functools.partial(_measure, names) if names else None


def _measure(names: tuple[str, ...], feedback: Feedback) -> dict[str, Array]:
    return {name: METRICS[name].round(feedback) for name in names}


def told(sums: dict[str, Any] | None, rounds: int) -> dict[str, np.ndarray]:
    """The metrics by name, from their sums over so many rounds."""
    with np.errstate(over="ignore"):
        return {name: METRICS[name].of(np.asarray(s), rounds) for name, s in (sums or {}).items()}
