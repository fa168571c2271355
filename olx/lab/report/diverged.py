"""Why configurations diverged: from which round on, at which numbers."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olx.lab.report.scores import Score
from olx.lab.report.tables import Column, Table
from olx.lab.report.words import configuration


def diverged(everything: list[Score], curves: pa.Table) -> Table | None:
    """One row per data set and learner that diverged for some of its configurations."""
    groups: dict[tuple[str, str], list[Score]] = {}
    for score in everything:
        groups.setdefault((score.dataset, score.learner), []).append(score)
    rows = []
    for (dataset, learner), mine in groups.items():
        lost = [score for score in mine if _is_lost(score)]
        if not lost:
            continue
        first, before, level = _first(curves, lost)
        name = configuration(first.hyperparameters) or "no numbers"
        rows.append([dataset, learner, f"{len(lost):,} of {len(mine):,}", name, before, level])
        rows[-1].append(hint(mine))
    if not rows:
        return None
    head = [Column("data set", False), Column("learner", False), Column("diverged")]
    head += [Column("the first of them", False), Column("loss not finite", False)]
    head += [Column("mean loss before"), Column("which", False)]
    note = (
        "A configuration diverged if its loss is not a finite number in some round of some seed. "
        "The rounds are those between which the curve of the loss ends; the first of them is the "
        "configuration that diverged earliest."
    )
    return Table("Configurations that diverged", head, rows, note)


def hint(mine: list[Score]) -> str:
    """What the configurations that diverged have in common, if one number tells them apart."""
    lost = [score for score in mine if _is_lost(score)]
    kept = [score for score in mine if not _is_lost(score)]
    if not kept:
        return "every configuration"
    for name in mine[0].swept:
        bad = [score.swept[name] for score in lost]
        good = [score.swept[name] for score in kept]
        if min(bad) > max(good):
            return f"{name} is too large: all with {name} ≥ {min(bad):.4g}, none below"
        if max(bad) < min(good):
            return f"{name} is too small: all with {name} ≤ {max(bad):.4g}, none above"
    for name in mine[0].swept:
        bad, all_values = [s.swept[name] for s in lost], [s.swept[name] for s in mine]
        if min(bad) > min(all_values):
            return f"only some with {name} ≥ {min(bad):.4g}"
        if max(bad) < max(all_values):
            return f"only some with {name} ≤ {max(bad):.4g}"
    return ""


def _is_lost(score: Score) -> bool:
    return not math.isfinite(score.means["loss"])


def _first(curves: pa.Table, lost: list[Score]) -> tuple[Score, str, str]:
    """The configuration that diverged first, between which rounds, and its mean loss before."""
    found = [(_end(curves, score), score) for score in lost]
    (after, until, level), score = min(found, key=lambda one: (one[0][1], one[1].configuration))
    if math.isinf(until):
        return score, "", ""
    where = f"in round {until:,.0f}"
    if until - after > 1:
        where = f"between rounds {after + 1:,.0f} and {until:,.0f}"
    return score, where, "" if math.isnan(level) else f"{level:.4g}"


def _end(curves: pa.Table, score: Score) -> tuple[float, float, float]:
    """The last round of a finite loss, the next one on the curve, and the mean loss until then."""
    field: Any = pc.field
    part = curves.filter(
        (field("dataset") == score.dataset)
        & (field("learner") == score.learner)
        & (field("configuration") == score.configuration)
    )
    seeds, rounds = part["seed"].to_numpy(), part["round"].to_numpy()
    totals = part["total"].to_numpy(zero_copy_only=False)
    ends = []
    for seed in np.unique(seeds):
        own = np.argsort(rounds[seeds == seed])
        at, paid = rounds[seeds == seed][own], totals[seeds == seed][own]
        bad = ~np.isfinite(paid)
        if bad.any():
            i = int(np.argmax(bad))
            ends.append((at[i - 1], at[i], paid[i - 1] / at[i - 1]) if i else (0, at[0], math.nan))
    return min(ends, key=lambda end: end[1], default=(0.0, math.inf, math.nan))
