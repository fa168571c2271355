"""Charts of the loss against one hyperparameter."""

import itertools
from collections.abc import Iterator

import numpy as np

from olx.lab.report.chart import Chart, Line, Scale, is_wide
from olx.lab.report.scores import Score

MANY = 40  # with more values, as from a random search, neighbours are merged


def sensitivity(everything: list[Score], order: dict[str, int]) -> Iterator[Chart]:
    """Mean loss against each hyperparameter, the others at their best; one chart per data set."""
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
        caption += f" Crosses on the upper edge: {lost} values that diverged." if lost else ""
        x = np.concatenate([np.append(line.x, line.lost) for line in lines])
        y = np.concatenate([line.y for line in lines])
        yield Chart(
            f"sensitivity-{next(number)}", f"Sensitivity to {name} on {dataset}", caption,
            dataset, name, "mean loss", (Scale(is_wide(x)), Scale(is_wide(y))),
            lines, len(order), dots=True,
        )  # fmt: skip


def _envelope(mine: list[Score], learner: str, name: str, order: dict[str, int]) -> Line:
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
    x, y, error = np.array(numbers, float).reshape(-1, 3).T
    good = np.isfinite(y)
    bars = np.nan_to_num(error[good]) if own and own[0].seeds > 1 else None
    return Line(learner, order[learner], x[good], y[good], bars, lost=tuple(x[~good].tolist()))
