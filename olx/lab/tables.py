"""The results of jobs as tables of `olx.lab.store`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from olx.lab import store
from olx.lab.comparators import Comparator
from olx.lab.jobs import Job
from olx.lab.judge import Proof
from olx.lab.spelled import spelled
from olx.lab.sweeps import Played

Proofs = Mapping[int, list[Proof]]  # by configuration


def configurations(job: Job, played: list[Played], rounds: int) -> pa.Table:
    """One row per configuration: its numbers, its mean loss, its metrics."""
    points = job.plan.points
    total = in_order(job, [part.totals[:, -1] for part in played])
    columns: dict[str, Any] = {
        **_keys(job, range(len(points))),
        "hyperparameters": [json.dumps(point, default=spelled) for point in points],
        "rounds": [rounds] * len(points),
        "loss": total / rounds,
        "total": total,
        "diverged": ~np.isfinite(total),
    }
    for axis in job.plan.parts[0].numbers:
        columns[f"h.{axis}"] = [point[axis] for point in points]
    for name in played[0].own:
        columns[name] = in_order(job, [part.own[name] for part in played])
    for name in played[0].test:
        columns[f"test_{name}"] = in_order(job, [part.test[name] for part in played])
    return store.table("configurations", columns)


def curves(job: Job, played: list[Played], against: Comparator | None, proofs: Proofs) -> pa.Table:
    """The cumulative loss of every configuration, its regret, and a bound on it if certified."""
    at = played[0].at
    totals = in_order(job, [part.totals for part in played])
    count, marks = totals.shape
    index = np.repeat(np.arange(count), marks)
    regret = None if against is None else totals - against.totals[at - 1]
    bound = np.full((count, marks), np.nan)
    for i, found in proofs.items():
        if found and found[0].about_regret:  # the first theorem of a learner is its main one
            bound[i] = found[0].right
    known = np.isfinite(bound).reshape(-1)
    columns = {
        **_keys(job, index),
        "round": np.tile(at, count),
        "total": totals.reshape(-1),
        "regret": pa.nulls(len(index), pa.float64()) if regret is None else regret.reshape(-1),
        "bound": pa.array(bound.reshape(-1), pa.float64(), mask=~known),
    }
    return store.table("curves", columns)


def certificates(job: Job, proofs: Proofs) -> pa.Table:
    """Both sides after the last round, and the smallest slack over all rounds."""
    found = [proof for each in proofs.values() for proof in each]
    columns = {
        **_keys(job, [i for i, each in proofs.items() for _ in each]),
        "name": [proof.name for proof in found],
        "theorem": [proof.theorem for proof in found],
        "left": [float(proof.left[-1]) for proof in found],
        "right": [float(proof.right[-1]) for proof in found],
        "slack": [proof.slack for proof in found],
        "tightness": [proof.tightness for proof in found],
        "holds": [proof.holds for proof in found],
        "broken": [proof.broken for proof in found],
        "difference": [proof.difference for proof in found],
        "holds_in_double": [proof.holds_in_double for proof in found],
    }
    return store.table("certificates", columns)


def confusions(job: Job, configuration: int, pairs: Sequence[Any], counts: Any) -> pa.Table:
    """How often each pair of a class and its prediction occurred: two numbers and two names."""
    truth, predicted, truth_name, predicted_name = zip(*pairs, strict=True) if pairs else [()] * 4
    columns = {
        **_keys(job, [configuration] * len(pairs)),
        "truth": truth,
        "predicted": predicted,
        "truth_name": truth_name,
        "predicted_name": predicted_name,
        "count": counts,
    }
    return store.table("confusions", columns)


def times(job: Job, parts: Mapping[str, float], rounds: int) -> pa.Table:
    """Seconds of a job by part; `rounds` is summed over configurations."""
    columns = {
        "dataset": [job.dataset],
        "learner": [job.plan.label],
        "seed": [job.seed],
        "seconds": [sum(parts.values())],
        "rounds_per_second": [rounds / max(parts["playing"], 1e-9)],
        **{f"{name}_seconds": [parts.get(name, 0.0)] for name in store.PARTS},
    }
    return store.table("times", columns)


def best(job: Job, played: list[Played]) -> tuple[int, float]:
    """The configuration with the smallest total loss, and that loss; the first if all diverged."""
    total = in_order(job, [part.totals[:, -1] for part in played])
    found = int(np.argmin(np.where(np.isfinite(total), total, np.inf)))
    return found, float(total[found])


def in_order(job: Job, parts: list[np.ndarray]) -> np.ndarray:
    """The results of the parts of a plan, in the order of its configurations."""
    index = np.concatenate([part.index for part in job.plan.parts])
    return np.concatenate(parts)[np.argsort(index)]


def _keys(job: Job, index: Any) -> dict[str, Any]:
    index = np.asarray(list(index), np.int64)
    count = len(index)
    return {
        "dataset": [job.dataset] * count,
        "learner": [job.plan.label] * count,
        "configuration": index,
        "seed": np.full(count, job.seed, np.int64),
    }
