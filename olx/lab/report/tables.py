"""The tables of a report, as rows of text."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from olx.lab.report import scores
from olx.lab.report.edges import edges
from olx.lab.report.scores import Score, tuned
from olx.lab.report.words import configuration, plus_minus, short


class Column(NamedTuple):
    name: str
    number: bool = True  # aligned to the right


class Table(NamedTuple):
    title: str
    head: list[Column]
    rows: list[list[str]]
    note: str = ""
    foot: Sequence[list[str]] = ()  # rows that stay below the others, such as sums


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
