"""The verdicts on theorems: each run has one, and a row of the table counts them.

holds               both sides were in order after every round, up to rounding
fails               they were not, in a round before any condition was broken
diverged            an action or a loss of the run is not finite; then nothing holds
conditions not met  the run breaks a condition from some round on; there the theorem says nothing
"""

import math
from typing import Any

import numpy as np
import pyarrow as pa

from olx.lab.report.tables import Column, Table
from olx.lab.report.words import short
from olx.theorem import DIVERGED

HOLDS, FAILS, LOST, NOT_MET = "holds", "fails", "diverged", "conditions not met"


def verdict(run: dict[str, Any]) -> str:
    """The verdict on one run, a row of the table of certificates."""
    if not run["holds"]:
        return LOST if DIVERGED in run["broken"] else FAILS
    return NOT_MET if run["broken"] or run["right"] == math.inf else HOLDS


def certificates(table: pa.Table) -> Table | None:
    """Per theorem: the verdicts on its runs, and the numbers of those that it speaks about."""
    keys = ["dataset", "learner", "name", "theorem"]
    grouped: dict[tuple, list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        grouped.setdefault(tuple(row[key] for key in keys), []).append(row)
    if not grouped:
        return None
    rows = [[*about, said(runs), *_numbers(runs)] for about, runs in grouped.items()]
    texts = ["data set", "learner", "name", "theorem", "verdict"]
    numbers = ["left side", "right side", "least slack", "median tightness", "largest tightness"]
    head = [*(Column(name, False) for name in texts), *map(Column, numbers)]
    note = (
        "Theorems are checked on the run shown, in its precision. Numbers are of the runs that "
        "meet the conditions. Slack is right side minus left side, the smallest over all rounds; "
        "both sides are those after the last round of the run with the smallest slack. Tightness "
        "is the largest ratio left / right; 1 means that the bound was attained. Where a run "
        "breaks a condition, the theorem says nothing about it."
    )
    return Table("Theorems checked", head, rows, note)


def counts(table: pa.Table) -> dict[str, int]:
    """How many runs have each verdict."""
    found = [verdict(row) for row in table.to_pylist()]
    return {each: found.count(each) for each in (HOLDS, FAILS, LOST, NOT_MET) if each in found}


def said(runs: list[dict[str, Any]]) -> str:
    """The verdicts on the runs of one theorem, in words."""
    by = {each: [run for run in runs if verdict(run) == each] for each in WHY}
    parts = [
        f"{each}{_share(len(own), len(runs))}{WHY[each](own)}" for each, own in by.items() if own
    ]
    difference = max(run["difference"] for run in runs)
    if not difference < 1e-3:
        parts.append(f"played again, the losses differ by {difference:.1g}")
    return "; ".join(parts)


def _share(some: int, total: int) -> str:
    if total == 1:
        return ""
    return f" in all {total} runs" if some == total else f" in {some} of {total} runs"


def _why_failed(runs: list[dict[str, Any]]) -> str:
    if all(run["holds_in_double"] for run in runs):
        return " by rounding alone: in double precision it holds"
    if all(run["slack"] >= 0 for run in runs):
        return ": the published form is below the right side"
    return ""


def _why_not_met(runs: list[dict[str, Any]]) -> str:
    known = dict.fromkeys(run["broken"] for run in runs if run["broken"])
    return f" {next(iter(known))}" if known else ": the right side is infinite"


def _when_lost(runs: list[dict[str, Any]]) -> str:
    return _why_not_met(runs).removesuffix(f": {DIVERGED}")


WHY = {
    FAILS: _why_failed,
    LOST: _when_lost,
    NOT_MET: _why_not_met,
    HOLDS: lambda runs: "",
}


def _numbers(runs: list[dict[str, Any]]) -> list[str]:
    judged = [run for run in runs if verdict(run) not in (LOST, NOT_MET)]
    if not judged:
        return [""] * 5
    worst = min(judged, key=lambda run: run["slack"])
    slack = max(worst["slack"], 0.0) if verdict(worst) == HOLDS else worst["slack"]
    tightness = [run["tightness"] for run in judged]
    numbers = [worst["left"], worst["right"], slack, float(np.median(tightness)), max(tightness)]
    return ["∞" if number == math.inf else short(number) for number in numbers]
