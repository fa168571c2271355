"""Metrics of a run besides its loss; `olx.lab.tasks.task` says which task has which metrics.

A metric is one number per round, summed over rounds while they are played. A metric of a user is a
function of an action and an outcome, which a config names `mypackage.module:metric`: its mean is
shown, and less is better.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from olx import ranking
from olx._cache import cached
from olx.core import Feedback
from olx.lab.config import ConfigError
from olx.losses.margin import hot, mistaken, rival
from olx.structured.chain import viterbi


def mean(total: np.ndarray, rounds: int) -> np.ndarray:
    return total / rounds


def growth(total: np.ndarray, rounds: int) -> np.ndarray:
    return np.exp(total)


class Metric(NamedTuple):
    round: Callable[[Feedback], Array]  # the number of a round; its name names the metric
    of: Callable[[np.ndarray, int], np.ndarray] = mean  # (sum, number of rounds) -> metric
    rising: bool = False  # whether more is better
    label: str = ""  # its name, if it is of a user
    user_fn: Callable[[PyTree, PyTree], Array] | None = None  # (action, outcome) -> number

    @property
    def name(self) -> str:
        return self.label or self.round.__name__


@functools.cache
def user_metric(name: str, function: Callable[[PyTree, PyTree], Array]) -> Metric:
    """The metric that a config names `name`; refuses what is no function of two arguments."""
    try:
        inspect.signature(function).bind(None, None)
    except TypeError as error:
        raise ConfigError(
            f"metrics: {name} must be a function of an action and an outcome: {error}."
        ) from None
    return Metric(functools.partial(_user_round, function), label=name, user_fn=function)


def _user_round(function: Callable[[PyTree, PyTree], Array], feedback: Feedback) -> Array:
    return jnp.asarray(function(feedback.action, feedback.outcome), feedback.value.dtype)


def error(feedback: Feedback) -> Array:
    """The share of mistakes; a score that is NaN is a mistake."""
    return mistaken(feedback.action, feedback.outcome)


def absolute_error(feedback: Feedback) -> Array:
    """The mean distance of prediction and outcome."""
    return jnp.abs(feedback.action - feedback.outcome)


def squared_error(feedback: Feedback) -> Array:
    """The mean squared distance of prediction and outcome."""
    return (feedback.action - feedback.outcome) ** 2


def mistake(feedback: Feedback) -> Array:
    """The share of rounds in which a relevant label is not strictly above all others."""
    return ranking.mistake(feedback.action, feedback.outcome)


def one_error(feedback: Feedback) -> Array:
    """The share of rounds in which the highest score is not that of a relevant label."""
    return ranking.one_error(feedback.action, feedback.outcome)


def coverage(feedback: Feedback) -> Array:
    """How many labels of the ranking hold all relevant ones."""
    return ranking.coverage(feedback.action, feedback.outcome)


def ranking_loss(feedback: Feedback) -> Array:
    """The share of pairs of labels in the wrong order."""
    return ranking.ranking_loss(feedback.action, feedback.outcome)


def average_precision(feedback: Feedback) -> Array:
    """The mean over relevant labels of the precision at their rank."""
    return ranking.average_precision(feedback.action, feedback.outcome)


def ndcg(feedback: Feedback) -> Array:
    """The discounted gain of the ranking, as a share of the best possible."""
    return ranking.ndcg(feedback.action, feedback.outcome)


def reciprocal_rank(feedback: Feedback) -> Array:
    """One over the rank of the first relevant label."""
    return ranking.reciprocal_rank(feedback.action, feedback.outcome)


def label_error(feedback: Feedback) -> Array:
    """The mean over sequences of the share of wrong labels."""
    real = feedback.outcome >= 0  # padding is -1
    wrong = real & (viterbi(feedback.action) != feedback.outcome)
    return jnp.sum(wrong) / jnp.sum(real)


def wealth(feedback: Feedback) -> Array:
    """The final value of one unit of money; for the log loss of portfolios."""
    return -feedback.value


def predicted_class(state: PyTree, feedback: Feedback) -> Array:
    """The class that a round counts as: its label, or on a mistake the best of the others.

    It is -1 if the scores name no class, because one is NaN.
    """
    scores, label = feedback.action, feedback.outcome
    other = rival(scores, hot(scores, label))
    second = jnp.sum(jnp.where(other, jnp.arange(scores.shape[-1]), 0))
    second = jnp.where(jnp.any(other), second, -1)
    return jnp.where(mistaken(scores, label), second, label).astype(jnp.int32)


def predicted_labels(state: PyTree, feedback: Feedback) -> Array:
    """The predicted labels of a sequence."""
    return viterbi(feedback.action)


@cached
def measure(metrics: tuple[Metric, ...]) -> Callable[[Feedback], dict[str, Array]] | None:
    """A function that measures all `metrics` in a round, for `olx.run`; None without metrics."""
    return functools.partial(_measure, metrics) if metrics else None


def _measure(metrics: tuple[Metric, ...], feedback: Feedback) -> dict[str, Array]:
    return {metric.name: metric.round(feedback) for metric in metrics}


def metric_values(
    metrics: tuple[Metric, ...], sums: Mapping[str, Array | np.ndarray], rounds: int
) -> dict[str, np.ndarray]:
    """The metrics by name, from their sums over `rounds` rounds."""
    with np.errstate(over="ignore"):
        return {each.name: each.of(np.asarray(sums[each.name]), rounds) for each in metrics}
