"""Tables of colours of the loss over two hyperparameters."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import numpy as np

from olx.lab.report import heat
from olx.lab.report.chart import is_wide
from olx.lab.report.figure import LOOK, canvas, plain, save, stretch
from olx.lab.report.heat import Heat, norm_of
from olx.lab.report.scores import Score

BINS = 10  # pairs that form no grid, as from a random search, fall into as many bins per number

Cells = dict[tuple[float, float], float]


def pairs(everything: list[Score], folder: Path) -> Iterator[Heat]:
    """Mean loss over each pair of hyperparameters of a learner, one table per data set."""
    groups: dict[tuple[str, str], list[Score]] = {}
    for score in everything:
        groups.setdefault((score.learner, score.dataset), []).append(score)
    place = list(dict.fromkeys(learner for learner, _ in groups))
    number = itertools.count()
    for (learner, dataset), mine in sorted(
        groups.items(), key=lambda item: place.index(item[0][0])
    ):
        values = {name: {score.swept[name] for score in mine} for name in mine[0].swept}
        names = [name for name, seen in values.items() if len(seen) > 1]
        for across, up in itertools.combinations(names, 2):
            cells = _cells(mine, across, up)
            if not cells:
                continue
            (a, b), least = min(cells.items(), key=lambda cell: cell[1])
            full = len(cells) > 0.5 * len(values[across]) * len(values[up])
            columns, rows, table = _grid(cells) if full else _binned(cells)
            caption = (
                "Mean loss, every other hyperparameter at its best; blank where it diverged. "
                f"The ring marks the least, {least:.4g}, at {across} = {a:.4g} and {up} = {b:.4g}."
            )
            caption += "" if full else " A cell shows the best of the pairs that fall into it."
            found = Heat(
                f"pair-{next(number)}", f"{across} and {up} of {learner} on {dataset}", caption,
                f"{learner} on {dataset}", across, up, columns, rows,
                heat.losses(table, rows, columns, (across, up)),
            )  # fmt: skip
            if full:
                heat.draw(found, table, "mean loss", folder)
            else:
                _points(found, cells, folder)
            yield found


def _cells(mine: list[Score], across: str, up: str) -> Cells:
    """The smallest mean for every pair of values, without those that diverged."""
    cells: Cells = {}
    for score in mine:
        pair = score.swept[across], score.swept[up]
        if np.isfinite(score.means["loss"]):
            cells[pair] = min(cells.get(pair, np.inf), score.means["loss"])
    return cells


def _grid(cells: Cells) -> tuple[list[str], list[str], np.ndarray]:
    columns, rows = sorted({a for a, _ in cells}), sorted({b for _, b in cells})
    table = np.array([[cells.get((a, b), np.nan) for a in columns] for b in rows])
    show = lambda values: [f"{value:.3g}" for value in values]
    return show(columns), show(rows), table


def _binned(cells: Cells) -> tuple[list[str], list[str], np.ndarray]:
    """The least value of all pairs in a bin; bins have equal widths on the scale of the axis."""
    (columns, i), (rows, j) = (_bins(np.array(values)) for values in zip(*cells, strict=True))
    table = np.full((len(rows), len(columns)), np.inf)
    np.minimum.at(table, (j, i), list(cells.values()))
    return columns, rows, np.where(np.isfinite(table), table, np.nan)


def _bins(values: np.ndarray) -> tuple[list[str], np.ndarray]:
    space = np.geomspace if is_wide(values) else np.linspace
    edges = space(values.min(), values.max(), BINS + 1)
    middles = np.sqrt(edges[1:] * edges[:-1]) if is_wide(values) else (edges[1:] + edges[:-1]) / 2
    index = np.clip(np.searchsorted(edges, values, "right") - 1, 0, BINS - 1)
    return [f"{value:.2g}" for value in middles], index


def _points(found: Heat, cells: Cells, folder: Path) -> None:
    """Draw pairs that form no grid as points."""
    figure, axes = canvas(found.heading, found.across, found.up)
    values = np.array(list(cells.values()))
    a, b = np.array(list(cells)).T
    shown = axes.scatter(a, b, c=values, cmap="viridis_r", norm=norm_of(values), s=14)
    for axis, own in ((axes.xaxis, a), (axes.yaxis, b)):
        if is_wide(own):
            stretch(axis, own)
    best = min(cells, key=cells.__getitem__)
    axes.plot(*best, "o", markersize=12, markerfacecolor="none", markeredgecolor="#c2410c")
    with matplotlib.rc_context(LOOK):
        plain(figure.colorbar(shown, ax=axes, label="mean loss").ax.yaxis)
    save(figure, folder, found.name)
