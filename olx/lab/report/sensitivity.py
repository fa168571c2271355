"""Figures of the loss against hyperparameters: one at a time, and in pairs."""

import itertools
from pathlib import Path
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize

from olx.lab.report.figure import (
    LOOK,
    Picture,
    canvas,
    is_wide,
    legend,
    plain,
    save,
    stretch,
    style,
)
from olx.lab.report.scores import Score

MANY = 40  # with more values, as from a random search, neighbours are merged


class Line(NamedTuple):
    values: np.ndarray
    means: np.ndarray
    errors: np.ndarray


def sensitivity(everything: list[Score], order: dict[str, int], folder: Path) -> list[Picture]:
    """Mean loss against each hyperparameter, the others at their best; one figure per data set."""
    pictures = []
    names = dict.fromkeys(name for score in everything for name in score.swept)
    datasets = dict.fromkeys(score.dataset for score in everything)
    for name, dataset in itertools.product(names, datasets):
        mine = [score for score in everything if score.dataset == dataset and name in score.swept]
        lines = {learner: _envelope(mine, learner, name) for learner in order}
        lines = {learner: line for learner, line in lines.items() if line.values.size > 1}
        if not any(np.isfinite(line.means).any() for line in lines.values()):
            continue
        figure, axes = canvas(dataset, name, "mean loss")
        _scales(axes, list(lines.values()))
        for learner, line in lines.items():
            _draw(axes, line, learner, order)
        legend(figure, axes)
        lost = sum(int(np.sum(~np.isfinite(line.means))) for line in lines.values())
        caption = f"Mean loss against {name}, every other hyperparameter at its best."
        caption += " The bars are one standard error." if mine[0].seeds > 1 else ""
        caption += f" Crosses on the upper edge: {lost} values that diverged." if lost else ""
        title = f"Sensitivity to {name} on {dataset}"
        pictures.append(save(figure, folder, f"sensitivity-{len(pictures)}", title, caption))
    return pictures


def heat_maps(everything: list[Score], order: dict[str, int], folder: Path) -> list[Picture]:
    """Mean loss over each pair of hyperparameters of a learner; one figure per data set."""
    pictures = []
    groups: dict[tuple[str, str], list[Score]] = {}
    for score in everything:
        groups.setdefault((score.learner, score.dataset), []).append(score)
    place = list(dict.fromkeys(learner for learner, _ in groups))
    for (learner, dataset), mine in sorted(
        groups.items(), key=lambda item: place.index(item[0][0])
    ):
        values = {name: {score.swept[name] for score in mine} for name in mine[0].swept}
        names = [name for name, seen in values.items() if len(seen) > 1]
        for across, up in itertools.combinations(names, 2):
            cells = _cells(mine, across, up)
            if not cells:
                continue
            figure, axes = canvas(f"{learner} on {dataset}", across, up)
            full = len(cells) > 0.5 * len(values[across]) * len(values[up])
            shown = _grid(axes, cells) if full else _points(axes, cells)
            with matplotlib.rc_context(LOOK):
                plain(figure.colorbar(shown, ax=axes, label="mean loss").ax.yaxis)
            (a, b), least = min(cells.items(), key=lambda cell: cell[1])
            caption = (
                f"Mean loss, every other hyperparameter at its best; blank where it diverged. "
                f"The ring marks the least, {least:.4g}, at {across} = {a:.4g} and {up} = {b:.4g}."
            )
            title = f"{across} and {up} of {learner} on {dataset}"
            pictures.append(save(figure, folder, f"pair-{len(pictures)}", title, caption))
    return pictures


def _envelope(mine: list[Score], learner: str, name: str) -> Line:
    """The best score for every value of a hyperparameter."""
    own = [score for score in mine if score.learner == learner]
    values = np.array([score.swept[name] for score in own])
    distinct, place = np.unique(values, return_inverse=True)
    if distinct.size > MANY:
        place = place * (MANY // 2) // distinct.size
    best: dict[int, Score] = {}
    for index, score in zip(place.tolist(), own, strict=True):
        if index not in best or score.means["loss"] < best[index].means["loss"]:
            best[index] = score
    line = sorted(best.values(), key=lambda score: score.swept[name])
    numbers = [(one.swept[name], one.means["loss"], one.errors["loss"]) for one in line]
    return Line(*np.array(numbers, float).reshape(-1, 3).T)


def _draw(axes: Axes, line: Line, learner: str, order: dict[str, int]) -> None:
    look, good = style(order[learner]), np.isfinite(line.means)
    if good.any():
        values, means, errors = (column[good] for column in line)
        axes.plot(values, means, label=learner, **look)
        bars = np.nan_to_num(errors)
        axes.vlines(values, means - bars, means + bars, color=look["color"], linewidth=1)
    if not good.all():
        lost, edge = line.values[~good], axes.get_xaxis_transform()  # y in units of the axes
        ones = np.ones_like(lost)
        axes.plot(lost, ones, "x", color=look["color"], transform=edge, clip_on=False)


def _scales(axes: Axes, lines: list[Line]) -> None:
    values = np.concatenate([line.values for line in lines])
    means = np.concatenate([line.means for line in lines])
    _stretch(axes, values, means[np.isfinite(means)])


def _stretch(axes: Axes, across: np.ndarray, up: np.ndarray) -> None:
    for axis, values in ((axes.xaxis, across), (axes.yaxis, up)):
        if is_wide(values):
            stretch(axis, values)


def _cells(mine: list[Score], across: str, up: str) -> dict:
    """The smallest mean for every pair of values, without those that diverged."""
    cells: dict[tuple[float, float], float] = {}
    for score in mine:
        pair = score.swept[across], score.swept[up]
        if np.isfinite(score.means["loss"]):
            cells[pair] = min(cells.get(pair, np.inf), score.means["loss"])
    return cells


def _grid(axes: Axes, cells: dict):
    columns, rows = sorted({a for a, _ in cells}), sorted({b for _, b in cells})
    table = [[cells.get((a, b), np.nan) for a in columns] for b in rows]
    axes.grid(False)
    shown = axes.imshow(
        table, origin="lower", aspect="auto", cmap="viridis_r", norm=_norm(cells),
        interpolation="nearest",
    )  # fmt: skip
    for axis, values in ((axes.xaxis, columns), (axes.yaxis, rows)):
        step = -(-len(values) // 6)
        axis.set_ticks(range(0, len(values), step), [f"{value:.3g}" for value in values[::step]])
    a, b = min(cells, key=cells.__getitem__)
    _ring(axes, columns.index(a), rows.index(b))
    return shown


def _points(axes: Axes, cells: dict):
    """Draw pairs that form no grid, as from a random search."""
    a, b = np.array(list(cells)).T
    shown = axes.scatter(a, b, c=list(cells.values()), cmap="viridis_r", norm=_norm(cells), s=14)
    _stretch(axes, a, b)
    _ring(axes, *min(cells, key=cells.__getitem__))
    return shown


def _norm(cells: dict) -> Normalize:
    values = np.array(list(cells.values()))
    kind = LogNorm if is_wide(values) else Normalize
    return kind(float(values.min()), float(values.max()))


def _ring(axes: Axes, x: float, y: float) -> None:
    axes.plot(x, y, "o", markersize=10, markerfacecolor="none", markeredgecolor="white")
    axes.plot(x, y, "o", markersize=12, markerfacecolor="none", markeredgecolor="#c2410c")
