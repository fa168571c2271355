"""Which class was predicted in place of which: counts of the best configuration of a job.

A sweep keeps no predictions, so the best configuration is played again. A prediction is that of
`olx.lab.metrics`, so these counts and the metrics have one definition of a mistake.
"""

from typing import Any

import numpy as np
import pyarrow as pa

import olx
from olx.lab import tables
from olx.lab.data import Dataset
from olx.lab.jobs import Job
from olx.lab.sweeps import LabGame, Played, one

NONE = "none"  # the name of a prediction that is no class, because a score is NaN


def confusions(job: Job, data: Dataset, game: LabGame, played: list[Played]) -> pa.Table:
    """The counts of the best configuration; no rows if it diverged, or outcomes are no classes."""
    best, total = tables.best(job, played)
    if data.task.predicted is None or not np.isfinite(total):
        return tables.confusions(job, best, [], [])
    part, i = next((part, part.index.index(best)) for part in job.plan.parts if best in part.index)
    done = olx.run(
        one(part, i), game.loss, game.rounds, game.start,
        record=data.task.predicted, progress=False,
    )  # fmt: skip
    truth, predicted = np.asarray(game.rounds.outcome), np.asarray(done.trace)
    real = truth >= 0  # padding of sequences is -1
    pairs = np.stack([truth[real], predicted[real]], axis=1)
    cells, counts = np.unique(pairs, axis=0, return_counts=True)
    called = [*names(data), NONE]  # the class -1 is the last one
    rows: list[Any] = [(*cell, *(called[number] for number in cell)) for cell in cells.tolist()]
    return tables.confusions(job, best, rows, counts)


def names(data: Dataset) -> list[str]:
    """The names of the classes; their numbers if the data have no names."""
    known = data.table.labels.classes if data.table is not None else ()
    if len(known) != data.classes:
        return [str(number) for number in range(data.classes)]
    return [f"{name:g}" if isinstance(name, float) else str(name) for name in known]
