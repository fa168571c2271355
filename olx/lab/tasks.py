"""The tasks: how outcomes are read, the shape of a decision, the loss and the metrics.

To add a task, add a value here: no other file of the lab compares names of tasks.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

import olx
from olx.convex.sets import ConvexSet, ball, everywhere, simplex
from olx.core import Learner, Rounds
from olx.hindsight import itself
from olx.lab import outcomes
from olx.lab.metrics import (
    Metric,
    absolute_error,
    average_precision,
    coverage,
    error,
    growth,
    mistake,
    ndcg,
    one_error,
    ranking_loss,
    reciprocal_rank,
    squared_error,
    wealth,
)
from olx.lab.refusals import nearest

Data = Any  # an `olx.lab.data.Dataset`, which holds a task


@dataclasses.dataclass(frozen=True)
class Decision:
    """The decision of a learner in a round, and its comparator."""

    shape: Callable[[Data], tuple[int, ...]]  # of a decision
    starts: Callable[[Data], tuple[tuple[int, ...], ...]]  # shapes of a first decision; a learner
    # gets the first one from which it decides on something of the shape above
    first: float | str  # every coordinate of the usual first decision, or "uniform"
    lift: Callable[[Learner], Learner] | None  # makes a point learner predict from features;
    # None if there are no features
    apply: Callable[..., Any]  # (u, context) -> the decision of the comparator u
    zero: Callable[[Any], Any]  # first decision -> the trivial comparator
    domain: Callable[[float | None], ConvexSet]  # radius -> the set of comparators


@dataclasses.dataclass(frozen=True)
class Task:
    name: str
    read: Callable[..., np.ndarray]  # a reader of `olx.lab.outcomes`
    matches: Callable[[Rounds], bool]  # whether a generated stream is of this task
    decision: Decision
    loss: str | None  # the usual loss, of `olx.losses`; None if a config must name one
    usual: tuple[Metric, ...] = ()  # measured if a config names no metrics
    others: tuple[Metric, ...] = ()  # measured if a config names them
    whole: bool = False  # whether outcomes are integers
    in_libsvm: bool = False  # whether the LIBSVM collection has a folder of its name
    several: bool = False  # whether a row of a file has several labels, as a row of 0 and 1
    gather: Callable[..., Any] | None = (
        None  # (place, x, outcome, group) -> context and outcome, if
    )
    # a round has several rows of a file

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return self.usual + self.others


def _has_signs(rounds: Rounds) -> bool:
    return rounds.context is not None and set(np.unique(rounds.outcome)) <= {-1, 1}


def _has_classes(rounds: Rounds) -> bool:
    return rounds.context is not None and np.asarray(rounds.outcome).dtype.kind in "iu"


SCORE = Decision(
    shape=lambda data: (),
    starts=lambda data: ((data.width,),),
    first=0.0,
    lift=olx.linear,
    apply=olx.dot,
    zero=jnp.zeros_like,
    domain=lambda radius: everywhere() if radius is None else ball(radius),
)
WEIGHTS = Decision(
    shape=lambda data: (data.width,),
    starts=lambda data: ((data.width,),),
    first="uniform",
    lift=None,
    apply=itself,
    zero=lambda start: start,
    domain=lambda radius: simplex(),
)
SCORES = dataclasses.replace(
    SCORE,
    shape=lambda data: (data.classes,),
    starts=lambda data: ((data.classes, data.width), (data.width,)),  # the latter for reductions
)
LABELS = dataclasses.replace(
    SCORE,
    shape=lambda data: data.outcome.shape[1:],
    starts=lambda data: ((*data.outcome.shape[1:], data.width),),
)
ROWS = dataclasses.replace(
    SCORE,
    shape=lambda data: data.outcome.shape[1:],
    lift=olx.ranking.rank_rows,
    apply=olx.ranking.row_scores,
)
ERRORS = (Metric(absolute_error), Metric(squared_error))
RANKS = (
    Metric(one_error),
    Metric(coverage),
    Metric(ranking_loss),
    Metric(average_precision, rising=True),
    Metric(ndcg, rising=True),
    Metric(reciprocal_rank, rising=True),
)

BINARY = Task(
    "binary",
    outcomes.signs,
    _has_signs,
    SCORE,
    "logistic",
    (Metric(error),),
    ERRORS,
    in_libsvm=True,
)
MULTICLASS = Task(
    "multiclass",
    outcomes.classes,
    _has_classes,
    SCORES,
    "cross_entropy",
    (Metric(error),),
    whole=True,
    in_libsvm=True,
)
LABEL_RANKING = Task(
    "label_ranking",
    outcomes.single_labels,
    lambda rounds: False,
    LABELS,
    "max_pairs",
    (Metric(mistake),),
    RANKS,
)
MULTILABEL = dataclasses.replace(
    LABEL_RANKING, name="multilabel", read=outcomes.several_labels, several=True
)
INSTANCE_RANKING = dataclasses.replace(
    LABEL_RANKING,
    name="instance_ranking",
    read=outcomes.degrees,
    decision=ROWS,
    loss="average_pairs",
    gather=outcomes.grouped,
)
REGRESSION = Task(
    "regression",
    outcomes.reals,
    lambda rounds: rounds.context is not None,
    SCORE,
    "squared",
    others=ERRORS,
    in_libsvm=True,
)
EXPERTS = Task(
    "experts", outcomes.expert_losses, lambda rounds: rounds.context is None, WEIGHTS, "linear_loss"
)
PORTFOLIO = Task(
    "portfolio",
    outcomes.price_relatives,
    lambda rounds: False,
    WEIGHTS,
    "log_loss",
    (Metric(wealth, growth, rising=True),),
)

RANKINGS = (LABEL_RANKING, MULTILABEL, INSTANCE_RANKING)
EVERY = (BINARY, MULTICLASS, *RANKINGS, REGRESSION, EXPERTS, PORTFOLIO)
TASKS = {task.name: task for task in EVERY}
METRICS = {metric.name: metric for task in TASKS.values() for metric in task.metrics}


def find(owner: str, name: str) -> Task:
    """The task called `name`."""
    if name not in TASKS:
        raise ValueError(f"{owner}: there is no task {name!r}; {nearest(name, list(TASKS))}")
    return TASKS[name]
