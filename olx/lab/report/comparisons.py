"""Tables that say whether the best learner is better than the others, or only looks so.

Learners are compared in pairs: the same data set, and the same order of its rows. What a test can
and cannot say stands below each table.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from olx._refusal import RefusedValue
from olx.lab.report.rank_diagram import comparable_losses
from olx.lab.report.scores import Score, Winners, is_rising, losses_by_seed, plus_minus
from olx.lab.report.significance import (
    LEVEL,
    SEEDS,
    holm,
    mean_ranks,
    p_text,
    paired_t,
    wilcoxon,
)
from olx.lab.report.tables import Table, columns

SEED_TEST = f"paired t-test over seeds, at {LEVEL:.0%}, with the correction of Holm"


class Rival(NamedTuple):
    """A learner beside the first one of its data set."""

    score: Score
    excess: np.ndarray  # by how much it is worse, for each seed of both
    p: float  # after the correction of Holm; NaN if nothing was tested

    @property
    def differs(self) -> bool | None:
        """Whether the difference is significant; None if nothing was tested."""
        return None if np.isnan(self.p) else self.p <= LEVEL


def rivals(table: pa.Table, first: Score, others: list[Score], metric: str = "loss") -> list[Rival]:
    """The others beside the first, on one data set; what diverged differs and is not tested."""
    sign = -1 if is_rising(metric) else 1
    mine, found = losses_by_seed(table, first, metric), []
    for score in others:
        own = losses_by_seed(table, score, metric)
        pairs = [(own[seed], mine[seed]) for seed in mine if seed in own]
        excess = sign * _differences(*np.array(pairs, float).reshape(-1, 2).T)
        found.append(Rival(score, excess, _p_value(excess)))
    tested = [i for i, rival in enumerate(found) if _is_finite(rival) and rival.p >= 0]
    for i, p in zip(tested, holm([found[i].p for i in tested]), strict=True):
        found[i] = found[i]._replace(p=float(p))
    return found


def seed_table(table: pa.Table, chosen: list[Score]) -> Table | None:
    """The first learner of a data set against each other one, over seeds; None for one seed."""
    first, *others = chosen
    if first.seeds < 2 or not others:
        return None
    found = rivals(table, first, others)
    rows = [[rival.score.learner, *_cells(rival)] for rival in found]
    tests = sum(map(_is_finite, found))
    note = f"Pairs: {first.seeds} seeds of {first.dataset}, in the same order of rows for both. "
    if first.seeds < SEEDS:
        note += f"{first.seeds} pairs are too few for a test; {SEEDS} are needed."
    else:
        note += (
            f"p: {SEED_TEST} for {tests} tests. It speaks of other orders of these rows, or other "
            "draws of a stream, and not of other data sets."
        )
    head = columns("learner", ["loss above the first", "won / tied / lost", "p"])
    title = f"Is {first.learner} better?"
    return Table(title, head + columns("different"), rows, note)


def leader_table(table: pa.Table, best: Winners) -> Table | None:
    """The learner with the best mean rank against each other one, over data sets."""
    datasets, learners, losses = comparable_losses(best)
    if len(datasets) < 2 or len(learners) < 2:
        return None
    order = np.argsort(mean_ranks(losses), kind="stable").tolist()
    leader, *others = order
    rows, ps = [], []
    said = ""
    for i in others:
        each = _differences(losses[:, i], losses[:, leader])
        try:
            ps.append(wilcoxon(each))
        except RefusedValue as why:
            said = str(why.args[0])
        runs = np.concatenate(
            [
                rivals(table, best[name, learners[leader]], [best[name, learners[i]]])[0].excess
                for name in datasets
            ]
        )
        rows.append([learners[i], _wins(each), _wins(runs)])
    head = columns("learner", ["data sets: won / tied / lost", "runs: won / tied / lost"])
    count = len(datasets)
    note = (
        f"How often {learners[leader]}, which has the best mean rank, has the smaller mean loss. "
    )
    if said:
        note += f"No p: {said} "
    else:
        head += columns("", ["p"])[1:]
        rows = [[*row, p_text(p)] for row, p in zip(rows, holm(ps).tolist(), strict=True)]
        note += (
            f"p: signed ranks of Wilcoxon on {count} pairs, one per data set, with Holm's "
            f"correction for {len(others)} tests. It speaks of data sets like these, if they are "
            "independent of each other. "
        )
    note += "Runs are counted and not tested: seeds of one data set are no independent data sets."
    return Table(f"{learners[leader]} against the others", head, rows, note)


def _p_value(excess: np.ndarray) -> float:
    """0 where the other learner diverged and the first one did not; NaN where nothing is tested."""
    if np.isposinf(excess).any():
        return 0.0
    try:
        return paired_t(excess)
    except RefusedValue:
        return np.nan


def _is_finite(rival: Rival) -> bool:
    return bool(np.isfinite(rival.excess).all())


def _differences(others: np.ndarray, firsts: np.ndarray) -> np.ndarray:
    """The differences; 0 where both diverged."""
    return np.subtract(others, firsts, out=np.zeros_like(others), where=others != firsts)


def _cells(rival: Rival) -> list[str]:
    """The mean excess of a learner, how often it is worse, the p-value, and what that means."""
    excess = rival.excess
    if not _is_finite(rival):
        return ["diverged", _wins(excess), "", "yes"]
    error = float(excess.std(ddof=1)) / np.sqrt(excess.size) if excess.size > 1 else np.nan
    p = "" if np.isnan(rival.p) else p_text(rival.p)
    verdict = {True: "yes", False: "not shown", None: ""}[rival.differs]
    return [plus_minus(float(excess.mean()), error), _wins(excess), p, verdict]


def _wins(excess: np.ndarray) -> str:
    return f"{np.sum(excess > 0)} / {np.sum(excess == 0)} / {np.sum(excess < 0)}"
