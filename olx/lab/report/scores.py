"""Scores of a result: every configuration over its seeds, the best one per learner, and their text.

The best configuration of a learner has the smallest mean loss over all seeds. It is chosen in
hindsight, as in a grid search. A configuration diverged if its loss is not a finite number, or more
than ten times that of the baseline of the data set.
"""

import json
import math
import re
import statistics
from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from scipy import stats

from olx.lab.store import SCHEMAS
from olx.lab.tasks.task import METRICS

BASELINE = "baseline: "  # how the name of the baseline begins
FAR = 10.0  # a loss of so many baselines counts as diverged


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
    ceiling: float = math.inf  # a loss above it counts as diverged

    @property
    def diverged(self) -> bool:
        return not (math.isfinite(self.means["loss"]) and self.means["loss"] <= self.ceiling)

    @property
    def loss_text(self) -> str:
        return plus_minus(self.means["loss"], self.errors["loss"])


Winners = dict[tuple[str, str], Score]  # by data set and learner


def scores(table: pa.Table) -> list[Score]:
    """One score per configuration, in the order of the table."""
    known = SCHEMAS["configurations"].names
    swept = [name for name in table.column_names if name.startswith("h.")]
    others = [name for name in table.column_names if name not in known and name not in swept]
    measured = ["loss", *others]
    spread = pc.VarianceOptions(ddof=1)
    keys = ["dataset", "learner", "configuration"]
    grouped = table.group_by(keys, use_threads=False).aggregate(
        [("seed", "count"), ("rounds", "max"), ("hyperparameters", "first"), ("diverged", "any")]
        + [(name, "first") for name in swept]
        + [(name, "mean") for name in measured]
        + [(name, "stddev", spread) for name in measured]
    )
    found = [_score(row, measured, swept) for row in grouped.to_pylist()]
    ceilings = _ceilings(found)
    return [score._replace(ceiling=ceilings[score.dataset]) for score in found]


def winners(everything: list[Score]) -> Winners:
    """The configuration of smallest mean loss per data set and learner; best learners first."""
    datasets = list(dict.fromkeys(score.dataset for score in everything))
    rank = lambda score: (datasets.index(score.dataset), score.means["loss"])
    chosen: Winners = {}
    for score in sorted(everything, key=rank):
        chosen.setdefault((score.dataset, score.learner), score)
    return chosen


def by_dataset(best: Winners) -> dict[str, list[Score]]:
    """The scores of each data set, best learners first."""
    groups: dict[str, list[Score]] = {}
    for (dataset, _), score in best.items():
        groups.setdefault(dataset, []).append(score)
    return groups


def by_learner(everything: list[Score]) -> dict[tuple[str, str], list[Score]]:
    """All scores of each data set and learner."""
    groups: dict[tuple[str, str], list[Score]] = {}
    for score in everything:
        groups.setdefault((score.dataset, score.learner), []).append(score)
    return groups


def losses_by_seed(table: pa.Table, score: Score, name: str = "loss") -> dict[int, float]:
    """The mean loss, or a metric, of each run of a configuration; infinite if it diverged."""
    rows = score_rows(table, score)
    values = zip(rows["seed"].to_pylist(), rows[name].to_pylist(), strict=True)
    worst = -math.inf if is_rising(name) else math.inf
    is_finite = lambda value: value is not None and math.isfinite(value)
    return {seed: value if is_finite(value) else worst for seed, value in values}


def ranks(chosen: list[Score]) -> list[int]:
    """The rank of each score by its mean loss, from 1 on; equal losses share a rank."""
    losses = [score.means["loss"] for score in chosen]
    return [1 + sum(other < loss for other in losses) for loss in losses]


def ranking(best: Winners) -> dict[str, float]:
    """The mean rank of each learner on its data sets, the best first; equal losses share a rank."""
    places: dict[str, list[float]] = {}
    for chosen in by_dataset(best).values():
        shared = stats.rankdata([score.means["loss"] for score in chosen])
        for score, place in zip(chosen, shared.tolist(), strict=True):
            places.setdefault(score.learner, []).append(place)
    found = {learner: statistics.mean(own) for learner, own in places.items()}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def tuned_score(everything: list[Score], dataset: str, learner: str, metric: str) -> Score | None:
    """The configuration that is best by `metric`, as in published tables.

    Test rows are not used for tuning: for `test_error` it is the one with the best `error`.
    """
    by = metric.removeprefix("test_")
    mine = [one for one in everything if (one.dataset, one.learner) == (dataset, learner)]
    mine = [one for one in mine if not math.isnan(one.means.get(by, math.nan))]
    if not mine or metric not in mine[0].means:
        return None
    return min(mine, key=lambda one: -one.means[by] if is_rising(by) else one.means[by])


def score_rows(table: pa.Table, score: Score) -> pa.Table:
    """The rows of a configuration in the table of configurations or of curves."""
    return table.filter(
        (pc.field("dataset") == score.dataset)
        & (pc.field("learner") == score.learner)
        & (pc.field("configuration") == score.configuration)
    )


def edge_notes(everything: list[Score], winner: Score) -> list[str]:
    """A line per number of a best configuration that is the smallest or largest of its grid.

    A better value may lie outside. An equally good configuration inside the grid makes the line
    unnecessary.
    """
    if winner.diverged:
        return []
    mine = by_learner(everything).get((winner.dataset, winner.learner), [])
    best = [score for score in mine if score.means["loss"] == winner.means["loss"]]
    lines = []
    for axis, value in _numbers(winner).items():
        tried = sorted({_numbers(score)[axis] for score in mine if axis in _numbers(score)})
        stems = {tried[0]: "small", tried[-1]: "larg"} if len(tried) > 1 else {}
        if stems and all(_numbers(score).get(axis) in stems for score in best):
            lines.append(
                f"{winner.learner}: {axis} = {value:.4g} is the {stems[value]}est value of its "
                f"grid; extend it, if a {stems[value]}er one is legal."
            )
    return lines


def configuration(hyperparameters: Mapping[str, object]) -> str:
    """A configuration as one line of text."""
    return ", ".join(f"{name} = {value_text(value)}" for name, value in hyperparameters.items())


def value_text(value: object) -> str:
    """The value of a hyperparameter; a table of the config is a call.

    >>> value_text(0.123456), value_text({"name": "ball", "radius": 2.0})
    ('0.1235', 'ball(radius = 2)')
    """
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        inner = {name: rest for name, rest in value.items() if name != "name"}
        return f"{value.get('name', '')}({configuration(inner)})"
    return str(value)


def plus_minus(mean: float, error: float) -> str:
    """A mean with its standard error.

    >>> plus_minus(0.123456, 0.0123), plus_minus(0.5, float("nan")), plus_minus(6.784e7, 7e7)
    ('0.123 ± 0.012', '0.5', '6.8e7 ± 7e7')
    """
    return " ± ".join(filter(None, mean_and_error(mean, error)))


def mean_and_error(mean: float, error: float) -> tuple[str, str]:
    """Both as text, to four digits or as many as the error supports; no error if it is unknown.

    >>> mean_and_error(0.123456, 1e-6), mean_and_error(1234.5, 120.0)
    (('0.1235', '1e-6'), ('1230', '120'))
    """
    if math.isnan(error) or not math.isfinite(mean):
        return short(mean), ""
    size = math.floor(math.log10(abs(mean) or 1.0))
    digits = 1 - math.floor(math.log10(error)) if error > 0 else 9
    if digits > 4 - size:
        return short(mean), without_plus(f"{error:.1g}")
    if 1e-4 <= max(abs(mean), error) < 1e5:
        places = max(digits, 0)
        return f"{round(mean, digits):.{places}f}", f"{round(error, digits):.{places}f}"
    return without_plus(f"{mean:.{max(size + digits, 0)}e}"), without_plus(f"{error:.2g}")


def short(value: float | None, zeros: bool = False) -> str:
    """A number in a table.

    zeros: whether zeros at its end are kept, as in a column of numbers of one kind.

    >>> short(0.1564142), short(2.0), short(1.2e-7), short(None), short(float("inf"))
    ('0.1564', '2', '1.2e-7', '', 'diverged')
    >>> short(0.5, zeros=True)
    '0.5000'
    """
    if value is None or math.isnan(value):
        return ""
    text = f"{value:#.4g}".rstrip(".") if zeros else f"{value:.4g}"
    return without_plus(text) if math.isfinite(value) else "diverged"


def without_plus(number: str) -> str:
    """A number of Python with a short exponent.

    >>> without_plus("1e+07"), without_plus("2.5e-05")
    ('1e7', '2.5e-5')
    """
    return re.sub(r"e\+?(-?)0*", r"e\1", number)


def is_rising(name: str) -> bool:
    """Whether larger values of the metric are better."""
    metric = METRICS.get(name.removeprefix("test_"))
    return metric is not None and metric.rising


def _ceilings(everything: list[Score]) -> dict[str, float]:
    """Per data set, the mean loss above which a configuration counts as diverged.

    Without a baseline it is judged by the median of the learners. A loss that may be negative has
    no scale: then only what is not finite diverged.
    """
    ceilings = {}
    for dataset, chosen in by_dataset(winners(everything)).items():
        known = [one.means["loss"] for one in chosen if math.isfinite(one.means["loss"])]
        base = [one.means["loss"] for one in chosen if one.learner.startswith(BASELINE)]
        level = base[0] if base else statistics.median(known or [0.0])
        has_scale = level > 0 and min(known) >= 0
        ceilings[dataset] = FAR * level if has_scale else math.inf
    return ceilings


def _score(row: dict, measured: list[str], swept: list[str]) -> Score:
    seeds = row["seed_count"]
    means, errors = {}, {}
    for name in measured:
        mean, spread = row[f"{name}_mean"], row[f"{name}_stddev"]
        # not a metric of this data set, or one that is not defined on its outcomes
        if mean is None or (name != "loss" and math.isnan(mean) and not row["diverged_any"]):
            means[name] = errors[name] = math.nan
            continue
        broken = row["diverged_any"] or not math.isfinite(mean)
        worst = -math.inf if is_rising(name) else math.inf
        means[name] = worst if broken else mean
        errors[name] = math.nan if broken or seeds < 2 else spread / math.sqrt(seeds)
    values = {name.removeprefix("h."): row[f"{name}_first"] for name in swept}
    return Score(
        row["dataset"], row["learner"], row["configuration"],
        json.loads(row["hyperparameters_first"]),
        {name: value for name, value in values.items() if value is not None},
        row["rounds_max"], seeds, means, errors,
    )  # fmt: skip


def _numbers(score: Score) -> dict[str, float]:
    """The numbers among the values of a grid; others have no order."""
    numbers = {}
    for axis, value in score.hyperparameters.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            numbers[axis] = value
    return numbers
