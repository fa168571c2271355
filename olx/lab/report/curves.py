"""Figures over rounds: progressive loss, and regret with its bound."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes

from olx.lab.report.figure import Picture, canvas, is_wide, legend, plain, save, stretch, style
from olx.lab.report.scores import Score


class Figure(NamedTuple):
    """The figure of one data set, while it is drawn."""

    axes: Axes
    chosen: list[Score]
    order: dict[str, int]
    curves: pa.Table

    def draw(self, score: Score, column: str, per_round: bool = False) -> np.ndarray | None:
        """Draw the curve of a learner; its mean over seeds, or None if there is no curve."""
        rounds, values = _late(*_curve(self.curves, score, column))
        if not rounds.size:
            return None
        values = values / rounds if per_round else values
        _draw(self.axes, rounds, values, score.learner, self.order)
        return values.mean(axis=0)

    def draw_bound(self, score: Score) -> bool:
        """Draw the bound of a learner, dotted; whether there is one."""
        rounds, bounds = _late(*_curve(self.curves, score, "bound"))
        if rounds.size:
            colour = style(self.order[score.learner])["color"]
            self.axes.plot(rounds, bounds.mean(axis=0), ":", color=colour, linewidth=1.4)
        return rounds.size > 0


def loss_curves(*about: Any) -> list[Picture]:
    """The mean loss so far of the best configuration per learner, one figure per data set."""
    return _figures("loss", "mean loss so far", "Progressive loss", _losses, *about)


def regret_curves(*about: Any) -> list[Picture]:
    """The regret of the best configuration per learner and its bound, one figure per data set."""
    return _figures("regret", "regret", "Regret", _regrets, *about)


def _figures(
    name: str,
    label: str,
    title: str,
    draw: Callable[[Figure], str | None],
    curves: pa.Table,
    winners: dict[tuple[str, str], Score],
    order: dict[str, int],
    folder: Path,
) -> list[Picture]:
    """One figure per data set; `draw` draws the curves and gives the caption, None for none."""
    pictures = []
    for number, (dataset, chosen) in enumerate(_by_dataset(winners).items()):
        figure, axes = canvas(dataset, "round", label)
        caption = draw(Figure(axes, chosen, order, curves))
        if caption is None:
            continue
        stretch(axes.xaxis, np.array([1.0, chosen[0].rounds], float))
        legend(figure, axes)
        pictures.append(save(figure, folder, f"{name}-{number}", f"{title} on {dataset}", caption))
    return pictures


def _losses(figure: Figure) -> str | None:
    drawn = [figure.draw(score, "total", per_round=True) for score in figure.chosen]
    levels = [level for level in drawn if level is not None]
    if not levels:
        return None
    if is_wide(np.concatenate(levels), 3):
        stretch(figure.axes.yaxis, np.concatenate(levels))
    return (
        "Mean loss up to each round, from the tenth on, of the best configuration of every "
        f"learner. Least in the end: {figure.chosen[0].learner}.{_bands(figure.chosen)}"
    )


def _regrets(figure: Figure) -> str | None:
    levels, bounded = [], False
    for score in figure.chosen:
        level = figure.draw(score, "regret")
        if level is not None:
            levels.append(level)
            bounded |= figure.draw_bound(score)
    if not levels:
        return None
    _make_room(figure.axes, np.concatenate(levels), bounded)
    caption = "Regret from the tenth round on, of the best configuration of every learner."
    caption += _bands(figure.chosen)
    return caption + (" Dotted, in the same colour: its bound, if it has one." if bounded else "")


def _by_dataset(winners: dict[tuple[str, str], Score]) -> dict[str, list[Score]]:
    groups: dict[str, list[Score]] = {}
    for (dataset, _), score in winners.items():
        groups.setdefault(dataset, []).append(score)
    return groups


def _late(rounds: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Leave out the first rounds, which are mostly noise."""
    late = rounds >= min(10, rounds.max(initial=0) / 10)
    return rounds[late], values[:, late]


def _curve(curves: pa.Table, score: Score, column: str) -> tuple[np.ndarray, np.ndarray]:
    """The rounds [K] that all seeds kept, and the values [seeds, K] there; finite ones only."""
    field = pc.field
    mine = (
        (field("dataset") == score.dataset)
        & (field("learner") == score.learner)
        & (field("configuration") == score.configuration)
        & field(column).is_valid()
    )
    part = curves.filter(mine)
    seeds, rounds = part["seed"].to_numpy(), part["round"].to_numpy()
    values = part[column].to_numpy()
    by_seed = [dict(zip(rounds[seeds == s], values[seeds == s], strict=True)) for s in set(seeds)]
    shared = sorted(set.intersection(*map(set, by_seed))) if by_seed else []
    matrix = np.array([[one[round] for round in shared] for one in by_seed])
    if not shared:
        return np.zeros(0), np.zeros((0, 0))
    finite = np.isfinite(matrix).all(axis=0)
    return np.array(shared, float)[finite], matrix[:, finite]


def _draw(axes: Axes, rounds: np.ndarray, values: np.ndarray, learner: str, order: dict) -> None:
    look, mean = style(order[learner]), values.mean(axis=0)
    every = max(1, len(rounds) // 8)
    start = order[learner] % every
    axes.plot(rounds, mean, label=learner, markevery=(start, every), **look)
    if len(values) > 1:
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        axes.fill_between(
            rounds, mean - error, mean + error, color=look["color"], alpha=0.15, linewidth=0
        )


def _bands(chosen: list[Score]) -> str:
    return " The bands are one standard error." if chosen[0].seeds > 1 else ""


def _make_room(axes: Axes, regrets: np.ndarray, bounded: bool) -> None:
    """Show bounds far above: a logarithmic scale, linear near 0 if a regret is negative."""
    if bounded and regrets.min() > 0:
        stretch(axes.yaxis, regrets)
    elif bounded:
        axes.set_yscale("symlog", linthresh=max(float(np.abs(regrets).max()) / 5, 1e-9))
        plain(axes.yaxis)
    if regrets.min() <= 0:
        axes.axhline(0, color="#6b7280", linewidth=0.8)
