"""Metrics of a run besides its loss; `olx.lab.tasks.task` says which task has which metrics.

A metric is a sum over rounds, of one number or of an array per round, and a function of that sum.
So it needs no memory of the rounds, and is swept and resumed as the loss is. The usual function is
the mean. `olx.lab.tasks.class_metrics` holds those of scores and classes.

A metric of a user is a function of an action and an outcome, which a config names
`mypackage.module:metric`: its mean is shown, and less is better.
"""

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from olx import losses, ranking
from olx._cache import cached
from olx.core import Feedback
from olx.lab.config import ConfigError
from olx.losses.margin import mistaken
from olx.losses.score import ScoreLoss
from olx.structured.chain import viterbi


class Metric(NamedTuple):
    round: Callable[..., Array]  # feedback -> what a round adds to the sum
    of: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None  # (sum, outcomes) -> metric;
    # its name names the metric; None for the mean, which `round` names
    rising: bool = False  # whether more is better
    label: str = ""  # its name, if that of the function is another
    user_fn: Callable[[PyTree, PyTree], Array] | None = None  # (action, outcome) -> number
    losses: tuple[str, ...] = ()  # the losses whose scores it can read; any if empty
    takes_loss: bool = False  # whether a config gives the arguments of the loss of its name

    @property
    def name(self) -> str:
        return self.label or self.definition.__name__

    @property
    def definition(self) -> Callable[..., Array | np.ndarray]:
        """The function whose docstring explains the metric."""
        return self.of or self.round

    @property
    def sum_name(self) -> str:
        """The name of its sum, which several metrics may share."""
        return getattr(self.round, "__name__", self.name)

    def value(self, total: np.ndarray, outcome: np.ndarray) -> np.ndarray:
        """The metric, from the sum over the rounds with these outcomes."""
        return total / len(outcome) if self.of is None else self.of(total, outcome)


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


@functools.cache
def with_loss(metric: Metric, arguments: tuple[tuple[str, float], ...]) -> Metric:
    """A metric that is the mean of the loss of its name, with arguments of a config."""
    loss = getattr(losses, metric.name)(**dict(arguments))
    label = f"{metric.name}({', '.join(f'{value:g}' for _, value in arguments)})"
    return Metric(functools.partial(metric.round, loss), label=label)


def error(feedback: Feedback) -> Array:
    """The share of mistakes; a score that is NaN is a mistake."""
    return mistaken(feedback.action, feedback.outcome)


def absolute_error(feedback: Feedback) -> Array:
    """The mean distance of prediction and outcome."""
    return jnp.abs(feedback.action - feedback.outcome)


def squared_error(feedback: Feedback) -> Array:
    """The mean squared distance of prediction and outcome."""
    return (feedback.action - feedback.outcome) ** 2


def mae(total: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """The mean absolute error, also called absolute_error."""
    return total / len(outcome)


def rmse(total: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """The root of the mean squared error."""
    return np.sqrt(total / len(outcome))


def r2(total: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """1 minus the squared error as a share of that of the mean of all outcomes.

    The mean is known only at the end, so the best constant so far is below 0. As in scikit-learn it
    is 0 if all outcomes are equal and a prediction is not.
    """
    seen = np.asarray(outcome, float)
    spread = np.sum((seen - seen.mean()) ** 2)
    return 1 - total / spread if spread > 0 else np.where(total > 0, 0.0, 1.0)


def mape(feedback: Feedback) -> Array:
    """The mean absolute error as a share of the outcome; huge if an outcome is 0."""
    size = jnp.maximum(jnp.abs(feedback.outcome), sys.float_info.epsilon)
    return jnp.abs(feedback.action - feedback.outcome) / size


def pinball(loss: ScoreLoss, feedback: Feedback) -> Array:
    """The mean loss of a forecast of the quantile q: { name = "pinball", q = 0.9 }."""
    return loss(feedback.action, feedback.outcome)


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


def log_wealth(feedback: Feedback) -> Array:
    """The logarithm of the growth in a round; for the log loss of portfolios."""
    return -feedback.value


def wealth(total: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """The final value of one unit of money; for the log loss of portfolios."""
    with np.errstate(over="ignore"):
        return np.exp(total)


def predicted_labels(state: PyTree, feedback: Feedback) -> Array:
    """The predicted labels of a sequence."""
    return viterbi(feedback.action)


@cached
def measure(
    metrics: tuple[Metric, ...], counts: Callable[[Feedback], Array] | None = None
) -> Callable[[Feedback], dict[str, Array]] | None:
    """A function that measures what is summed, for `olx.run`; None if nothing is.

    counts: a further sum, found under the name of the function.
    """
    sums = {metric.sum_name: metric.round for metric in metrics}
    sums |= {} if counts is None else {counts.__name__: counts}
    return functools.partial(_measure, tuple(sums.items())) if sums else None


def _measure(
    sums: tuple[tuple[str, Callable[[Feedback], Array]], ...], feedback: Feedback
) -> dict[str, Array]:
    return {name: function(feedback) for name, function in sums}


def metric_values(
    metrics: tuple[Metric, ...], sums: Mapping[str, Array | np.ndarray], outcome: np.ndarray
) -> dict[str, np.ndarray]:
    """The metrics by name, from their sums over the rounds with these outcomes."""
    return {each.name: each.value(np.asarray(sums[each.sum_name]), outcome) for each in metrics}
