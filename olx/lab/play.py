"""Play one job: all configurations of a learner on a data set in the order of a seed.

Test rounds are played with weight 0, which changes no state: no learner learns from them. A sweep
keeps no predictions, so with more than two classes the best configuration is played again to count
which class was predicted for which; a prediction is that of the metrics, so there is one definition
of a mistake. Two classes are counted while they are played.
"""

import dataclasses
import functools
import json
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pyarrow as pa

import olx
from olx import _archive as archive
from olx.core import Curve, Rounds, Run
from olx.keep import Keep
from olx.lab import tables
from olx.lab.certificates import Comparator, Proof, certificates, find_comparator
from olx.lab.config import ConfigError
from olx.lab.data import Dataset
from olx.lab.experiment import Experiment
from olx.lab.jobs import Job, Part
from olx.lab.prepare import DataCache, Game, job_game
from olx.lab.tables import Played
from olx.lab.tasks.class_metrics import confusion
from olx.lab.tasks.metrics import measure, metric_values
from olx.streams.sparse_rows import SparseRows

NO_CLASS = "none"  # the name of a prediction that is no class, because a score is NaN
Comparators = dict[tuple[str, int, bytes, str], Comparator]


def play_job(
    experiment: Experiment, job: Job, cache: DataCache, saves: Path, comparators: Comparators
) -> dict[str, pa.Table]:
    """The tables of a job.

    saves: the folder of the checkpoints of all jobs.
    comparators: those that other jobs have found; new ones are added.
    """
    clock = Clock()
    data = cache.get(job.data, job.seed)
    game = job_game(experiment, job, data)
    clock.lap("reading")
    try:
        limit, place = experiment.budget.save, saves / job.name
        played = [_play(part, game, limit, place) for part in job.parts]
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{job.where} on {job.dataset}: {error}") from error
    clock.lap("playing", "compiled")
    against, proofs = None, {}
    if experiment.comparator is not None:
        against = _comparator(experiment, job, data, game, comparators)
        clock.lap("comparator")
        if experiment.bound is not None:
            proofs = _proofs(experiment, job, game, played, against)
            clock.lap("certificates")
    confused = _confusions(job, data, game, played)
    clock.lap("confusions")
    length = len(game.rounds.outcome)
    made = {
        "configurations": tables.configurations(job, played, length),
        "curves": tables.curves(job, played, against, proofs),
        "certificates": tables.certificates(job, proofs),
        "confusions": confused,
    }
    clock.lap("tables")
    return {**made, "times": tables.times(job, clock.parts, length * len(job.points))}


def _comparator(
    experiment: Experiment, job: Job, data: Dataset, game: Game, found: Comparators
) -> Comparator:
    """The comparator of a job; jobs with the same rows and the same set share one."""
    if isinstance(game.rounds.context, SparseRows):
        raise ConfigError(
            f"comparator: the rows of {job.dataset} are too large to be dense; give "
            "budget.memory in megabytes, or ask for no comparator."
        )
    own = job.where if job.domain is not None else ""
    start = b"".join(leaf.tobytes() for leaf in jax.tree.leaves(game.start))
    key = job.dataset, job.seed, start, own
    if key not in found:
        found[key] = find_comparator(experiment, data, game, job.domain)
    return found[key]


def _proofs(
    experiment: Experiment, job: Job, game: Game, played: list[Played], against: Comparator
) -> dict[int, list[Proof]]:
    """Certificates by configuration: of the one with the smallest loss, or of all."""
    best, _ = tables.best(job, played)
    proofs = {}
    for part, output in zip(job.parts, played, strict=True):
        for i, configuration in enumerate(part.index):
            if experiment.bound == "best" and configuration != best:
                continue
            make = functools.partial(part.learner, i)
            shown = output.at, output.totals[i]
            found = certificates(make, job.theorems, game, against, shown, experiment.shifts)
            proofs[configuration] = found
    return proofs


def _play(part: Part, game: Game, limit: float, folder: Path) -> Played:
    """Play a part as one program.

    limit: rounds times configurations above which checkpoints are written into `folder`.
    """
    rounds = game.rounds if game.test is None else game.test
    count, length, learned = len(part.index), len(rounds.outcome), len(game.rounds.outcome)
    place = folder / str(part.index[0]) if count * length > limit else None
    cut = learned if game.half is None else game.half
    curve = _run(part, game, rounds, cut, place).curve
    assert curve is not None  # `keep` was given
    totals, sums, middle = curve.total, curve.sums, int(np.searchsorted(curve.at, cut))
    first = jax.tree.map(lambda rows: rows[:, middle], (totals, sums))
    values = functools.partial(metric_values, game.metrics)
    outcome, counts = np.asarray(rounds.outcome), None
    if game.counts is not None:  # of the rows that are learned
        counts = sums[game.counts.__name__][:, np.searchsorted(curve.at, learned)]
    if cut == length:
        return Played(curve.at, totals, values(first[1], outcome), {}, counts)
    second = jax.tree.map(lambda rows, before: rows[:, -1] - before, (totals, sums), first)
    halves = [
        {"loss": paid / len(seen), **values(measured, seen)}
        for (paid, measured), seen in ((first, outcome[:cut]), (second, outcome[cut:]))
    ]
    shown = slice(None if game.test is None else middle + 1)  # no curve of test rounds
    return Played(curve.at[shown], totals[:, shown], halves[0], halves[1], counts)


def _run(part: Part, game: Game, rounds: Rounds, cut: int, place: Path | None) -> Run:
    options: Any = {
        "keep": functools.partial(_and_cut, game.keep, cut),
        "measure": measure(game.metrics, game.counts),
        "checkpoint": None if place is None else olx.checkpoint(place),
        "progress": False if place is None else None,
    }
    learners = part.batch()
    if jax.tree.leaves(learners.learners):
        return olx.sweep(learners, game.loss, rounds, game.start, **options)
    run = olx.run(learners[0], game.loss, rounds, game.start, **options)  # it has no numbers
    curve = run.curve
    assert curve is not None  # `keep` was given
    once = lambda leaf: np.asarray(leaf)[None]
    stacked = Curve(curve.at, once(curve.total), jax.tree.map(once, curve.sums))
    return dataclasses.replace(run, curve=stacked)


def _and_cut(keep: Keep, cut: int, start: int, stop: int) -> np.ndarray:
    return np.union1d(keep(start, stop), [cut] if start < cut <= stop else []).astype(int)


def _confusions(job: Job, data: Dataset, game: Game, played: list[Played]) -> pa.Table:
    """The counts of the best configuration; no rows if it diverged, or outcomes are no classes."""
    best, total = tables.best(job, played)
    if not np.isfinite(total):
        return tables.confusions(job, best, [], [])
    part, i = job.find(best)
    own = next(each for one, each in zip(job.parts, played, strict=True) if one is part)
    if (sums := own.counts) is not None:
        counted = confusion(sums[i], np.asarray(game.rounds.outcome))
        cells = np.argwhere(counted)
        counts = counted[tuple(cells.T)].astype(int)
    elif data.task.predicted is not None:
        done = olx.run(
            part.learner(i), game.loss, game.rounds, game.start,
            record=data.task.predicted, progress=False,
        )  # fmt: skip
        truth, predicted = np.asarray(game.rounds.outcome), np.asarray(done.trace)
        real = truth >= 0  # padding of sequences is -1
        pairs = np.stack([truth[real], predicted[real]], axis=1)
        cells, counts = np.unique(pairs, axis=0, return_counts=True)
    else:
        return tables.confusions(job, best, [], [])
    called = [*_class_names(data), NO_CLASS]  # the class -1 is the last one
    rows = [(*cell, *(called[number] for number in cell)) for cell in cells.tolist()]
    return tables.confusions(job, best, rows, counts)


def _class_names(data: Dataset) -> list[str]:
    """The names of the classes; their numbers if the data have no names."""
    known = data.table.labels.classes if data.table is not None else ()
    count = data.classes or 2
    if len(known) != count:
        return [str(number) for number in range(count)] if data.classes else ["-1", "1"]
    return [f"{name:g}" if isinstance(name, float) else str(name) for name in known]


class Clock:
    """Where the time of a run goes: adds the time since the last lap to a part.

    So no second is counted twice or lost.
    """

    def __init__(self) -> None:
        self._last, self._compiled = time.perf_counter(), _compiling.seconds
        self.parts: dict[str, float] = {}

    def lap(self, part: str, compiling: str = "") -> float:
        """Add the time since the last lap to `part`; that of the compiler to `compiling`.

        It returns the time since the last lap.
        """
        now, compiled = time.perf_counter(), _compiling.seconds
        passed, of_which = now - self._last, 0.0
        if compiling:  # nested programs report their time twice
            of_which = min(compiled - self._compiled, passed)
            self.parts[compiling] = self.parts.get(compiling, 0.0) + of_which
        self.parts[part] = self.parts.get(part, 0.0) + passed - of_which
        self._last, self._compiled = now, compiled
        return passed


def seconds_outside_jobs(folder: Path) -> float:
    """The seconds of all plays of a result that no job counts, such as preparing and storing."""
    place = folder / "outside.json"
    return float(json.loads(place.read_text())["seconds"]) if place.is_file() else 0.0


def add_seconds_outside_jobs(folder: Path, seconds: float) -> None:
    """Count seconds that belong to no job."""
    archive.write_json(folder / "outside.json", {"seconds": seconds_outside_jobs(folder) + seconds})


class _Compiling:
    """Adds up the seconds that compilation takes."""

    def __init__(self) -> None:
        self.seconds = 0.0
        jax.monitoring.register_event_duration_secs_listener(self._listen)

    def _listen(self, event: str, duration_secs: float, **_: Any) -> None:
        if event.startswith("/jax/core/compile/"):
            self.seconds += duration_secs


_compiling = _Compiling()
