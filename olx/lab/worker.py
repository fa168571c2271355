"""What a worker of an executor does: play one job, and store it in the folder of the result.

The experiment is in a file in that folder, so that a worker needs its path and the name of a job.
A worker that sees other rows, another version of olx or other factories refuses the job.

A job is stopped at a point where no work is lost. If a signal raises an exception while native code
of JAX is on the stack, that code aborts, or crashes when the interpreter ends. So SIGINT and
SIGTERM are noted, and take effect after the job or after its next checkpoint.
"""

import contextlib
import functools
import hashlib
import os
import pickle
import platform
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import jax

from olx import _archive as archive
from olx._refusal import in_words
from olx.engine.outputs import StopRequest
from olx.lab import store, user_factories
from olx.lab.config import ConfigError
from olx.lab.experiment import Experiment, Tree
from olx.lab.fingerprint import Fingerprint
from olx.lab.jobs import Job
from olx.lab.play import Comparators, play_job
from olx.lab.prepare import DataCache, Learners, jobs_on

_FILE = "order.pickle"
_SAME = {"rows": "other rows", "olx": "another version of olx", "factories": "other factories"}


class WorkOrder(NamedTuple):
    """All that the workers of a run must know."""

    experiment: Experiment
    jobs: dict[str, Fingerprint]  # by name
    paths: list[str]  # where Python looks for modules


class Outcome(NamedTuple):
    """What came of a job."""

    seconds: float = 0.0
    refused: str = ""  # the message, if the experiment is wrong
    failed: str = ""  # where and why, if it failed otherwise
    environment: Tree = {}  # noqa: RUF012 (never changed)


def write_order(folder: Path, experiment: Experiment, jobs: Sequence[Job]) -> str:
    """Write what the workers must know into the folder of the result; gives its digest."""
    wanted = {job.name: job.fingerprint for job in jobs}
    content = _pickle(WorkOrder(experiment, wanted, [path or os.getcwd() for path in sys.path]))
    archive.write(folder / _FILE, [content])
    return hashlib.sha256(content).hexdigest()


def remove_order(folder: Path) -> None:
    (folder / _FILE).unlink(missing_ok=True)


def play(folder: str, digest: str, name: str, attempt: int) -> Outcome:
    """Play the job `name` of the result in `folder`, and store it there.

    digest: of the file that `write_order` wrote.
    attempt: how often the job was lost before. Some executors do nothing for a call with the same
        arguments.
    """
    place = Path(folder)
    try:
        with held_signals():
            if (place / "jobs" / name).is_dir():
                return Outcome()
            state = _state(place, digest)
            experiment = state.order.experiment
            with jax.enable_x64(experiment.precision == "float64"):
                job = state.job(name)
                saves = place / "checkpoints"
                made = play_job(experiment, job, state.cache, saves, state.comparators)
            store.put(place, name, made, job.fingerprint)
            seconds = sum(made["times"].column("seconds").to_pylist())
            return Outcome(seconds, environment=_environment())
    except ConfigError as error:
        return Outcome(refused=str(error))
    except BlockingIOError:  # a worker that was thought to be lost still plays it
        raise
    except Exception as error:
        said = f"on {platform.node()}: {in_words(error)}"
        return Outcome(failed=f"{said}\n{traceback.format_exc()}")


class _WorkerState:
    """What a worker keeps from job to job."""

    def __init__(self, order: WorkOrder, digest: str):
        self.order, self.digest = order, digest
        self.cache = DataCache(order.experiment)
        self.comparators: Comparators = {}
        self._learners: Learners = {}
        self._jobs: dict[str, list[Job]] = {}  # by data set

    def job(self, name: str) -> Job:
        wanted = self.order.jobs[name]
        dataset = wanted["dataset"]
        if dataset not in self._jobs:
            experiment = self.order.experiment
            entry = next(one for one in experiment.data if (one.label or one.name) == dataset)
            self._jobs[dataset], _ = jobs_on(experiment, self.cache, entry, self._learners)
        key = wanted["learner"], wanted["seed"]
        job = next(job for job in self._jobs[dataset] if (job.learner, job.seed) == key)
        for word, words in _SAME.items():
            if job.fingerprint[word] != wanted[word]:
                raise ConfigError(
                    f"{platform.node()} sees {words} for {job.learner} on {job.dataset}: "
                    f"{job.fingerprint[word]}, not {wanted[word]}; give all workers the same."
                )
        return job._replace(fingerprint=wanted)


_environment = functools.cache(store.environment)
_here = threading.local()  # the threads of a worker of Dask play jobs side by side


def _state(folder: Path, digest: str) -> _WorkerState:
    state = getattr(_here, "state", None)
    if state is None or state.digest != digest:
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
        user_factories.look_in(*map(Path, order.paths))
        state = _here.state = _WorkerState(order, digest)
    return state


def _pickle(order: WorkOrder) -> bytes:
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


class HeldSignals(StopRequest):
    """Notes a signal; a second signal has its usual effect at once."""

    def __init__(self) -> None:
        super().__init__()
        self._before: dict[int, Any] = {}

    def take(self, number: int, frame: FrameType | None = None) -> None:
        if self.by is not None:
            self.release()
            signal.raise_signal(number)
            return
        self.by = signal.Signals(number)
        os.write(2, b"olx: stopping at the next save; a second signal stops at once.\n")

    def hold(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if handler not in (signal.SIG_IGN, None):
                self._before[number] = handler
                signal.signal(number, self.take)

    def release(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def stop_here(self) -> None:
        """Act on a signal that was noted; called where no work is lost."""
        if self.by is not None:
            raise self.error()


@contextlib.contextmanager
def held_signals() -> Iterator[HeldSignals]:
    """Hold signals inside the block; does nothing outside the main thread."""
    asked = HeldSignals()
    if threading.current_thread() is threading.main_thread():
        asked.hold()
    try:
        yield asked
    finally:
        asked.release()
