"""The tasks: how outcomes are read, the shape of a decision, the loss and the metrics.

To add a task, add a value here: no other file of the lab compares names of tasks.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from olx._refusal import RefusedValue
from olx.core import Rounds
from olx.lab import baselines, outcomes
from olx.lab.baselines import Baseline
from olx.lab.decisions import LABELS, PARTS, ROWS, SCORE, SCORES, WEIGHTS, Decision
from olx.lab.metrics import (
    Metric,
    absolute_error,
    average_precision,
    coverage,
    error,
    growth,
    label_error,
    mistake,
    ndcg,
    one_error,
    predicted_class,
    predicted_labels,
    ranking_loss,
    reciprocal_rank,
    squared_error,
    wealth,
)
from olx.lab.refusals import nearest


@dataclasses.dataclass(frozen=True)
class Task:
    name: str
    read: Callable[..., np.ndarray]  # a reader of `olx.lab.outcomes`
    matches: Callable[[Rounds], bool]  # whether a generated stream is of this task
    decision: Decision
    baseline: Baseline  # what a learner must beat
    loss: str | dict[str, Any] | None  # the usual loss, as in a config; None if that must name one
    usual: tuple[Metric, ...] = ()  # measured if a config names no metrics
    others: tuple[Metric, ...] = ()  # measured if a config names them
    whole: bool = False  # whether outcomes are integers
    in_libsvm: bool = False  # whether the LIBSVM collection has a folder of its name
    labelled: bool = True  # whether the last column of a table holds outcomes, if none is named
    intercept: bool = True  # whether a feature that is always 1 can change a prediction
    several: bool = False  # whether a row of a file has several labels, as a row of 0 and 1
    gather: Callable[..., Any] | None = (
        None  # (place, x, outcome, group) -> context and outcome, if
    )
    # a round has several rows of a file
    predicted: Callable[..., Any] | None = None  # (state, feedback) -> the predicted classes, to
    # count which is taken for which; None if outcomes are no classes

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return self.usual + self.others


def _has_signs(rounds: Rounds) -> bool:
    return rounds.context is not None and set(np.unique(rounds.outcome)) <= {-1, 1}


def _has_classes(rounds: Rounds) -> bool:
    return rounds.context is not None and np.asarray(rounds.outcome).dtype.kind in "iu"


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
    baselines.MAJORITY,
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
    baselines.CLASSES,
    "cross_entropy",
    (Metric(error),),
    whole=True,
    in_libsvm=True,
    predicted=predicted_class,
)
LABEL_RANKING = Task(
    "label_ranking",
    outcomes.single_labels,
    lambda rounds: False,
    LABELS,
    baselines.LABELS,
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
    baseline=baselines.ROWS,
    loss="average_pairs",
    intercept=False,  # it adds the same to all rows of a group
    gather=outcomes.grouped,
)
CHAIN = Task(
    "chain",
    outcomes.classes,
    lambda rounds: False,
    PARTS,
    baselines.PARTS,
    {"name": "max_loss", "structure": "data"},
    (Metric(label_error),),
    whole=True,
    gather=outcomes.sequences,
    predicted=predicted_labels,
)
REGRESSION = Task(
    "regression",
    outcomes.reals,
    lambda rounds: rounds.context is not None,
    SCORE,
    baselines.MEAN,
    "squared",
    others=ERRORS,
    in_libsvm=True,
)
EXPERTS = Task(
    "experts",
    outcomes.expert_losses,
    lambda rounds: rounds.context is None,
    WEIGHTS,
    baselines.UNIFORM,
    "linear_loss",
)
PORTFOLIO = Task(
    "portfolio",
    outcomes.price_relatives,
    lambda rounds: False,
    WEIGHTS,
    baselines.UNIFORM,
    "log_loss",
    (Metric(wealth, growth, rising=True),),
    labelled=False,
)

RANKINGS = (LABEL_RANKING, MULTILABEL, INSTANCE_RANKING)
EVERY = (BINARY, MULTICLASS, *RANKINGS, CHAIN, REGRESSION, EXPERTS, PORTFOLIO)
TASKS = {task.name: task for task in EVERY}
METRICS = {metric.name: metric for task in TASKS.values() for metric in task.metrics}


def find(name: str) -> Task:
    """The task called `name`."""
    if name not in TASKS:
        raise RefusedValue(f"there is no task {name!r}; {nearest(name, list(TASKS))}")
    return TASKS[name]
