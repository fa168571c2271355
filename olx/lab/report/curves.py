"""Figures over rounds: progressive loss, and regret with its bound."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes

from olx.lab.report.figure import Picture, canvas, is_wide, legend, plain, save, stretch, style
from olx.lab.report.scores import Score


def loss_curves(
    curves: pa.Table, winners: dict[tuple[str, str], Score], order: dict[str, int], folder: Path
) -> list[Picture]:
    """The mean loss so far of the best configuration per learner, one figure per data set."""
    pictures = []
    for number, (dataset, chosen) in enumerate(_by_dataset(winners).items()):
        figure, axes = canvas(dataset, "round", "mean loss so far")
        levels = []
        for score in chosen:
            rounds, totals = _late(*_curve(curves, score, "total"))
            losses = totals / rounds
            if rounds.size:
                _draw(axes, rounds, losses, score.learner, order)
                levels.append(losses.mean(axis=0))
        if not levels:
            continue
        stretch(axes.xaxis, np.array([1.0, chosen[0].rounds], float))
        if is_wide(np.concatenate(levels), 3):
            stretch(axes.yaxis, np.concatenate(levels))
        legend(figure, axes)
        title = f"Progressive loss on {dataset}"
        caption = (
            "Mean loss up to each round, from the tenth on, of the best configuration of every "
            f"learner. Least in the end: {chosen[0].learner}."
        )
        caption += _bands(chosen)
        pictures.append(save(figure, folder, f"loss-{number}", title, caption))
    return pictures


def regret_curves(
    curves: pa.Table, winners: dict[tuple[str, str], Score], order: dict[str, int], folder: Path
) -> list[Picture]:
    """The regret of the best configuration per learner and its bound, one figure per data set."""
    pictures = []
    for number, (dataset, chosen) in enumerate(_by_dataset(winners).items()):
        figure, axes = canvas(dataset, "round", "regret")
        levels, bounded = [], False
        for score in chosen:
            rounds, regrets = _late(*_curve(curves, score, "regret"))
            if not rounds.size:
                continue
            _draw(axes, rounds, regrets, score.learner, order)
            levels.append(regrets.mean(axis=0))
            rounds, bounds = _late(*_curve(curves, score, "bound"))
            if rounds.size:
                colour = style(order[score.learner])["color"]
                axes.plot(rounds, bounds.mean(axis=0), ":", color=colour, linewidth=1.4)
                bounded = True
        if not levels:
            continue
        stretch(axes.xaxis, np.array([1.0, chosen[0].rounds], float))
        _make_room(axes, np.concatenate(levels), bounded)
        legend(figure, axes)
        title = f"Regret on {dataset}"
        caption = "Regret from the tenth round on, of the best configuration of every learner."
        caption += _bands(chosen)
        caption += " Dotted, in the same colour: its bound, if it has one." if bounded else ""
        pictures.append(save(figure, folder, f"regret-{number}", title, caption))
    return pictures


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
