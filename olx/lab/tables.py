"""The tables of a result: their columns, and how a job fills them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from olx.lab.certificates import Comparator, Proof
from olx.lab.experiment import Tree, object_name
from olx.lab.jobs import Job

KEYS = [("dataset", pa.string()), ("learner", pa.string())]
ONE = [*KEYS, ("configuration", pa.int64()), ("seed", pa.int64())]
# the parts of the time of a job
SIDES = ("left", "right", "published")  # of a theorem, after the last round
PARTS = ("reading", "compiled", "playing", "comparator", "certificates", "confusions", "tables")
SCHEMAS = {
    "configurations": pa.schema(
        [
            *ONE,
            ("hyperparameters", pa.string()),  # JSON
            ("rounds", pa.int64()),
            ("loss", pa.float64()),  # mean
            ("total", pa.float64()),
            ("diverged", pa.bool_()),
        ]  # and h.<name> per swept number, and one column per metric
    ),
    "curves": pa.schema(
        [
            *ONE,
            ("round", pa.int64()),
            ("total", pa.float64()),
            ("regret", pa.float64()),  # null without a comparator
            ("bound", pa.float64()),  # null if there is none
        ]
    ),
    "certificates": pa.schema(
        [
            *ONE,
            ("name", pa.string()),  # of the theorem
            ("theorem", pa.string()),
            ("left", pa.float64()),
            ("right", pa.float64()),
            ("published", pa.float64()),  # the looser form of the source; null if there is none
            ("slack", pa.float64()),  # the smallest over all rounds
            ("tightness", pa.float64()),
            ("holds", pa.bool_()),
            ("broken", pa.string()),  # the broken conditions, each with its first round
            ("difference", pa.float64()),  # of the losses of the replay from those shown, relative
            ("holds_in_double", pa.bool_()),  # null if single precision did not fail
        ]
    ),
    "confusions": pa.schema(
        [
            *ONE,  # the best configuration
            ("truth", pa.int64()),  # the number of a class
            ("predicted", pa.int64()),  # -1 for none
            ("truth_name", pa.string()),
            ("predicted_name", pa.string()),
            ("count", pa.int64()),
        ]
    ),
    "times": pa.schema(
        [
            *KEYS,
            ("seed", pa.int64()),
            ("seconds", pa.float64()),  # the sum of the parts below
            ("rounds_per_second", pa.float64()),  # while playing; summed over configurations
            *((f"{part}_seconds", pa.float64()) for part in PARTS),
        ]
    ),
}

Proofs = Mapping[int, list[Proof]]  # by configuration


class Played(NamedTuple):
    """A part of a job, played; arrays have a leading axis of configurations."""

    at: np.ndarray  # rounds of the curve
    totals: np.ndarray  # cumulative losses there
    own: dict[str, np.ndarray]  # metrics by name
    test: dict[str, np.ndarray]
    counts: np.ndarray | None  # of two classes: true, predicted, correct


def configurations(job: Job, played: list[Played], rounds: int) -> pa.Table:
    """One row per configuration: its numbers, its mean loss, its metrics."""
    points = job.points
    total = _in_order(job, [part.totals[:, -1] for part in played])
    columns: Tree = {
        **_keys(job, range(len(points))),
        "hyperparameters": [json.dumps(point, default=object_name) for point in points],
        "rounds": [rounds] * len(points),
        "loss": total / rounds,
        "total": total,
        "diverged": ~np.isfinite(total),
    }
    for axis in job.parts[0].numbers:
        columns[f"h.{axis}"] = [point[axis] for point in points]
    for name in played[0].own:
        columns[name] = _in_order(job, [part.own[name] for part in played])
    for name in played[0].test:
        columns[f"test_{name}"] = _in_order(job, [part.test[name] for part in played])
    return table("configurations", columns)


def curves(job: Job, played: list[Played], against: Comparator | None, proofs: Proofs) -> pa.Table:
    """The cumulative loss of every configuration, its regret, and a bound on it if certified."""
    at = played[0].at
    totals = _in_order(job, [part.totals for part in played])
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
    return table("curves", columns)


def certificates(job: Job, proofs: Proofs) -> pa.Table:
    """Both sides after the last round, and the smallest slack over all rounds."""
    found = [proof for each in proofs.values() for proof in each]
    last = [p._replace(**{side: _last(getattr(p, side)) for side in SIDES}) for p in found]
    names = [name for name in Proof._fields if name in SCHEMAS["certificates"].names]
    columns = {
        **_keys(job, [i for i, each in proofs.items() for _ in each]),
        **{name: [getattr(proof, name) for proof in last] for name in names},
    }
    return table("certificates", columns)


def _last(side: np.ndarray | None) -> float | None:
    return None if side is None else float(side[-1])


def confusions(
    job: Job, configuration: int, pairs: Sequence[tuple], counts: Sequence[int] | np.ndarray
) -> pa.Table:
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
    return table("confusions", columns)


def times(job: Job, parts: Mapping[str, float], rounds: int) -> pa.Table:
    """Seconds of a job by part; `rounds` is summed over configurations."""
    columns = {
        "dataset": [job.dataset],
        "learner": [job.learner],
        "seed": [job.seed],
        "seconds": [sum(parts.values())],
        "rounds_per_second": [rounds / max(parts["playing"], 1e-9)],
        **{f"{name}_seconds": [parts.get(name, 0.0)] for name in PARTS},
    }
    return table("times", columns)


def best(job: Job, played: list[Played]) -> tuple[int, float]:
    """The configuration with the smallest total loss, and that loss; the first if all diverged."""
    total = _in_order(job, [part.totals[:, -1] for part in played])
    found = int(np.argmin(np.where(np.isfinite(total), total, np.inf)))
    return found, float(total[found])


def _in_order(job: Job, parts: list[np.ndarray]) -> np.ndarray:
    """The results of the parts of a plan, in the order of its configurations."""
    index = np.concatenate([part.index for part in job.parts])
    return np.concatenate(parts)[np.argsort(index)]


def _keys(job: Job, index: Iterable[int]) -> Tree:
    index = np.asarray(list(index), np.int64)
    count = len(index)
    return {
        "dataset": [job.dataset] * count,
        "learner": [job.learner] * count,
        "configuration": index,
        "seed": np.full(count, job.seed, np.int64),
    }


def table(name: str, columns: Mapping[str, Any]) -> pa.Table:
    """A table of a job: the columns of its schema, then further columns of the experiment."""
    schema = SCHEMAS[name]
    fixed = [pa.array(columns[field.name], field.type) for field in schema]
    free = [key for key in columns if key not in schema.names]
    arrays = [*fixed, *(pa.array(columns[key], pa.float64()) for key in free)]
    return pa.table(arrays, names=[*schema.names, *free])
