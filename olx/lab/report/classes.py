"""Errors by class, and which class was predicted for which."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from olx.lab.report import heat
from olx.lab.report.heat import Cell, Heat
from olx.lab.report.tables import Column, Table


class Counts(NamedTuple):
    """How often each class was predicted for each, summed over seeds."""

    names: list[str]  # of the labels
    others: list[str]  # of the predictions: the labels, and "none" if there was no prediction
    table: np.ndarray  # (labels, predictions)

    @property
    def wrong(self) -> np.ndarray:
        """The mistakes on each label."""
        return self.table.sum(axis=1) - np.diagonal(self.table)


def counts(confusions: pa.Table) -> dict[str, dict[str, Counts]]:
    """The counts by data set and learner; fewest mistakes first."""
    rows: dict[str, dict[str, list[dict]]] = {}
    for row in confusions.to_pylist():
        rows.setdefault(row["dataset"], {}).setdefault(row["learner"], []).append(row)
    found = {}
    for dataset, learners in rows.items():
        names = _names([row for own in learners.values() for row in own])
        each = {learner: _counted(own, names) for learner, own in learners.items()}
        found[dataset] = dict(sorted(each.items(), key=lambda item: item[1].wrong.sum()))
    return found


def errors(found: dict[str, dict[str, Counts]]) -> Iterator[Table]:
    """Per data set, the share of mistakes: one row per class, one column per learner."""
    for dataset, learners in found.items():
        first = next(iter(learners.values()))
        size = first.table.sum(axis=1)
        shares = [counted.wrong / np.maximum(size, 1) for counted in learners.values()]
        rows = [
            [name, f"{number:,}", *(f"{share[i]:.4f}" for share in shares)]
            for i, (name, number) in enumerate(zip(first.names, size.tolist(), strict=True))
        ]
        total = [f"{counted.wrong.sum() / size.sum():.4f}" for counted in learners.values()]
        head = [Column("class", False), Column("rounds"), *map(Column, learners)]
        yield Table(dataset, head, rows, foot=[["all", f"{size.sum():,}", *total]])


def matrices(found: dict[str, dict[str, Counts]], folder: Path) -> Iterator[Heat]:
    """Per data set, the predictions of the learner with the fewest mistakes; also as files."""
    for number, (dataset, learners) in enumerate(found.items()):
        learner, counted = next(iter(learners.items()))
        share = counted.table / np.maximum(counted.table.sum(axis=1, keepdims=True), 1)
        mistakes = np.where(np.equal.outer(counted.names, counted.others), 0, counted.table)
        i, j = np.unravel_index(int(mistakes.argmax()), mistakes.shape)
        caption = (
            f"Predictions of {learner}, which makes the fewest mistakes. A row holds the rounds of "
            "a class, summed over seeds; the colour is the share of the row."
        )
        if mistakes[i, j]:
            most = f"{counted.names[i]} taken for {counted.others[j]}, {mistakes[i, j]:,} times"
            caption += f" The most frequent mistake: {most}."
        drawn = Heat(
            f"confusion-{number}", f"Predicted classes on {dataset}", caption,
            f"{learner} on {dataset}", "predicted", "class", counted.others, counted.names,
            _cells(counted, share),
        )  # fmt: skip
        upright = drawn._replace(rows=drawn.rows[::-1], cells=drawn.cells[::-1])
        heat.draw(upright, share[::-1], "share of the class", folder)
        yield drawn


def _cells(counted: Counts, share: np.ndarray) -> list[list[Cell]]:
    return [
        [
            Cell(
                f"{number:,}" if number else "",
                f"{name} taken for {other}: {number:,} rounds, {part:.1%}",
                math.nan if not number else part if i == j else min(1.0, 1.2 * math.sqrt(part)),
                "right" if i == j else "wrong",
            )
            for j, (other, number, part) in enumerate(zip(counted.others, row, parts, strict=True))
        ]
        for i, (name, row, parts) in enumerate(
            zip(counted.names, counted.table.tolist(), share.tolist(), strict=True)
        )
    ]


def _names(rows: list[dict]) -> dict[int, str]:
    """The names of all classes that occur, by number; -1 comes last."""
    named = {row["truth"]: row["truth_name"] for row in rows}
    named |= {row["predicted"]: row["predicted_name"] for row in rows}
    return dict(sorted(named.items(), key=lambda item: (item[0] < 0, item[0])))


def _counted(rows: list[dict], named: dict[int, str]) -> Counts:
    place = {number: i for i, number in enumerate(named)}
    table = np.zeros((len(named), len(named)), int)
    for row in rows:
        table[place[row["truth"]], place[row["predicted"]]] += row["count"]
    real = [i for number, i in place.items() if number >= 0]
    names = list(named.values())
    return Counts([names[i] for i in real], names, table[real])
