"""Best values at the end of their grid: a better one may lie outside."""

import math

from olx.lab.report.scores import Score

OTHER = {"smallest": "smaller", "largest": "larger"}


def edges(everything: list[Score], winner: Score) -> list[str]:
    """A line per number of a best configuration that is the smallest or largest of its grid.

    An equally good configuration inside the grid makes the line unnecessary.
    """
    if not math.isfinite(winner.means["loss"]):
        return []
    place = winner.dataset, winner.learner
    mine = [score for score in everything if (score.dataset, score.learner) == place]
    best = [score for score in mine if score.means["loss"] == winner.means["loss"]]
    lines = []
    for axis, value in _numbers(winner).items():
        tried = sorted({_numbers(score)[axis] for score in mine if axis in _numbers(score)})
        ends = {tried[0]: "smallest", tried[-1]: "largest"} if len(tried) > 1 else {}
        if all(_numbers(score).get(axis) in ends for score in best):
            lines.append(
                f"{winner.learner}: {axis} = {value:.4g} is the {ends[value]} value of its grid; "
                f"extend it, if a {OTHER[ends[value]]} one is legal."
            )
    return lines


def _numbers(score: Score) -> dict[str, float]:
    """The numbers among the values of a grid; others have no order."""
    is_number = lambda value: isinstance(value, int | float) and not isinstance(value, bool)
    found: dict = score.hyperparameters
    return {axis: value for axis, value in found.items() if is_number(value)}
