"""The critical-difference diagram: mean ranks on a line, and bars over learners that do not differ.

Demsar, Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 7, 2006, figure 1.
"""

from typing import NamedTuple

import numpy as np

from olx.lab.report import significance
from olx.lab.report.scores import Winners, by_dataset
from olx.lab.report.significance import LEVEL, p_text

ROW, LETTER, SCALE = 18.0, 7.0, 340.0  # heights, widths of letters and of the line, in points
LONGEST = 32  # letters of a name


class RankDiagram(NamedTuple):
    name: str  # of its files
    dataset: str  # "" for all
    title: str
    caption: str
    heading: str
    learners: list[str]  # best first
    ranks: np.ndarray
    difference: float  # the critical one
    groups: list[tuple[int, int]]  # the first and last of learners that do not differ


class Stroke(NamedTuple):
    """A line between two points; y grows downwards, in points."""

    x1: float
    y1: float
    x2: float
    y2: float
    kind: str  # a class of page.css


class Label(NamedTuple):
    x: float
    y: float
    side: str  # where the text is anchored: start, middle or end
    text: str


class Drawing(NamedTuple):
    width: float
    height: float
    strokes: list[Stroke]
    labels: list[Label]


def comparable_losses(best: Winners) -> tuple[list[str], list[str], np.ndarray]:
    """Data sets, the learners that were played on all of them, and their mean losses."""
    datasets = list(by_dataset(best))
    names = dict.fromkeys(learner for _, learner in best)
    learners = [name for name in names if all((dataset, name) in best for dataset in datasets)]
    table = [[best[dataset, name].means["loss"] for name in learners] for dataset in datasets]
    return datasets, learners, np.array(table).reshape(len(datasets), len(learners))


def rank_diagram(best: Winners) -> RankDiagram:
    """The mean ranks of all learners; refuses too few data sets or learners."""
    datasets, learners, losses = comparable_losses(best)
    difference = significance.critical_difference(len(learners), len(datasets))
    p, ranks = significance.friedman(losses), significance.mean_ranks(losses)
    order = np.argsort(ranks, kind="stable")
    found = significance.groups(ranks[order], difference)
    said = "so ranks differ" if p <= LEVEL else "so no difference is shown, whatever the ranks"
    said_p = p_text(p) if p_text(p).startswith("<") else f"= {p_text(p)}"
    caption = (
        f"Mean ranks of {len(learners)} learners on {len(datasets)} data sets, best on the left. "
        f"A bar joins learners that do not differ: their mean ranks are at most the critical "
        f"difference (CD) of {difference:.2f} apart (Nemenyi, {LEVEL:.0%}). That all learners are "
        f"alike has p {said_p} (Friedman), {said}. A bar is no proof that learners are alike. "
        "The test speaks of data sets like these, if they are independent of each other; the seeds "
        "of a data set are not, and only their mean is ranked."
    )
    if len(datasets) < 10:
        caption += (
            f" {len(datasets)} data sets are few: the test finds only differences of more than "
            f"{difference:.1f} of {len(learners) - 1} ranks."
        )
    return RankDiagram(
        "ranks", "", "Critical difference of mean ranks", caption, "Mean ranks",
        [learners[i] for i in order], ranks[order], difference,
        found if p <= LEVEL else [(0, len(learners) - 1)],
    )  # fmt: skip


def drawing(diagram: RankDiagram) -> Drawing:
    """Lines and texts: the scale, the learners on both sides below it, the bars between."""
    count = len(diagram.learners)
    names = list(map(_short_name, diagram.learners))
    edge = LETTER * (max(map(len, names)) + 7)
    width, line = 2 * edge + SCALE, 3.2 * ROW
    at = lambda rank: edge + SCALE * (rank - 1) / (count - 1)
    strokes = [Stroke(at(1), line, at(count), line, "axis")]
    labels = []
    for rank in range(1, count + 1):
        strokes.append(Stroke(at(rank), line - 5, at(rank), line, "axis"))
        labels.append(Label(at(rank), line - 9, "middle", str(rank)))
    end = at(1 + diagram.difference)
    strokes += [Stroke(at(1), ROW, end, ROW, "far")]
    strokes += [Stroke(x, ROW - 4, x, ROW + 4, "axis") for x in (at(1), end)]
    labels.append(Label(end + 6, ROW + 4, "start", f"CD = {diagram.difference:.2f}"))
    for i, (first, last) in enumerate(diagram.groups):
        y = line + 8 + 6 * i
        low, high = (at(float(diagram.ranks[j])) for j in (first, last))
        strokes.append(Stroke(low - 3, y, high + 3, y, "group"))
    top, left = line + 8 + 6 * len(diagram.groups) + ROW / 2, (count + 1) // 2
    for i, (name, rank) in enumerate(zip(names, diagram.ranks.tolist(), strict=True)):
        is_left = i < left
        y = top + ROW * (i if is_left else count - 1 - i)
        x = edge - 6 if is_left else width - edge + 6
        strokes += [
            Stroke(at(rank), line, at(rank), y, "elbow"),
            Stroke(at(rank), y, x, y, "elbow"),
        ]
        side, text = ("end", f"{name}  {rank:.2f}") if is_left else ("start", f"{rank:.2f}  {name}")
        labels.append(Label(x - 4 if is_left else x + 4, y + 4, side, text))
    return Drawing(width, top + ROW * left, strokes, labels)


def _short_name(text: str) -> str:
    """A long name without its middle: names differ at their ends.

    >>> _short_name("classification.passive_aggressive_1")
    'classification.p…ve_aggressive_1'
    """
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]}…{text[1 - half :]}"
