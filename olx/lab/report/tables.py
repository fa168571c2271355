"""The tables of a report, as rows of text."""

import math
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from olx.lab import store
from olx.lab.report import scores
from olx.lab.report.edges import edges
from olx.lab.report.scores import Score, tuned
from olx.lab.report.words import configuration, count, plus_minus, seconds, short


class Column(NamedTuple):
    name: str
    number: bool = True  # aligned to the right


class Table(NamedTuple):
    title: str
    head: list[Column]
    rows: list[list[str]]
    note: str = ""


def overview(winners: dict[tuple[str, str], Score]) -> Table | None:
    """Learners against data sets, ordered by their mean rank; None for a single data set."""
    datasets = list(dict.fromkeys(dataset for dataset, _ in winners))
    if len(datasets) < 2:
        return None
    ranks: dict[str, list[int]] = {}
    for dataset in datasets:
        chosen = [score for (where, _), score in winners.items() if where == dataset]
        for rank, score in zip(scores.ranks(chosen), chosen, strict=True):
            ranks.setdefault(score.learner, []).append(rank)
    cell = lambda *pair: short(winners[pair].means["loss"]) if pair in winners else ""
    rows = [
        [learner, f"{np.mean(own):.2f}", *(cell(dataset, learner) for dataset in datasets)]
        for learner, own in sorted(ranks.items(), key=lambda item: float(np.mean(item[1])))
    ]
    head = [Column("learner", False), Column("mean rank"), *map(Column, datasets)]
    return Table("All data sets", head, rows, "Mean loss of the best configuration on each.")


def leaderboards(
    winners: dict[tuple[str, str], Score], everything: list[Score] | None = None
) -> list[Table]:
    """One table per data set: every learner at its smallest mean loss, the best one first.

    everything: the scores of all configurations, to name best values at the end of their grid.
    """
    tables = []
    for dataset in dict.fromkeys(dataset for dataset, _ in winners):
        chosen = [score for (where, _), score in winners.items() if where == dataset]
        shown = [name for name, mean in chosen[0].means.items() if not math.isnan(mean)]
        head = [Column(""), Column("learner", False), *(Column(f"mean {name}") for name in shown)]
        head.append(Column("best configuration", False))
        rows = [
            [
                str(rank),
                score.learner,
                *(plus_minus(score.means[name], score.errors[name]) for name in shown),
                configuration(score.hyperparameters),
            ]
            for rank, score in zip(scores.ranks(chosen), chosen, strict=True)
        ]
        seeds = max(score.seeds for score in chosen)
        note = f"{chosen[0].rounds:,} rounds, "
        note += f"{seeds} seeds; ± is one standard error." if seeds > 1 else "one seed."
        said = [line for score in chosen for line in edges(everything or [], score)]
        tables.append(Table(dataset, head, rows, " ".join([note, *said])))
    return tables


def published(prints: list[dict], everything: list[Score]) -> Table | None:
    """The published numbers of the config beside ours."""
    rows = []
    for entry in prints:
        learner, metric = entry["learner"], entry["metric"]
        for dataset, value in entry["values"].items():
            score = tuned(everything, dataset, learner, metric)
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
    texts = {"data set", "learner", "metric", "at", "source"}
    names = ["data set", "learner", "metric", "in print", "ours", "difference", "at", "source"]
    head = [Column(name, name not in texts) for name in names]
    note = (
        "Ours is the configuration that is best by the metric itself; where rows are kept for a "
        "test, by the same metric on the other rows."
    )
    return Table("Published numbers beside ours", head, rows, note)


def certificates(table: pa.Table) -> Table | None:
    """Per theorem: how often it held, both sides, the tightness, and broken conditions."""
    keys = ["dataset", "learner", "name", "theorem"]
    grouped: dict[tuple, list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        grouped.setdefault(tuple(row[key] for key in keys), []).append(row)
    if not grouped:
        return None
    rows = [
        [
            *about,
            _verdict(found),
            f"{sum(row['holds'] for row in found):,} of {len(found):,}",
            f"{_side(worst['left'])} ≤ {_side(worst['right'])}",
            short(min(row["slack"] for row in found)) if worst["right"] < math.inf else "",
            short(float(np.median([row["tightness"] for row in found]))),
            short(max(row["tightness"] for row in found)),
        ]
        for about, found in grouped.items()
        for worst in [min(found, key=lambda row: row["slack"])]
    ]
    texts = {"data set", "learner", "name", "theorem", "holds"}
    names = ["data set", "learner", "name", "theorem", "holds", "runs", "both sides", "least slack"]
    names += ["median tightness", "largest tightness"]
    head = [Column(name, name not in texts) for name in names]
    note = (
        "Theorems are checked on the run shown, in its precision. Both sides are those after the "
        "last round of the run with the smallest slack. Slack is right side minus left side, the "
        "smallest over all rounds. Tightness is the largest ratio left / right; 1 means that the "
        "bound was attained. If a run breaks a condition of the theorem, the right side is "
        "infinite and the theorem says nothing."
    )
    return Table("Theorems checked", head, rows, note)


def _verdict(found: list[dict[str, Any]]) -> str:
    failed = [row for row in found if not row["holds"]]
    if failed:
        double = all(row["holds_in_double"] for row in failed)
        return "NO; in double precision yes: rounding" if double else "NO"
    broken = [row["broken"] for row in found if row["broken"]]
    said = f"says nothing {broken[0]}" if broken else "yes"
    if any(row["right"] == math.inf for row in found) and not broken:
        said = "says nothing"
    difference = max(row["difference"] for row in found)
    again = f"; played again, the losses differ by {difference:.1g}"
    return said if difference < 1e-3 else said + again


def _side(value: float) -> str:
    return "∞" if value == math.inf else f"{value:.4g}"


def times(table: pa.Table) -> Table | None:
    """Wall time summed over seeds, by part; and rounds per second summed over configurations."""
    names = [f"{part}_seconds" for part in store.PARTS]
    grouped = table.group_by(["dataset", "learner"], use_threads=False).aggregate(
        [(name, "sum") for name in ("seconds", *names)] + [("rounds_per_second", "mean")]
    )
    found = grouped.to_pylist()
    if not found:
        return None
    spent = lambda rows: [
        seconds(sum(row[f"{name}_sum"] for row in rows)) for name in ("seconds", *names)
    ]
    rows = [
        [row["dataset"], row["learner"], *spent([row]), count(row["rounds_per_second_mean"])]
        for row in found
    ]
    rows.append(["all", "", *spent(found), ""])
    head = [Column("data set", False), Column("learner", False), Column("seconds")]
    head += [*map(Column, store.PARTS), Column("rounds per second")]
    note = (
        "A round is one round of one configuration. Seconds are sums over seeds; the parts add up "
        "to them."
    )
    return Table("Time", head, rows, note)
