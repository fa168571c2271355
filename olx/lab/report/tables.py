"""The tables of a report, as rows of text."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from olx.certificate import DIVERGED
from olx.lab.report import scores
from olx.lab.report.scores import Score, Winners, configuration, plus_minus, short

HOLDS, FAILS, LOST, NOT_MET = "holds", "fails", "diverged", "conditions not met"
PART = "_seconds"  # the end of the name of a column of seconds


class Column(NamedTuple):
    name: str
    number: bool = True  # aligned to the right


class Table(NamedTuple):
    title: str
    head: list[Column]
    rows: list[list[str]]
    note: str = ""
    foot: Sequence[list[str]] = ()  # rows that stay below the others, such as sums


def columns(texts: str, numbers: Sequence[str] = ()) -> list[Column]:
    """Columns of text, named in one string with commas, then columns of numbers."""
    return [*(Column(name, False) for name in texts.split(", ")), *map(Column, numbers)]


def without_datasets(table: Table) -> Table:
    """The table without the name of the data set, if all rows are of one."""
    names = [column.name for column in table.head]
    if "data set" not in names or table.foot:
        return table
    place = names.index("data set")
    if len({row[place] for row in table.rows}) > 1:
        return table
    less = lambda row: [*row[:place], *row[place + 1 :]]
    return table._replace(head=less(table.head), rows=[less(row) for row in table.rows])


def overview(best: Winners) -> Table | None:
    """Learners against data sets, ordered by their mean rank; None for a single data set."""
    boards = scores.by_dataset(best)
    if len(boards) < 2:
        return None
    cell = lambda *pair: short(best[pair].means["loss"], zeros=True) if pair in best else ""
    rows = [
        [learner, f"{rank:.2f}", *(cell(dataset, learner) for dataset in boards)]
        for learner, rank in scores.ranking(best).items()
    ]
    head = columns("learner", ["mean rank", *boards])
    return Table(
        "Mean ranks and losses", head, rows, "Mean loss of the best configuration on each."
    )


def leaderboards(best: Winners, everything: list[Score] | None = None) -> list[Table]:
    """One table per data set: every learner at its smallest mean loss, the best one first.

    everything: the scores of all configurations, to name best values at the end of their grid.
    """
    boards = []
    for dataset, chosen in scores.by_dataset(best).items():
        metrics = [name for name, mean in chosen[0].means.items() if not math.isnan(mean)]
        head = [Column(""), *columns("learner", [f"mean {name}" for name in metrics])]
        rows = [
            [
                str(rank),
                score.learner,
                *(plus_minus(score.means[name], score.errors[name]) for name in metrics),
                configuration(score.hyperparameters),
            ]
            for rank, score in zip(scores.ranks(chosen), chosen, strict=True)
        ]
        seeds = max(score.seeds for score in chosen)
        note = f"{chosen[0].rounds:,} rounds, "
        note += f"{seeds} seeds; ± is one standard error." if seeds > 1 else "one seed."
        edges = [line for score in chosen for line in scores.edge_notes(everything or [], score)]
        head += columns("best configuration")
        boards.append(Table(dataset, head, rows, " ".join([note, *edges])))
    return boards


def published_table(entries: list[dict], everything: list[Score]) -> Table | None:
    """The published numbers of the config beside ours."""
    rows = []
    for entry in entries:
        learner, metric = entry["learner"], entry["metric"]
        for dataset, value in entry["values"].items():
            score = scores.tuned_score(everything, dataset, learner, metric)
            if score is None:
                continue
            ours = score.means[metric]
            mine = plus_minus(ours, score.errors[metric])
            change = f"{ours - value:+.2g}" if math.isfinite(ours) else ""
            chosen = configuration(score.hyperparameters)
            row = [dataset, learner, metric, short(value), mine, change, chosen, entry["source"]]
            rows.append(row)
    if not rows:
        return None
    head = columns("data set, learner, metric", ["in print", "ours", "difference"])
    note = (
        "Ours is the configuration that is best by the metric itself; where rows are kept for a "
        "test, by the same metric on the other rows."
    )
    return Table("Published numbers beside ours", head + columns("at, source"), rows, note)


def theorem_table(certificates: pa.Table) -> Table | None:
    """Per theorem: the verdicts on its runs, and the numbers of those that it speaks about."""
    grouped: dict[tuple[str, ...], list[dict]] = {}
    for run in certificates.to_pylist():
        about = tuple(run[key] for key in ("dataset", "learner", "name", "theorem"))
        grouped.setdefault(about, []).append(run)
    if not grouped:
        return None
    rows = [[*about, verdict_text(runs), *_sides(runs)] for about, runs in grouped.items()]
    numbers = ["left side", "right side", "published bound"]
    numbers += ["least slack", "median tightness", "largest tightness"]
    note = (
        "Theorems are checked on the run shown, in its precision. Numbers are of the runs that "
        "meet the conditions. Slack is right side minus left side, the smallest over all rounds; "
        "both sides are those after the last round of the run with the smallest slack. Tightness "
        "is the largest ratio left / right; 1 means that the bound was attained. The published "
        "bound is the right side in the looser form of the source, if it has one. Where a run "
        "breaks a condition, the theorem says nothing about it."
    )
    head = columns("data set, learner, name, theorem, verdict", numbers)
    return Table("Theorems checked", head, rows, note)


def verdict(run: dict) -> str:
    """The verdict on one run, a row of the table of certificates.

    holds               both sides were in order after every round, up to rounding
    fails               they were not, in a round before any condition was broken
    diverged            an action or a loss of the run is not finite; then nothing holds
    conditions not met  from some round on: there the theorem says nothing
    """
    if not run["holds"]:
        return LOST if DIVERGED in run["broken"] else FAILS
    return NOT_MET if run["broken"] or run["right"] == math.inf else HOLDS


def verdict_counts(certificates: pa.Table) -> dict[str, int]:
    """How many runs have each verdict."""
    found = [verdict(run) for run in certificates.to_pylist()]
    return {each: found.count(each) for each in (HOLDS, FAILS, LOST, NOT_MET) if each in found}


def verdict_text(runs: list[dict]) -> str:
    """The verdicts on the runs of one theorem, in words."""
    parts = []
    for each in (FAILS, LOST, NOT_MET, HOLDS):
        if own := [run for run in runs if verdict(run) == each]:
            share = f"all {len(runs)}" if len(own) == len(runs) else f"{len(own)} of {len(runs)}"
            parts.append(f"{each}{f' in {share} runs' if len(runs) > 1 else ''}{_why(each, own)}")
    difference = max(run["difference"] for run in runs)
    if not difference < 1e-3:
        parts.append(f"played again, the losses differ by {difference:.1g}")
    return "; ".join(parts)


def _why(each: str, runs: list[dict]) -> str:
    """The reason of a verdict other than that the theorem holds."""
    if each == FAILS and all(run["holds_in_double"] for run in runs):
        return " by rounding alone: in double precision it holds"
    if each == FAILS and all(run["slack"] >= 0 for run in runs):
        return ": the published form is below the right side"
    if each in (FAILS, HOLDS):
        return ""
    broken = next((run["broken"] for run in runs if run["broken"]), "")
    reason = f" {broken}" if broken else ": the right side is infinite"
    return reason.removesuffix(f": {DIVERGED}") if each == LOST else reason


def _sides(runs: list[dict]) -> list[str]:
    judged = [run for run in runs if verdict(run) not in (LOST, NOT_MET)]
    if not judged:
        return [""] * 6
    worst = min(judged, key=lambda run: run["slack"])
    slack = max(worst["slack"], 0.0) if verdict(worst) == HOLDS else worst["slack"]
    tightness = [run["tightness"] for run in judged]
    sides = [worst["left"], worst["right"], worst["published"]]
    numbers = [*sides, slack, float(np.median(tightness)), max(tightness)]
    return ["∞" if number == math.inf else short(number) for number in numbers]


def divergence_table(everything: list[Score], curves: pa.Table) -> Table | None:
    """One row per data set and learner that diverged for some of its configurations."""
    rows = []
    for (dataset, learner), mine in scores.by_learner(everything).items():
        lost = [score for score in mine if score.diverged]
        if lost:
            share, first = f"{len(lost):,} of {len(mine):,}", _first_divergence(curves, lost)
            rows.append([dataset, learner, share, *first, divergence_hint(mine)])
    if not rows:
        return None
    head = columns("data set, learner", ["diverged"])
    head += columns("the first of them, loss not finite", ["mean loss before"]) + columns("which")
    note = (
        "A configuration diverged if its loss is not a finite number in some round of some seed, "
        "or in the mean more than ten times that of the baseline, or of the median learner where "
        "no baseline was played. The rounds are those between which the curve of the loss ends; "
        "the first of them is the configuration that diverged earliest."
    )
    return Table("Configurations that diverged", head, rows, note)


def divergence_hint(mine: list[Score]) -> str:
    """What the configurations that diverged have in common, if one number tells them apart."""
    if all(score.diverged for score in mine):
        return "every configuration"
    values = lambda name, lost: [one.swept[name] for one in mine if one.diverged == lost]
    for name in mine[0].swept:
        bad, good = values(name, True), values(name, False)
        if min(bad) > max(good):
            return f"{name} is too large: all with {name} ≥ {min(bad):.4g}, none below"
        if max(bad) < min(good):
            return f"{name} is too small: all with {name} ≤ {max(bad):.4g}, none above"
    for name in mine[0].swept:
        bad, good = values(name, True), values(name, False)
        if min(bad) > min(good):
            return f"only some with {name} ≥ {min(bad):.4g}"
        if max(bad) < max(good):
            return f"only some with {name} ≤ {max(bad):.4g}"
    return ""


def _first_divergence(curves: pa.Table, lost: list[Score]) -> tuple[str, str, str]:
    """The configuration that diverged first, between which rounds, and its mean loss before."""
    found = [(_last_finite(curves, score), score) for score in lost]
    (after, until, level), first = min(found, key=lambda one: (one[0][1], one[1].configuration))
    name = configuration(first.hyperparameters) or "no numbers"
    if math.isinf(until):
        return name, "always finite", short(first.means["loss"])
    where = f"in round {until:,.0f}"
    if until - after > 1:
        where = f"between rounds {after + 1:,.0f} and {until:,.0f}"
    return name, where, "" if math.isnan(level) else f"{level:.4g}"


def _last_finite(curves: pa.Table, score: Score) -> tuple[float, float, float]:
    """The last round of a finite loss, the next one on the curve, and the mean loss until then."""
    part = scores.score_rows(curves, score)
    seeds, rounds = part["seed"].to_numpy(), part["round"].to_numpy()
    totals = part["total"].to_numpy(zero_copy_only=False)
    ends = []
    for seed in np.unique(seeds):
        order = np.argsort(rounds[seeds == seed])
        at, paid = rounds[seeds == seed][order], totals[seeds == seed][order]
        bad = ~np.isfinite(paid)
        if bad.any():
            i = int(np.argmax(bad))
            ends.append((at[i - 1], at[i], paid[i - 1] / at[i - 1]) if i else (0, at[0], math.nan))
    return min(ends, key=lambda end: end[1], default=(0.0, math.inf, math.nan))


class Confusion(NamedTuple):
    """How often each class was predicted for each by one learner, summed over seeds."""

    names: list[str]  # of the labels
    others: list[str]  # of the predictions: the labels, and "none" if there was no prediction
    table: np.ndarray  # (labels, predictions)

    @property
    def mistakes(self) -> np.ndarray:
        """The mistakes on each label."""
        return self.table.sum(axis=1) - np.diagonal(self.table)


Confusions = dict[str, dict[str, Confusion]]  # by data set and learner


def confusions(table: pa.Table) -> Confusions:
    """The counts by data set and learner; fewest mistakes first.

    A learner that was not counted in all seeds, since it diverged in some, is left out.
    """
    rows: dict[str, dict[str, list[dict]]] = {}
    for row in table.to_pylist():
        rows.setdefault(row["dataset"], {}).setdefault(row["learner"], []).append(row)
    found = {}
    for dataset, learners in rows.items():
        every = [row for own in learners.values() for row in own]
        names = {row[side]: row[f"{side}_name"] for side in ("truth", "predicted") for row in every}
        names = dict(sorted(names.items(), key=lambda item: (item[0] < 0, item[0])))  # -1 is last
        each = {learner: _confusion(own, names) for learner, own in learners.items()}
        rounds = max(counts.table.sum() for counts in each.values())
        each = {learner: own for learner, own in each.items() if own.table.sum() == rounds}
        found[dataset] = dict(sorted(each.items(), key=lambda item: item[1].mistakes.sum()))
    return found


def _confusion(rows: list[dict], named: dict[int, str]) -> Confusion:
    place = {number: i for i, number in enumerate(named)}
    table = np.zeros((len(named), len(named)), int)
    for row in rows:
        table[place[row["truth"]], place[row["predicted"]]] += row["count"]
    real = [i for number, i in place.items() if number >= 0]
    names = list(named.values())
    return Confusion([names[i] for i in real], names, table[real])


def class_error_tables(found: Confusions) -> Iterator[Table]:
    """Per data set, the share of mistakes: one row per class, one column per learner."""
    for dataset, learners in found.items():
        first = next(iter(learners.values()))
        size = first.table.sum(axis=1)
        shares = [counts.mistakes / np.maximum(size, 1) for counts in learners.values()]
        rows = [
            [name, f"{number:,}", *(f"{share[i]:.4f}" for share in shares)]
            for i, (name, number) in enumerate(zip(first.names, size.tolist(), strict=True))
        ]
        total = [f"{counts.mistakes.sum() / size.sum():.4f}" for counts in learners.values()]
        head = columns("class", ["rounds", *learners])
        yield Table(dataset, head, rows, foot=[["all", f"{size.sum():,}", *total]])


def time_table(table: pa.Table, outside: float) -> Table | None:
    """Times by part, summed over seeds; what no part counts is in the column "other".

    outside: the seconds of the run outside its jobs.
    """
    if not table.num_rows:
        return None
    parts = [name for name in table.column_names if name.endswith(PART)]
    parts = [name for name in parts if sum(table[name].to_pylist())]  # what took some time
    sums = [(name, "sum") for name in ("seconds", *parts)] + [("rounds_per_second", "mean")]
    grouped = table.group_by(["dataset", "learner"], use_threads=False).aggregate(sums).to_pylist()
    lines = [[row["seconds_sum"], *(row[f"{part}_sum"] for part in parts)] for row in grouped]
    lines = [[*line, max(line[0] - sum(line[1:]), 0.0)] for line in lines]
    total = [sum(column) for column in zip(*lines, strict=True)]
    names = ["compiling" if part == "compiled_seconds" else part[: -len(PART)] for part in parts]
    names = ["time", *names, *(["other"] if total[-1] > 1e-3 * total[0] else [])]
    show = lambda line: [_seconds(value) for value in line[: len(names)]]
    rows = [
        [row["dataset"], row["learner"], *show(line), _count(row["rounds_per_second_mean"])]
        for row, line in zip(grouped, lines, strict=True)
    ]
    blank = [""] * len(names)
    foot = [
        ["all jobs", "", *show(total), ""],
        ["outside jobs", "", _seconds(outside), *blank],
        ["the run", "", _seconds(total[0] + outside), *blank],
    ]
    note = (
        "Times are the sum over seeds; the columns after the first are its parts, and add up to "
        "it. Outside jobs the run prepares and stores them. A round is one round of one "
        "configuration; rounds per second are those while playing."
    )
    head = columns("data set, learner", [*names, "rounds per second"])
    return Table("Time", head, rows, note, foot)


def _seconds(value: float) -> str:
    """A time with its unit.

    >>> _seconds(9.3e-5), _seconds(0.0042), _seconds(12.34), _seconds(600.0), _seconds(0.0)
    ('93 us', '4.2 ms', '12.3 s', '10 min', '0 s')
    """
    sizes = ((3600.0, " h", 2.0), (60.0, " min", 2.0), (1.0, " s", 1.0), (1e-3, " ms", 1.0))
    for size, unit, least in sizes:
        if value >= least * size:
            return f"{value / size:.3g}{unit}"
    return f"{value * 1e6:.3g} us" if value > 0 else "0 s"


def _count(value: float | None) -> str:
    """A large number with its unit.

    >>> _count(1234567.0), _count(950.0)
    ('1.23 M', '950')
    """
    if value is None or not math.isfinite(value):
        return ""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"
