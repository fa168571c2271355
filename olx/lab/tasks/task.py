"""The tasks: how outcomes are read, what a learner decides on, the loss and the metrics.

To add a task, add a value here: no other file of the lab compares names of tasks.
"""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

import olx
from olx import structured
from olx._refusal import RefusedValue
from olx.convex.sets import ConvexSet, ball, everywhere, simplex
from olx.core import Feedback, Learner, Rounds
from olx.hindsight import itself
from olx.lab.config import nearest
from olx.lab.tasks import baselines, metrics, outcomes
from olx.lab.tasks import class_metrics as scored
from olx.lab.tasks.baselines import Baseline
from olx.lab.tasks.metrics import Metric

if TYPE_CHECKING:
    from olx.lab import data  # which holds a task

Dataset: TypeAlias = "data.Dataset"


@dataclasses.dataclass(frozen=True)
class Decision:
    """The decision of a learner in a round, and its comparator."""

    shape: Callable[[Dataset], tuple[int, ...] | None]  # of what is played; None for a tree
    # first decisions, as trees of shapes; a learner gets the first one from which it plays
    # something of the shape above
    starts: Callable[[Dataset], tuple[PyTree, ...]]
    first: float | str  # every coordinate of the usual first decision, or "uniform"
    lift: Callable[[Learner], Learner] | None  # makes a point learner predict from features;
    # None if there are no features
    apply: Callable[[PyTree, PyTree], PyTree]  # (u, context) -> what the comparator u plays
    zero: Callable[[PyTree], PyTree]  # first decision -> the trivial comparator
    domain: Callable[[float | None], ConvexSet]  # radius -> the set of comparators


def shaped(*shape: int) -> jax.ShapeDtypeStruct:
    """The shape of an array of a decision."""
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def chain_parts(w: structured.ChainWeights, context: structured.Sequences) -> structured.Parts:
    """The scores that these weights of a chain give to the parts of a sequence."""
    return structured.chain(*w.emission.shape).parts(w, context)


@dataclasses.dataclass(frozen=True)
class Task:
    name: str
    read: Callable[..., np.ndarray]  # a reader of `olx.lab.tasks.outcomes`
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
    # (place, x, outcome, group) -> context and outcome, if a round has several rows of a file
    gather: Callable[..., tuple[PyTree, np.ndarray]] | None = None
    # (state, feedback) -> the predicted classes, to count which is taken for which; None if
    # outcomes are no classes
    predicted: Callable[[PyTree, Feedback], Array] | None = None
    # the mistakes on each of two classes, as a sum over rounds, which needs no second run
    counts: Callable[[Feedback], Array] | None = None

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return self.usual + self.others

    def metric(self, name: str) -> Metric | None:
        """The metric of this name; None if it does not fit the task."""
        return next((metric for metric in self.metrics if metric.name == name), None)


def _has_signs(rounds: Rounds) -> bool:
    return rounds.context is not None and set(np.unique(rounds.outcome)) <= {-1, 1}


def _has_classes(rounds: Rounds) -> bool:
    return rounds.context is not None and np.asarray(rounds.outcome).dtype.kind in "iu"


SCORE = Decision(
    shape=lambda data: (),
    starts=lambda data: (shaped(data.width),),
    first=0.0,
    lift=olx.linear,
    apply=olx.dot,
    zero=jnp.zeros_like,
    domain=lambda radius: everywhere() if radius is None else ball(radius),
)
WEIGHTS = Decision(
    shape=lambda data: (data.width,),
    starts=lambda data: (shaped(data.width),),
    first="uniform",
    lift=None,
    apply=itself,
    zero=lambda start: start,
    domain=lambda radius: simplex(),
)
SCORES = dataclasses.replace(
    SCORE,
    shape=lambda data: (data.classes,),
    starts=lambda data: (shaped(data.classes, data.width), shaped(data.width)),  # for reductions
)
LABELS = dataclasses.replace(
    SCORE,
    shape=lambda data: data.outcome.shape[1:],
    starts=lambda data: (shaped(*data.outcome.shape[1:], data.width),),
)
ROWS = dataclasses.replace(
    SCORE,
    shape=lambda data: data.outcome.shape[1:],
    lift=olx.ranking.rank_rows,
    apply=olx.ranking.row_scores,
)
PARTS = dataclasses.replace(
    SCORE,
    shape=lambda data: None,
    starts=lambda data: (jax.eval_shape(structured.chain(data.classes, data.width).zeros),),
    lift=lambda inner: olx.model(inner, chain_parts),
    apply=chain_parts,
    zero=lambda start: jax.tree.map(jnp.zeros_like, start),
)


ERRORS = (Metric(metrics.absolute_error), Metric(metrics.squared_error))
NUMBERS = (
    *ERRORS,
    Metric(metrics.absolute_error, metrics.mae),
    Metric(metrics.squared_error, metrics.rmse),
    Metric(metrics.squared_error, metrics.r2, rising=True),
    Metric(metrics.mape),
    Metric(metrics.pinball, takes_loss=True),
)
SCORED = tuple(
    Metric(scored.class_counts, each, rising=True)
    for each in (
        scored.accuracy,
        scored.balanced_accuracy,
        scored.f1,
        scored.precision,
        scored.recall,
    )
)
SCORED += tuple(
    Metric(scored.score_bins, each, rising=True) for each in (scored.auc, scored.average_precision)
)
SCORED += (
    Metric(scored.brier, losses=("logistic",)),
    Metric(scored.probability_bins, scored.calibration, losses=("logistic",)),
)
MACRO = (
    *SCORED[:2],
    Metric(scored.class_counts, scored.macro_f1, rising=True, label="f1"),
    Metric(scored.class_counts, scored.macro_precision, rising=True, label="precision"),
    Metric(scored.class_counts, scored.macro_recall, rising=True, label="recall"),
)

RANKS = (
    Metric(metrics.one_error),
    Metric(metrics.coverage),
    Metric(metrics.ranking_loss),
    Metric(metrics.average_precision, rising=True),
    Metric(metrics.ndcg, rising=True),
    Metric(metrics.reciprocal_rank, rising=True),
)

BINARY = Task(
    "binary",
    outcomes.signs,
    _has_signs,
    SCORE,
    baselines.MAJORITY,
    "logistic",
    (Metric(metrics.error),),
    ERRORS + SCORED,
    in_libsvm=True,
    counts=scored.mistakes_by_class,
)
MULTICLASS = Task(
    "multiclass",
    outcomes.classes,
    _has_classes,
    SCORES,
    baselines.CLASSES,
    "cross_entropy",
    (Metric(metrics.error),),
    MACRO,
    whole=True,
    in_libsvm=True,
    predicted=scored.predicted_class,
)
LABEL_RANKING = Task(
    "label_ranking",
    outcomes.single_labels,
    lambda rounds: False,
    LABELS,
    baselines.LABELS,
    "max_pairs",
    (Metric(metrics.mistake),),
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
    (Metric(metrics.label_error),),
    whole=True,
    gather=outcomes.sequences,
    predicted=metrics.predicted_labels,
)
REGRESSION = Task(
    "regression",
    outcomes.reals,
    lambda rounds: rounds.context is not None,
    SCORE,
    baselines.MEAN,
    "squared",
    others=NUMBERS,
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
    (Metric(metrics.log_wealth, metrics.wealth, rising=True),),
    labelled=False,
)

RANKINGS = (LABEL_RANKING, MULTILABEL, INSTANCE_RANKING)
EVERY = (BINARY, MULTICLASS, *RANKINGS, CHAIN, REGRESSION, EXPERTS, PORTFOLIO)
TASKS = {task.name: task for task in EVERY}
ALL_METRICS = tuple(dict.fromkeys(metric for task in EVERY for metric in task.metrics))
METRICS = {metric.name: metric for task in TASKS.values() for metric in task.metrics}


def find(name: str) -> Task:
    """The task called `name`."""
    if name not in TASKS:
        raise RefusedValue(f"there is no task {name!r}; {nearest(name, list(TASKS))}")
    return TASKS[name]
