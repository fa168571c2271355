"""Charts over rounds: progressive loss, and regret with its bound."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olx.lab.report.chart import Chart, Line, Scale, is_wide
from olx.lab.report.scores import Score

Winners = dict[tuple[str, str], Score]


def loss_charts(
    curves: pa.Table, winners: Winners, order: dict[str, int], comparator: str
) -> Iterator[Chart]:
    """The mean loss so far of the best configuration per learner, one chart per data set."""
    for number, (dataset, chosen) in enumerate(by_dataset(winners).items()):
        lines = loss_lines(curves, chosen, order)
        if not lines:
            continue
        lines += (other := _compared(curves, chosen) if comparator else [])
        levels = np.concatenate([line.y for line in lines])
        caption = (
            "Mean loss up to each round, from the tenth on, of the best configuration of every "
            f"learner. Least in the end: {chosen[0].learner}.{_bands(chosen)}"
        )
        caption += f" Grey: the comparator, {comparator}." if other else ""
        yield Chart(
            f"loss-{number}", f"Progressive loss on {dataset}", caption, dataset,
            "round", "mean loss so far", (Scale(log=True), Scale(is_wide(levels, 3))),
            lines, len(order),
        )  # fmt: skip


def regret_charts(
    curves: pa.Table, winners: Winners, order: dict[str, int], comparator: str
) -> Iterator[Chart]:
    """The regret of the best configuration per learner and its bound, one chart per data set."""
    for number, (dataset, chosen) in enumerate(by_dataset(winners).items()):
        lines = [line for score in chosen for line in _regret(curves, score, order)]
        if not lines:
            continue
        bounded = any(line.bound for line in lines)
        caption = (
            "Regret from the tenth round on, of the best configuration of every learner, against "
            f"{comparator}.{_bands(chosen)}"
        )
        caption += " Dotted, in the same colour: its bound, if it has one." if bounded else ""
        yield Chart(
            f"regret-{number}", f"Regret on {dataset}", caption, dataset,
            "round", "regret", (Scale(log=True), _room(lines)), lines, len(order),
        )  # fmt: skip


def by_dataset(winners: Winners) -> dict[str, list[Score]]:
    groups: dict[str, list[Score]] = {}
    for (dataset, _), score in winners.items():
        groups.setdefault(dataset, []).append(score)
    return groups


def curve(curves: pa.Table, score: Score, column: str) -> tuple[np.ndarray, np.ndarray]:
    """The rounds [K] that all seeds kept, and the values [seeds, K] there; finite ones only.

    The first rounds, which are mostly noise, are left out.
    """
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
    if not shared:
        return np.zeros(0), np.zeros((0, 0))
    matrix = np.array([[one[round] for round in shared] for one in by_seed])
    at = np.array(shared, float)
    shown = np.isfinite(matrix).all(axis=0) & (at >= min(10, at.max() / 10))
    return at[shown], matrix[:, shown]


def loss_lines(curves: pa.Table, chosen: list[Score], order: dict[str, int]) -> list[Line]:
    """The mean loss so far of each configuration in `chosen` that has a curve."""
    found = [(score, *curve(curves, score, "total")) for score in chosen]
    return [
        line
        for score, rounds, totals in found
        for line in _line(score, order, rounds, totals / rounds)
    ]


def _regret(curves: pa.Table, score: Score, order: dict[str, int]) -> list[Line]:
    found = _line(score, order, *curve(curves, score, "regret"))
    rounds, bounds = curve(curves, score, "bound")
    if found and rounds.size:
        label = f"bound of {score.learner}"
        place = order[score.learner]
        found.append(Line(label, place, rounds, bounds.mean(axis=0), bound=True))
    return found


def _compared(curves: pa.Table, chosen: list[Score]) -> list[Line]:
    """The mean loss of the comparator, if all learners have the same one."""
    at, found = np.zeros(0), []
    for score in chosen:
        rounds, totals = curve(curves, score, "total")
        at, regrets = curve(curves, score, "regret")
        if rounds.size and np.array_equal(rounds, at):
            found.append(((totals - regrets) / rounds).mean(axis=0))
    same = bool(found) and all(
        each.shape == found[0].shape and np.allclose(each, found[0], 1e-3) for each in found
    )
    return [Line("comparator", -1, at, found[0])] if same else []


def _line(score: Score, order: dict, rounds: np.ndarray, values: np.ndarray) -> list[Line]:
    if not rounds.size:
        return []
    several = len(values) > 1
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values)) if several else None
    return [Line(score.learner, order[score.learner], rounds, values.mean(axis=0), error)]


def _bands(chosen: list[Score]) -> str:
    return " The bands are one standard error." if chosen[0].seeds > 1 else ""


def _room(lines: list[Line]) -> Scale:
    """Show bounds far above: a logarithmic scale, linear near 0 if a regret is negative."""
    regrets = np.concatenate([line.y for line in lines if not line.bound])
    if not any(line.bound for line in lines):
        return Scale()
    near = 0.0 if regrets.min() > 0 else max(float(np.abs(regrets).max()) / 5, 1e-9)
    return Scale(log=True, near=near)
