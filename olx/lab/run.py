"""Run an experiment; each job is stored when it is done.

A job plays all configurations of a learner as one sweep. After an interruption run the same
experiment again: finished jobs are not repeated, and a long job continues from its last checkpoint.
After a change of the data, of the config or of a factory outside the library, run it again as well:
it says what changed, and plays the jobs that depend on it.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import pyarrow as pa
from tqdm import tqdm

from olx.engine import lock
from olx.lab import judge, models, stopping, store, tables
from olx.lab.clock import Clock, add_outside
from olx.lab.comparators import Comparator, comparator
from olx.lab.config import ConfigError
from olx.lab.confusions import confusions
from olx.lab.environment import environment
from olx.lab.experiment import Experiment
from olx.lab.jobs import Job, Shelf, game_of, prepare
from olx.lab.opening import begin, refuse_foreign
from olx.lab.sweeps import Game, Limits, Played, play
from olx.streams.sparse_rows import SparseRows


def run(
    experiment: Experiment,
    out: str | os.PathLike,
    progress: bool | None = None,
    *,
    force: bool = False,
    wait: bool = True,
) -> store.Result:
    """Play an experiment, store it in the folder `out`, and read the result.

    progress: whether to show a progress bar; None shows it on a terminal only.
    force: play all jobs, also those that are stored and have not changed.
    wait: whether to wait while another run uses the folder; False refuses.

    SIGINT and SIGTERM take effect after the current job, or after its next checkpoint.

    >>> import tempfile
    >>> from olx.lab.config import parse
    >>> learner = {"name": "ogd", "linear": True, "grid": {"eta": [0.01, 0.1]}}
    >>> data = {"name": "stream:linear_regression", "arguments": {"rounds": 20, "features": 2}}
    >>> folder = tempfile.mkdtemp() + "/result"
    >>> result = run(parse({"baseline": False, "data": [data], "learners": [learner]}), folder)
    >>> result.configurations.column("h.eta").to_pylist()
    [0.01, 0.1]
    """
    folder, clock = Path(out), Clock()
    with jax.enable_x64(experiment.precision == "float64"):
        refuse_foreign(folder, force)
        shelf = Shelf(experiment)
        jobs, digests = prepare(experiment, shelf)
        with (
            lock.held("lab", folder, "result", _say_waiting if wait else None) as waited,
            stopping.held() as signals,
        ):
            if waited:  # the data may have changed since
                shelf = Shelf(experiment)
                jobs, digests = prepare(experiment, shelf)
            stories = [job.story for job in jobs]
            for line in begin(folder, experiment.text(), stories, digests, environment(), force):
                _say(line)
            done = store.finished(folder)
            todo = [job for job in jobs if job.name not in done]
            comparators: dict[Any, Comparator] = {}
            played = 0.0
            with _bar(progress, len(jobs), len(jobs) - len(todo)) as bar:
                for job in todo:
                    bar.set_postfix_str(f"{job.dataset}, {job.plan.label}")
                    made = _play(experiment, job, shelf, folder / "checkpoints", comparators)
                    store.put(folder, job.name, made, job.story)
                    played += sum(made["times"].column("seconds").to_pylist())
                    bar.update()
                    signals.stop_here()
            if todo or not store.is_finished(folder):
                store.finish(folder, [job.name for job in jobs])
            models.keep(folder, experiment, jobs, shelf, _say)
            if todo:
                add_outside(folder, clock.lap("run") - played)
    return store.read(folder)


def _say(line: str) -> None:
    print(f"olx: {line}", file=sys.stderr)


def _say_waiting(who: str) -> None:
    _say(f"{who}; waiting until it ends.")


def _bar(progress: bool | None, jobs: int, done: int) -> Any:
    hidden = None if progress is None else not progress
    return tqdm(total=jobs, initial=done, unit="job", disable=hidden)


def _play(
    experiment: Experiment, job: Job, shelf: Shelf, saves: Path, comparators: dict[Any, Any]
) -> dict[str, pa.Table]:
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
    experiment: Experiment, job: Job, game: Game, played: list[Played], against: Comparator
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
