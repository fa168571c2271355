"""Run an experiment; each job is stored when it is done.

A job plays all configurations of a learner as one sweep. After an interruption run the same
experiment again: finished jobs are not repeated, and a long job continues from its last checkpoint.
After a change of the data, of the config or of a factory outside the library, run it again as well:
it says what changed, and plays the jobs that depend on it.
"""

import contextlib
import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import jax

from olx import _archive as archive
from olx._refusal import own_name
from olx._terminal import as_line, progress_bar, say_aside
from olx.engine import checkpoint
from olx.lab import models, store, worker
from olx.lab.config import ConfigError
from olx.lab.data.column_notes import Note, as_lines
from olx.lab.executors import Executor, check_executor, open_executor, submit_jobs
from olx.lab.experiment import Experiment
from olx.lab.jobs import Job
from olx.lab.play import Clock, Comparators, add_seconds_outside_jobs, play_job
from olx.lab.prepare import DataCache, prepare
from olx.lab.store import check_folder, environment, open_result


def run(
    experiment: Experiment,
    out: str | os.PathLike,
    progress: bool | None = None,
    *,
    force: bool = False,
    wait: bool = True,
    executor: Executor | str | None = None,
) -> store.Result:
    """Play an experiment, store it in the folder `out`, and read the result.

    progress: whether to show a progress bar; None shows it on a terminal, and elsewhere a
        line each minute.
    force: play all jobs, also those that are stored and have not changed.
    wait: whether to wait while another run uses the folder; False refuses.
    executor: who plays the jobs: anything with a method `submit`, as those of `concurrent.futures`,
        a `Client` of Dask, or an executor of submitit; or a word such as "processes:4". Its workers
        must see the folder `out` and the data. None plays them here, one after the other.

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
    check_executor(executor)
    _refuse_processes()
    with jax.enable_x64(experiment.precision == "float64"):
        check_folder(folder, force)
        cache = DataCache(experiment)
        jobs, digests = prepare(experiment, cache)
        with contextlib.ExitStack() as stack:
            with own_name("lab"):
                lock = checkpoint.lock_folder(folder, "result", _say_waiting if wait else None)
                waited = stack.enter_context(lock)
            signals = stack.enter_context(worker.held_signals())
            if waited:  # the data may have changed since
                cache = DataCache(experiment)
                jobs, digests = prepare(experiment, cache)
            fingerprints = [job.fingerprint for job in jobs]
            opened = folder, experiment.text(), fingerprints, digests, environment(), force
            for line in open_result(*opened):
                _say(line)
            for line in _column_lines(folder, cache.notes):
                _say(line)
            done = store.finished_jobs(folder)
            todo = [job for job in jobs if job.name not in done]
            played = 0.0
            with (
                open_executor(executor, folder) as submitter,
                progress_bar(progress, len(jobs), len(jobs) - len(todo), " jobs") as bar,
            ):
                if submitter is None:
                    each = _one_by_one(experiment, todo, cache, folder, bar)
                else:
                    each = submit_jobs(submitter, experiment, todo, folder, signals, _say)
                with contextlib.closing(each):
                    for seconds in each:
                        played += seconds
                        bar.update()
                        signals.stop_here()
            if todo or not store.is_finished(folder):
                store.finish(folder, [job.name for job in jobs])
            models.keep(folder, experiment, jobs, cache, _say)
            if todo:
                seconds = max(clock.lap("run") - played, 0.0)  # jobs may be side by side
                add_seconds_outside_jobs(folder, seconds)
    return store.read(folder)


def _column_lines(folder: Path, notes: dict[str, tuple[Note, ...]]) -> list[str]:
    """Stores how columns were read, for the report; gives the lines for those that are new."""
    place = folder / "columns.json"
    known = json.loads(place.read_text()) if place.is_file() else {}
    now = {name: [note._asdict() for note in each] for name, each in notes.items()}
    if now != known:
        archive.write_json(place, now)
    new = [name for name in now if now[name] != known.get(name)]
    return [line for name in new for line in as_lines(name, notes[name])]


def _say(line: str) -> None:
    say_aside(f"olx: {line}")


def _say_waiting(who: str) -> None:
    _say(f"{who}; waiting until it ends.")


def _one_by_one(
    experiment: Experiment, todo: list[Job], cache: DataCache, folder: Path, bar: Any
) -> Generator[float, None, None]:
    """Play the jobs here; gives the seconds of each."""
    comparators: Comparators = {}
    for job in todo:
        bar.set_postfix_str(as_line(f"{job.dataset}, {job.learner}"))
        made = play_job(experiment, job, cache, folder / "checkpoints", comparators)
        store.put(folder, job.name, made, job.fingerprint)
        yield sum(made["times"].column("seconds").to_pylist())


def _refuse_processes() -> None:
    if jax.process_count() > 1:
        raise ConfigError(
            f"JAX has {jax.process_count()} processes here, and each would play all jobs into the "
            "same folder; leave out jax.distributed.initialize, and give an executor, such as "
            "slurm:PARTITION."
        )
