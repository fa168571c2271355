"""What a worker of an executor does: play one job, and store it in the folder of the result.

The experiment is in a file in that folder, so that a worker needs its path and the name of a job.
A worker that sees other rows, another version of olx or other factories refuses the job.
"""

import functools
import hashlib
import os
import pickle
import platform
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

from olx import _archive as archive
from olx._refusal import in_words
from olx.lab import outside, stopping, store
from olx.lab.config import ConfigError
from olx.lab.environment import environment
from olx.lab.experiment import Experiment
from olx.lab.jobs import Job, Plans, Shelf, jobs_on
from olx.lab.one_job import play_job
from olx.lab.stories import Story

_FILE = "order.pickle"
_SAME = {"rows": "other rows", "olx": "another version of olx", "factories": "other factories"}


class Wanted(NamedTuple):
    """Which job is meant."""

    entry: int  # the number of its data set
    label: str  # of its learner
    seed: int
    story: Story


class Order(NamedTuple):
    """All that the workers of a run must know."""

    experiment: Experiment
    jobs: dict[str, Wanted]
    paths: list[str]  # where Python looks for modules


class Outcome(NamedTuple):
    """What came of a job."""

    seconds: float = 0.0
    refused: str = ""  # the message, if the experiment is wrong
    failed: str = ""  # where and why, if it failed otherwise
    environment: dict[str, Any] = {}  # noqa: RUF012 (never changed)


def write(folder: Path, experiment: Experiment, jobs: Sequence[Job]) -> str:
    """Write what the workers must know into the folder of the result; gives its digest."""
    entries = {id(entry): i for i, entry in enumerate(experiment.data)}
    wanted = {
        job.name: Wanted(entries[id(job.data)], job.plan.label, job.seed, job.story) for job in jobs
    }
    content = _pickled(Order(experiment, wanted, [path or os.getcwd() for path in sys.path]))
    archive.write(folder / _FILE, [content])
    return hashlib.sha256(content).hexdigest()


def remove(folder: Path) -> None:
    (folder / _FILE).unlink(missing_ok=True)


def play(folder: str, digest: str, name: str, attempt: int) -> Outcome:
    """Play the job `name` of the result in `folder`, and store it there.

    digest: of the file that `write` wrote.
    attempt: how often the job was lost before. Some executors do nothing for a call with the same
        arguments.
    """
    place = Path(folder)
    try:
        with stopping.held():
            if (place / "jobs" / name).is_dir():
                return Outcome()
            bench = _bench(place, digest)
            experiment = bench.order.experiment
            with jax.enable_x64(experiment.precision == "float64"):
                job = bench.job(name)
                saves = place / "checkpoints"
                made = play_job(experiment, job, bench.shelf, saves, bench.comparators)
            store.put(place, name, made, job.story)
            seconds = sum(made["times"].column("seconds").to_pylist())
            return Outcome(seconds, environment=_environment())
    except ConfigError as error:
        return Outcome(refused=str(error))
    except BlockingIOError:  # a worker that was thought to be lost still plays it
        raise
    except Exception as error:
        said = f"on {platform.node()}: {in_words(error)}"
        return Outcome(failed=f"{said}\n{traceback.format_exc()}")


class _Bench:
    """What a worker keeps from job to job."""

    def __init__(self, order: Order, digest: str):
        self.order, self.digest = order, digest
        self.shelf, self.comparators = Shelf(order.experiment), {}
        self._plans: Plans = {}
        self._jobs: dict[int, list[Job]] = {}  # by data set

    def job(self, name: str) -> Job:
        wanted = self.order.jobs[name]
        entry = self.order.experiment.data[wanted.entry]
        if wanted.entry not in self._jobs:
            found = jobs_on(self.order.experiment, self.shelf, entry, self._plans)
            self._jobs[wanted.entry] = found[0]
        mine = lambda job: (job.plan.label, job.seed) == (wanted.label, wanted.seed)
        job = next(filter(mine, self._jobs[wanted.entry]))
        for key, words in _SAME.items():
            if job.story[key] != wanted.story[key]:
                raise ConfigError(
                    f"{platform.node()} sees {words} for {job.plan.label} on {job.dataset}: "
                    f"{job.story[key]}, not {wanted.story[key]}; give all workers the same."
                )
        return job._replace(name=name, story=wanted.story)


_environment = functools.cache(environment)
_here = threading.local()  # the threads of a worker of Dask play jobs side by side


def _bench(folder: Path, digest: str) -> _Bench:
    bench = getattr(_here, "bench", None)
    if bench is None or bench.digest != digest:
        try:
            content = (folder / _FILE).read_bytes()
        except OSError as error:
            raise ConfigError(
                f"{platform.node()} cannot read {folder / _FILE} ({error.strerror}); the folder of "
                "the result must be on a file system that all workers share."
            ) from None
        if hashlib.sha256(content).hexdigest() != digest:
            raise ConfigError(f"{folder / _FILE} is of another run; run the config again.")
        order = pickle.loads(content)
        outside.look_in(*map(Path, order.paths))
        bench = _here.bench = _Bench(order, digest)
    return bench


def _pickled(order: Order) -> bytes:
    """The bytes of an order; functions without a module need cloudpickle."""
    try:
        return pickle.dumps(order)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        reason, remedy = error, "put its functions into a module, or pip install cloudpickle"
    try:
        import cloudpickle

        return cloudpickle.dumps(order)
    except ImportError:
        pass
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        reason, remedy = error, "put its functions into a module"
    raise ConfigError(
        f"executor: the experiment cannot be sent to other processes ({reason}); {remedy}."
    )
