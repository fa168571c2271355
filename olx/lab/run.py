"""Run an experiment; each job is stored when it is done.

A job plays all configurations of a learner as one sweep. After an interruption run the same
experiment again: finished jobs are not repeated, and a long job continues from its last checkpoint.
After a change of the data, of the config or of a factory outside the library, run it again as well:
it says what changed, and plays the jobs that depend on it.
"""

import contextlib
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import jax
from tqdm import tqdm

from olx._refusal import own_name
from olx._terminal import as_line, say_aside
from olx.engine import checkpoint
from olx.lab import models, stopping, store
from olx.lab.clock import Clock, add_outside
from olx.lab.config import ConfigError
from olx.lab.environment import environment
from olx.lab.executors import check, opened
from olx.lab.experiment import Experiment
from olx.lab.handing import hand_out
from olx.lab.jobs import Job, Shelf, prepare
from olx.lab.one_job import play_job
from olx.lab.opening import begin, refuse_foreign


def run(
    experiment: Experiment,
    out: str | os.PathLike,
    progress: bool | None = None,
    *,
    force: bool = False,
    wait: bool = True,
    executor: Any = None,
) -> store.Result:
    """Play an experiment, store it in the folder `out`, and read the result.

    progress: whether to show a progress bar; None shows it on a terminal only.
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
    check(executor)
    _refuse_processes()
    with jax.enable_x64(experiment.precision == "float64"):
        refuse_foreign(folder, force)
        shelf = Shelf(experiment)
        jobs, digests = prepare(experiment, shelf)
        with contextlib.ExitStack() as stack:
            with own_name("lab"):
                lock = checkpoint.lock_folder(folder, "result", _say_waiting if wait else None)
                waited = stack.enter_context(lock)
            signals = stack.enter_context(stopping.held())
            if waited:  # the data may have changed since
                shelf = Shelf(experiment)
                jobs, digests = prepare(experiment, shelf)
            stories = [job.story for job in jobs]
            for line in begin(folder, experiment.text(), stories, digests, environment(), force):
                _say(line)
            done = store.finished(folder)
            todo = [job for job in jobs if job.name not in done]
            played = 0.0
            with (
                opened(executor, folder) as hands,
                _bar(progress, len(jobs), len(jobs) - len(todo)) as bar,
            ):
                if hands is None:
                    each = _one_by_one(experiment, todo, shelf, folder, bar)
                else:
                    each = hand_out(hands, experiment, todo, folder, signals, _say)
                with contextlib.closing(each):
                    for seconds in each:
                        played += seconds
                        bar.update()
                        signals.stop_here()
            if todo or not store.is_finished(folder):
                store.finish(folder, [job.name for job in jobs])
            models.keep(folder, experiment, jobs, shelf, _say)
            if todo:
                add_outside(folder, max(clock.lap("run") - played, 0.0))  # jobs may be side by side
    return store.read(folder)


def _say(line: str) -> None:
    say_aside(f"olx: {line}")


def _say_waiting(who: str) -> None:
    _say(f"{who}; waiting until it ends.")


def _bar(progress: bool | None, jobs: int, done: int) -> Any:
    hidden = None if progress is None else not progress
    return tqdm(total=jobs, initial=done, unit="job", disable=hidden)


def _one_by_one(
    experiment: Experiment, todo: list[Job], shelf: Shelf, folder: Path, bar: Any
) -> Generator[float, None, None]:
    """Play the jobs here; gives the seconds of each."""
    comparators: dict[Any, Any] = {}
    for job in todo:
        bar.set_postfix_str(as_line(f"{job.dataset}, {job.plan.label}"))
        made = play_job(experiment, job, shelf, folder / "checkpoints", comparators)
        store.put(folder, job.name, made, job.story)
        yield sum(made["times"].column("seconds").to_pylist())


def _refuse_processes() -> None:
    if jax.process_count() > 1:
        raise ConfigError(
            f"JAX has {jax.process_count()} processes here, and each would play all jobs into the "
            "same folder; leave out jax.distributed.initialize, and give an executor, such as "
            "slurm:PARTITION."
        )
