"""Scores of a result: every configuration over its seeds, and the best one per learner."""

import json
import math
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from olx.lab.store import SCHEMAS
from olx.lab.tasks.task import METRICS

KEYS = ["dataset", "learner", "configuration"]


class Score(NamedTuple):
    """A configuration of a learner on a data set, over all its seeds."""

    dataset: str
    learner: str
    configuration: int
    hyperparameters: dict[str, object]
    swept: dict[str, float]  # the hyperparameters that a grid sweeps
    rounds: int
    seeds: int
    means: dict[str, float]  # of loss and metrics; infinite if a seed diverged, NaN if unknown
    errors: dict[str, float]  # their standard errors; NaN for a single seed


def metrics(table: pa.Table) -> list[str]:
    """The names of the loss and of all metrics in `table`."""
    known = SCHEMAS["configurations"].names
    others = [name for name in table.column_names if name not in known]
    return ["loss", *(name for name in others if not name.startswith("h."))]


def scores(table: pa.Table) -> list[Score]:
    """One score per configuration, in the order of the table."""
    measured = metrics(table)
    swept = [name for name in table.column_names if name.startswith("h.")]
    spread = pc.VarianceOptions(ddof=1)
    grouped = table.group_by(KEYS, use_threads=False).aggregate(
        [("seed", "count"), ("rounds", "max"), ("hyperparameters", "first"), ("diverged", "any")]
        + [(name, "first") for name in swept]
        + [(name, "mean") for name in measured]
        + [(name, "stddev", spread) for name in measured]
    )
    return [_score(row, measured, swept) for row in grouped.to_pylist()]


def winners(everything: list[Score]) -> dict[tuple[str, str], Score]:
    """The configuration of smallest mean loss per data set and learner; best learners first."""
    place: dict[str, int] = {}
    for score in everything:
        place.setdefault(score.dataset, len(place))
    rank = lambda score: (place[score.dataset], score.means["loss"])
    chosen: dict[tuple[str, str], Score] = {}
    for score in sorted(everything, key=rank):
        chosen.setdefault((score.dataset, score.learner), score)
    return chosen


def ranks(chosen: list[Score]) -> list[int]:
    """The rank of each score by its mean loss, from 1 on; equal losses share a rank."""
    losses = [score.means["loss"] for score in chosen]
    return [1 + sum(other < loss for other in losses) for loss in losses]


def tuned(everything: list[Score], dataset: str, learner: str, metric: str) -> Score | None:
    """The configuration that is best by `metric`, as in published tables.

    Test rows are not used for tuning: for `test_error` it is the one with the best `error`.
    """
    mine = [one for one in everything if (one.dataset, one.learner) == (dataset, learner)]
    if not mine or metric not in mine[0].means:
        return None
    by = metric.removeprefix("test_")
    return min(mine, key=lambda one: -one.means[by] if _rising(by) else one.means[by])


def _rising(name: str) -> bool:
    """Whether larger values of the metric are better."""
    metric = METRICS.get(name.removeprefix("test_"))
    return metric is not None and metric.rising


def _score(row: dict, measured: list[str], swept: list[str]) -> Score:
    seeds = row["seed_count"]
    means, errors = {}, {}
    for name in measured:
        mean, spread = row[f"{name}_mean"], row[f"{name}_stddev"]
        if mean is None:  # not a metric of this data set
            means[name] = errors[name] = math.nan
            continue
        broken = row["diverged_any"] or not math.isfinite(mean)
        worst = -math.inf if _rising(name) else math.inf
        means[name] = worst if broken else mean
        errors[name] = math.nan if broken or seeds < 2 else spread / math.sqrt(seeds)
    return Score(
        row["dataset"],
        row["learner"],
        row["configuration"],
        json.loads(row["hyperparameters_first"]),
        {
            name.removeprefix("h."): row[f"{name}_first"]
            for name in swept
            if row[f"{name}_first"] is not None
        },
        row["rounds_max"],
        seeds,
        means,
        errors,
    )
