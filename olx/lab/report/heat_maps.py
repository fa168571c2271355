"""Heat maps of a report as data: coloured cells, a table on the page and a picture in files."""

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from olx.lab.report.charts import is_wide
from olx.lab.report.scores import Score, by_learner
from olx.lab.report.tables import Confusions

BINS = 10  # pairs that form no grid, as from a random search, fall into as many bins per number

Losses = dict[tuple[float, float], float]  # by a pair of values


class Cell(NamedTuple):
    text: str
    hint: str  # in full, when pointed at
    shade: float  # from 0 to 1; NaN if there is no value
    kind: str = ""  # a class of page.css


class HeatMap(NamedTuple):
    name: str
    dataset: str
    title: str
    caption: str
    heading: str
    x: str  # what the columns are
    y: str
    columns: list[str]
    rows: list[str]
    cells: list[list[Cell]]
    values: np.ndarray  # of the cells; NaN where there is none
    label: str  # what the values are


def pair_maps(everything: list[Score]) -> Iterator[HeatMap]:
    """Mean loss over each pair of hyperparameters of a learner, one map per data set."""
    groups = by_learner(everything)
    place = list(dict.fromkeys(learner for _, learner in groups))
    number = itertools.count()
    for (dataset, learner), mine in sorted(groups.items(), key=lambda one: place.index(one[0][1])):
        values = {name: {score.swept[name] for score in mine} for name in mine[0].swept}
        names = [name for name, seen in values.items() if len(seen) > 1]
        for x, y in itertools.combinations(names, 2):
            cells: Losses = {}  # the least loss of every pair tried
            for score in mine:
                pair = score.swept[x], score.swept[y]
                cells[pair] = min(
                    cells.get(pair, math.inf), math.inf if score.diverged else score.means["loss"]
                )
            known = {pair: loss for pair, loss in cells.items() if math.isfinite(loss)}
            if not known:
                continue
            (a, b), least = min(known.items(), key=lambda cell: cell[1])
            caption = (
                "Mean loss, every other hyperparameter at its best; blank where it diverged. "
                f"The ring marks the least, {least:.4g}, at {x} = {a:.4g} and {y} = {b:.4g}."
            )
            if len(cells) > 0.5 * len(values[x]) * len(values[y]):
                columns, rows = sorted({a for a, _ in cells}), sorted({b for _, b in cells})
                table = np.array([[known.get((a, b), np.nan) for a in columns] for b in rows])
                texts = [[f"{value:.3g}" for value in axis] for axis in (columns, rows)]
            else:
                caption += " A cell shows the best of the pairs that fall into it."
                *texts, table = _bin_pairs(known)
            yield HeatMap(
                f"pair-{next(number)}", dataset, f"{x} and {y} of {learner} on {dataset}", caption,
                f"{learner} on {dataset}", x, y, texts[0], texts[1],
                _loss_cells(table, texts[1], texts[0], (x, y)), table, "mean loss",
            )  # fmt: skip


def confusion_maps(found: Confusions) -> Iterator[HeatMap]:
    """Per data set, the predictions of the learner with the fewest mistakes."""
    for number, (dataset, learners) in enumerate(found.items()):
        learner, counts = next(iter(learners.items()))
        share = counts.table / np.maximum(counts.table.sum(axis=1, keepdims=True), 1)
        right = np.eye(*share.shape, dtype=bool)
        mistakes = np.where(right, 0, counts.table)
        i, j = np.unravel_index(int(mistakes.argmax()), mistakes.shape)
        caption = (
            f"Predictions of {learner}, which makes the fewest mistakes. A row holds the rounds of "
            "a class, summed over seeds; the colour is the share of the row."
        )
        if mistakes[i, j]:
            most = f"{counts.names[i]} taken for {counts.others[j]}, {mistakes[i, j]:,} times"
            caption += f" The most frequent mistake: {most}."
        shades = np.where(right, share, np.minimum(1.0, 1.2 * np.sqrt(share)))
        cells = [
            [
                Cell(
                    f"{rounds:,}" if rounds else "",
                    f"{name} taken for {other}: {rounds:,} rounds, {share[i, j]:.1%}",
                    float(shades[i, j]) if rounds else math.nan,
                    "right" if i == j else "wrong",
                )
                for j, (other, rounds) in enumerate(zip(counts.others, row, strict=True))
            ]
            for i, (name, row) in enumerate(zip(counts.names, counts.table.tolist(), strict=True))
        ]
        yield HeatMap(
            f"confusion-{number}", dataset, f"Predicted classes on {dataset}", caption,
            f"{learner} on {dataset}", "predicted", "class", counts.others, counts.names,
            cells, share, "share of the class",
        )  # fmt: skip


def _bin_pairs(losses: Losses) -> tuple[list[str], list[str], np.ndarray]:
    """The least loss of all pairs in a bin; bins have equal widths on the scale of the axis."""
    (columns, i), (rows, j) = (_bins(np.array(values)) for values in zip(*losses, strict=True))
    table = np.full((len(rows), len(columns)), np.inf)
    np.minimum.at(table, (j, i), list(losses.values()))
    return columns, rows, np.where(np.isfinite(table), table, np.nan)


def _bins(values: np.ndarray) -> tuple[list[str], np.ndarray]:
    """The middles of the bins as text, and the bin of each value."""
    space = np.geomspace if is_wide(values) else np.linspace
    edges = space(values.min(), values.max(), BINS + 1)
    middles = np.sqrt(edges[1:] * edges[:-1]) if is_wide(values) else (edges[1:] + edges[:-1]) / 2
    index = np.clip(np.searchsorted(edges, values, "right") - 1, 0, BINS - 1)
    return [f"{value:.2g}" for value in middles], index


def _loss_cells(
    values: np.ndarray, rows: list[str], columns: list[str], names: tuple[str, str]
) -> list[list[Cell]]:
    """Cells of mean losses, NaN where there is none; the least one is marked."""
    level = np.log(values) if is_wide(values[np.isfinite(values)]) else values
    shades = (level - np.nanmin(level)) / ((np.nanmax(level) - np.nanmin(level)) or 1.0)
    least = np.unravel_index(int(np.nanargmin(values)), values.shape)

    def cell(i: int, j: int) -> Cell:
        value, is_known = values[i, j], math.isfinite(values[i, j])
        hint = f"{names[0]} = {columns[j]}, {names[1]} = {rows[i]}: "
        hint += f"mean loss {value:.4g}" if is_known else "none, or diverged"
        kind = "best" if (i, j) == least else ""
        return Cell(f"{value:.3g}" if is_known else "", hint, float(shades[i, j]), kind)

    return [[cell(i, j) for j in range(len(columns))] for i in range(len(rows))]
