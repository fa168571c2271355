"""Play one job: all configurations of a learner on a data set in the order of a seed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import pyarrow as pa

from olx.lab import judge, tables
from olx.lab.clock import Clock
from olx.lab.comparators import Comparator, comparator
from olx.lab.config import ConfigError
from olx.lab.confusions import confusions
from olx.lab.experiment import Experiment
from olx.lab.jobs import Job, Shelf, game_of
from olx.lab.sweeps import LabGame, Limits, Played, play
from olx.streams.sparse_rows import SparseRows


def play_job(
    experiment: Experiment, job: Job, shelf: Shelf, saves: Path, comparators: dict[Any, Any]
) -> dict[str, pa.Table]:
    """The tables of a job.

    saves: the folder of the checkpoints of all jobs.
    comparators: those that other jobs have found; new ones are added.
    """
    clock = Clock()
    data = shelf.get(job.data, job.seed)
    game = game_of(experiment, job, data)
    limits = Limits(experiment.budget.save, saves / job.name)
    clock.lap("reading")
    try:
        played = [play(part, game, limits) for part in job.plan.parts]
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{job.plan.where} on {job.dataset}: {error}") from error
    clock.lap("playing", "compiled")
    against: Comparator | None = None
    proofs: tables.Proofs = {}
    if experiment.comparator is not None:
        if isinstance(game.rounds.context, SparseRows):
            raise ConfigError(
                f"comparator: the rows of {job.dataset} are too large to be dense; give "
                "budget.memory in megabytes, or ask for no comparator."
            )
        own = job.plan.where if job.plan.domain is not None else ""
        start = b"".join(leaf.tobytes() for leaf in jax.tree.leaves(game.start))
        key = job.dataset, job.seed, start, own
        if key not in comparators:
            comparators[key] = comparator(experiment, data, game, job.plan.domain)
        against = found = comparators[key]
        clock.lap("comparator")
        if experiment.bound is not None:
            proofs = dict(_proofs(experiment, job, game, played, found))
            clock.lap("certificates")
    confused = confusions(job, data, game, played)
    clock.lap("confusions")
    length = len(game.rounds.outcome)
    made = {
        "configurations": tables.configurations(job, played, length),
        "curves": tables.curves(job, played, against, proofs),
        "certificates": tables.certificates(job, proofs),
        "confusions": confused,
    }
    clock.lap("tables")
    return {**made, "times": tables.times(job, clock.parts, length * len(job.plan.points))}


def _proofs(
    experiment: Experiment, job: Job, game: LabGame, played: list[Played], against: Comparator
) -> Iterator[tuple[int, list[judge.Proof]]]:
    """Certificates by configuration: of the one with the smallest loss, or of all."""
    best, _ = tables.best(job, played)
    for part, seen in zip(job.plan.parts, played, strict=True):
        for i, configuration in enumerate(part.index):
            if experiment.bound == "best" and configuration != best:
                continue
            shown = seen.at, seen.totals[i]
            case = judge.Case(part, i, game, against, job.plan.theorems)
            yield configuration, judge.certificates(case, shown, experiment.shifts)
