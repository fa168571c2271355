"""The charts of a report as data: one record says all that a drawing needs.

A `Chart` has lines; charts.js draws its `as_json` on the page, `olx.lab.report.figures` makes files
of it. `olx.lab.report.heat_maps` and `olx.lab.report.rank_diagram` have the other kinds.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olx.lab.report.scores import Score, Winners, by_dataset, score_rows, short

HUES = 8  # learners with the same dashes
DASHES = ((), (9, 4), (9, 3, 2, 3), (4, 3))  # of the first learners, the next ones, ...
BOUND, OTHER = (1, 4), (12, 3, 2, 3, 2, 3)  # dashes of bounds, and of lines of no learner
FIRST = (5, 4)  # dashes of the first of two results; lines of the second one are whole
MANY = 40  # more random values of a hyperparameter than these are merged with their neighbours
Laws = dict[tuple[str, str], tuple[float, float]]
BANDS = " The bands are one standard error."


class Axis(NamedTuple):
    label: str
    log: bool = False
    near: float = 0.0  # a logarithmic axis is linear up to this distance from 0
    shown: tuple[float, ...] = ()  # values that the axis reaches, also where no line does
    top: float | None = None  # the end of the axis, if some lines leave it


class Line(NamedTuple):
    label: str
    learner: int  # its number, which gives the colour; -1 for none
    x: np.ndarray
    y: np.ndarray
    dash: tuple[int, ...]  # lengths of dashes and gaps; none for a whole line
    error: np.ndarray | None = None  # one standard error, on both sides
    bound: bool = False
    lost: tuple[float, ...] = ()  # values of x at which the learner diverged


class Chart(NamedTuple):
    name: str  # of its files
    dataset: str
    title: str
    caption: str
    heading: str
    x: Axis
    y: Axis
    lines: list[Line]
    dots: bool = False  # whether each value is a point


def dash(learner: int) -> tuple[int, ...]:
    """The dashes of the line of learner number `learner`."""
    return DASHES[learner // HUES % len(DASHES)]


def is_wide(values: np.ndarray, ratio: float = 20) -> bool:
    """Whether a linear scale would hide the smaller values."""
    return values.size > 0 and bool(values.min() > 0 and values.max() >= ratio * values.min())


def as_json(chart: Chart) -> dict[str, object]:
    """The chart for the page: all lines over the union of their rounds or values."""
    at = np.unique([*chart.x.shown, *(x for line in chart.lines for x in (*line.x, *line.lost))])
    floor = -np.inf  # the least value that a logarithmic axis can show, a little below all lines
    if chart.y.log and not chart.y.near:
        floor = 0.5 * min(float(line.y.min()) for line in chart.lines if line.y.size)

    def over(line: Line, y: np.ndarray) -> list[float | None]:
        known = dict(zip(line.x.tolist(), np.maximum(y, floor).tolist(), strict=True))
        return [_six_digits(known[x]) if x in known else None for x in at.tolist()]

    lines = []
    for line in chart.lines:
        y, error = line.y, line.error
        band = None if error is None else [over(line, y - error), over(line, y + error)]
        own = {"label": line.label, "learner": line.learner, "bound": line.bound, "dash": line.dash}
        own |= {"y": over(line, y), "band": band, "lost": [*map(_six_digits, line.lost)]}
        lines.append(own)
    axes = {"x": chart.x._asdict(), "y": chart.y._asdict()}
    return {**axes, "dots": chart.dots, "at": [*map(_six_digits, at)], "lines": lines}


def _six_digits(value: float) -> float:
    return float(f"{value:.6g}")


def loss_charts(
    curves: pa.Table, best: Winners, order: dict[str, int], comparator: str
) -> Iterator[Chart]:
    """The mean loss so far of the best configuration per learner, one chart per data set."""
    for number, (dataset, chosen) in enumerate(by_dataset(best).items()):
        lines = _loss_lines(curves, chosen, order)
        if not lines:
            continue
        lines += (other := _comparator_line(curves, chosen) if comparator else [])
        caption = (
            "Mean loss up to each round, from the tenth on, of the best configuration of every "
            f"learner. Least in the end: {chosen[0].learner}."
        )
        caption += BANDS if chosen[0].seeds > 1 else ""
        caption += f" Grey: the comparator, {comparator}." if other else ""
        yield _loss_chart(number, dataset, caption, lines, chosen)


def difference_charts(
    results: Sequence[tuple[str, pa.Table, Winners]], order: dict[str, int]
) -> Iterator[Chart]:
    """The mean loss so far of all learners in two results, one chart per data set of both.

    results: name, curves and best configurations of the first result, and of the second one.
    """
    boards = [by_dataset(best) for _, _, best in results]
    for number, dataset in enumerate(name for name in boards[0] if name in boards[1]):
        lines = []
        for (name, curves, _), board, dashes in zip(results, boards, (FIRST, ()), strict=True):
            found = _loss_lines(curves, board[dataset], order)
            lines += [one._replace(label=f"{one.label}, {name}", dash=dashes) for one in found]
        caption = (
            "Mean loss up to each round of the best configuration of every learner; dashed: "
            f"{results[0][0]}."
        )
        if lines:
            lines.sort(key=lambda line: line.learner)
            chosen = [score for board in boards for score in board[dataset]]
            yield _loss_chart(number, dataset, caption, lines, chosen)


def regret_charts(
    curves: pa.Table, best: Winners, order: dict[str, int], comparator: str
) -> Iterator[Chart]:
    """The regret of the best configuration per learner and its bound, one chart per data set."""
    for number, (dataset, chosen) in enumerate(by_dataset(best).items()):
        lines = []
        for score in chosen:
            own = _line(score, order, *_curve(curves, score, "regret"))
            rounds, bounds = _curve(curves, score, "bound")
            if own and rounds.size:
                label, mean = f"bound of {score.learner}", bounds.mean(axis=0)
                own.append(Line(label, own[0].learner, rounds, mean, BOUND, bound=True))
            lines += own
        if not lines:
            continue
        caption = (
            "Regret from the tenth round on, of the best configuration of every learner, against "
            f"{comparator}."
        )
        caption += BANDS if chosen[0].seeds > 1 else ""
        kept = _lines_inside(lines, chosen, order)
        top = max(float(line.y.max()) for line in kept) if len(kept) < len(lines) else None
        caption += _outside(chosen)
        axis = Axis("regret", top=top)
        if any(line.bound for line in lines):  # they may be far above; a regret may be negative
            caption += " Dotted, in the same colour: its bound, if it has one."
            regrets = np.concatenate([line.y for line in kept if not line.bound])
            near = 0.0 if regrets.min() > 0 else max(float(np.abs(regrets).max()) / 5, 1e-9)
            axis = Axis("regret", log=True, near=near, top=top)
        yield Chart(
            f"regret-{number}", dataset, f"Regret on {dataset}", caption, dataset,
            Axis("round", log=True), axis, lines,
        )  # fmt: skip


def sensitivity_charts(
    everything: list[Score], order: dict[str, int], laws: Laws | None = None
) -> Iterator[Chart]:
    """Mean loss against each hyperparameter, the others at their best; one chart per data set.

    laws: the ends of the ranges that random values were drawn from, by learner and hyperparameter.
    """
    names = dict.fromkeys(name for score in everything for name in score.swept)
    datasets = dict.fromkeys(score.dataset for score in everything)
    number = itertools.count()
    for name, dataset in itertools.product(names, datasets):
        mine = [score for score in everything if score.dataset == dataset and name in score.swept]
        found = [_envelope(mine, learner, name, order) for learner in order]
        lines = [line for line in found if line.x.size + len(line.lost) > 1]
        if not any(line.x.size for line in lines):
            continue
        lost = sum(len(line.lost) for line in lines)
        caption = f"Mean loss against {name}, every other hyperparameter at its best."
        caption += " One standard error is drawn on both sides." if mine[0].seeds > 1 else ""
        ceiling = mine[0].ceiling
        above = f", or have a loss above {short(ceiling)}" if ceiling < math.inf else ""
        caption += (
            f" Crosses on the upper edge: {lost} values that diverged{above}." if lost else ""
        )
        drawn = {line.label for line in lines}
        ends = [end for one in drawn for end in (laws or {}).get((one, name), ())]
        values = [score.swept[name] for score in mine if score.learner in drawn]
        tried, losses = np.array([*values, *ends]), np.concatenate([line.y for line in lines])
        bars = [line.y + line.error for line in lines if line.error is not None]
        top = ceiling if max((bar.max(initial=0) for bar in bars), default=0) > ceiling else None
        yield Chart(
            f"sensitivity-{next(number)}", dataset, f"Sensitivity to {name} on {dataset}", caption,
            f"{name} on {dataset}",
            Axis(name, is_wide(tried), shown=(float(tried.min()), float(tried.max()))),
            Axis("mean loss", is_wide(losses), top=top), lines, dots=True,
        )  # fmt: skip


def _curve(curves: pa.Table, score: Score, column: str) -> tuple[np.ndarray, np.ndarray]:
    """The rounds [K] that all seeds kept, and the values [seeds, K] there; finite ones only.

    The first rounds, which are mostly noise, are left out.
    """
    part = score_rows(curves, score).filter(pc.field(column).is_valid())
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


def _line(
    score: Score, order: dict[str, int], rounds: np.ndarray, values: np.ndarray
) -> list[Line]:
    """The mean of `values` [seeds, K] over seeds; no line if there are no rounds."""
    if not rounds.size:
        return []
    several, learner = len(values) > 1, order[score.learner]
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values)) if several else None
    return [Line(score.learner, learner, rounds, values.mean(axis=0), dash(learner), error)]


def _loss_lines(curves: pa.Table, chosen: list[Score], order: dict[str, int]) -> list[Line]:
    """The mean loss so far of each configuration in `chosen` that has a curve."""
    lines = []
    for score in chosen:
        rounds, totals = _curve(curves, score, "total")
        lines += _line(score, order, rounds, totals / rounds)
    return lines


def _loss_chart(
    number: int, dataset: str, caption: str, lines: list[Line], chosen: list[Score]
) -> Chart:
    levels = np.concatenate([line.y for line in lines])
    ceiling = chosen[0].ceiling
    top = ceiling if levels.max() > ceiling else None
    axis = Axis("mean loss so far", is_wide(np.minimum(levels, ceiling), 3), top=top)
    return Chart(
        f"loss-{number}", dataset, f"Progressive loss on {dataset}", caption + _outside(chosen),
        dataset, Axis("round", log=True), axis, lines,
    )  # fmt: skip


def _outside(chosen: list[Score]) -> str:
    """The learners that leave the picture, and why."""
    far = [score for score in chosen if score.diverged]
    if not far:
        return ""
    said = ", ".join(f"{score.learner} ({short(score.means['loss'])})" for score in far)
    ceiling = chosen[0].ceiling
    level = f" or above {short(ceiling)}" if ceiling < math.inf else ""
    return f" Outside, as diverged: {said}, since the mean loss is not finite{level}."


def _lines_inside(lines: list[Line], chosen: list[Score], order: dict[str, int]) -> list[Line]:
    """The lines of learners that did not diverge; all of them if there is none."""
    far = {order[score.learner] for score in chosen if score.diverged}
    return [line for line in lines if line.learner not in far] or lines


def _comparator_line(curves: pa.Table, chosen: list[Score]) -> list[Line]:
    """The mean loss of the comparator, if all learners have the same one."""
    found = []
    for score in chosen:
        rounds, totals = _curve(curves, score, "total")
        at, regrets = _curve(curves, score, "regret")
        if rounds.size and np.array_equal(rounds, at):
            found.append((at, ((totals - regrets) / at).mean(axis=0)))
    if not found:
        return []
    x, y = found[0]
    same = all(np.array_equal(at, x) and np.allclose(each, y, 1e-3) for at, each in found)
    return [Line("comparator", -1, x, y, OTHER)] if same else []


def _envelope(mine: list[Score], learner: str, name: str, order: dict[str, int]) -> Line:
    """The best score for every value of a hyperparameter.

    Where a random search moves the other numbers with every value, neighbours are merged.
    """
    own = [score for score in mine if score.learner == learner]
    distinct, place = np.unique([score.swept[name] for score in own], return_inverse=True)
    is_random = distinct.size == len(own) and any(len(one.hyperparameters) > 1 for one in own)
    if distinct.size > MANY and is_random:
        place = place * (MANY // 2) // distinct.size
    best: dict[int, Score] = {}
    for index, score in zip(place.tolist(), own, strict=True):
        if index not in best or score.means["loss"] < best[index].means["loss"]:
            best[index] = score
    line = sorted(best.values(), key=lambda score: score.swept[name])
    numbers = [(one.swept[name], one.means["loss"], one.errors["loss"]) for one in line]
    x, y, error = np.array(numbers, float).reshape(-1, 3).T
    good = np.array([not one.diverged for one in line], bool)
    bars = np.nan_to_num(error[good]) if own and own[0].seeds > 1 else None
    number, lost = order[learner], tuple(x[~good].tolist())
    return Line(learner, number, x[good], y[good], dash(number), bars, lost=lost)
