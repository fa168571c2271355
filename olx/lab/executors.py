"""Executors: who plays the jobs of a run.

    processes:4              processes on this machine
    dask:tcp://host:8786     the workers of a Dask scheduler
    slurm:PARTITION          jobs of SLURM, by submitit; with parameters of submitit, as in
                             slurm:PARTITION,timeout_min=240,cpus_per_task=8
    local:2                  the same as for SLURM, but on this machine: for rehearsals

From Python any object with a method `submit` will do. A job that is lost with its worker is
submitted again. What a worker has stored is kept, whatever happens to the run.
"""

import contextlib
import functools
import importlib
import multiprocessing
import multiprocessing.connection
import os
import shutil
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from olx._refusal import own_name
from olx.engine.threads import threads_of
from olx.lab import store, worker
from olx.lab.config import ConfigError
from olx.lab.experiment import Experiment, Tree
from olx.lab.jobs import Job
from olx.lab.worker import HeldSignals

TRIES = 3  # how often a job is submitted, if its worker is lost each time
_MANY = 500  # jobs of SLURM at a time; an array holds at most about 1000


class Submitted(Protocol):
    """A job that an executor has; what `submit` of concurrent.futures, Dask and submitit return."""

    def done(self) -> bool: ...
    def result(self) -> Any: ...
    def cancel(self) -> object: ...


class Executor(Protocol):
    def submit(self, function: Callable[..., object], /, *given: object) -> Submitted: ...


class Submitter(NamedTuple):
    """How jobs are given to an executor."""

    submit: Callable[..., Submitted]  # (function, *arguments)
    most: float = float("inf")  # jobs that it has at a time
    pause: float = 0.2  # seconds between two looks at them
    refill: float = float("inf")  # more jobs are submitted when it has at most so many left
    together: Callable[[], contextlib.AbstractContextManager] = contextlib.nullcontext


def check_executor(executor: Executor | str | None) -> None:
    """Refuse what is no executor."""
    legal = ", ".join(form for form, _ in _WORDS.values())
    if isinstance(executor, str):
        kind, _, rest = executor.partition(":")
        if kind not in _WORDS or not rest:
            raise ConfigError(f"executor: there is no {executor!r}; it takes {legal}.")
        if kind in ("processes", "local"):
            _count(executor, rest)
    elif executor is not None and not callable(getattr(executor, "submit", None)):
        raise ConfigError(
            f"executor: give an object with a method `submit`, or one of {legal}, got a "
            f"{type(executor).__name__}."
        )


@contextlib.contextmanager
def open_executor(executor: Executor | str | None, folder: Path) -> Iterator[Submitter | None]:
    """The executor that a word names, or that is given; None if there is none.

    folder: of the result; submitit keeps its files there.
    """
    check_executor(executor)
    if executor is None:
        yield None
    elif isinstance(executor, str):
        kind, _, rest = executor.partition(":")
        with _WORDS[kind][1](executor, rest, folder.resolve() / "submitit") as submitter:
            yield submitter
    else:
        yield Submitter(executor.submit)


@contextlib.contextmanager
def _processes(word: str, rest: str, _: Path) -> Iterator[Submitter]:
    pools = _Pools(_count(word, rest))
    try:
        yield Submitter(pools.submit, pools.count, 0.02)
    except BaseException:
        pools.ask_to_stop()
        raise
    finally:
        pools.close()


class _Pools:
    """Pools of one process each: if one process is lost, the others go on."""

    def __init__(self, count: int):
        self.count = count
        with own_name("executor"):
            cores = max(threads_of(None) // count, 1)
        started = functools.partial(_started, str(cores))
        spawn = multiprocessing.get_context("spawn")
        self._make = lambda: ProcessPoolExecutor(1, spawn, initializer=started)
        self._pools: list[ProcessPoolExecutor] = []
        self._last: list[Future | None] = []

    def submit(self, function: Callable[..., object], *given: object) -> Future:
        """Give a call to a process that has none."""
        free = [i for i, last in enumerate(self._last) if last is None or last.done()]
        if not free:
            self._pools.append(self._make())
            self._last.append(None)
            free = [len(self._pools) - 1]
        i = free[0]
        try:
            self._last[i] = future = self._pools[i].submit(function, *given)
        except BrokenExecutor:
            self._pools[i] = self._make()
            self._last[i] = future = self._pools[i].submit(function, *given)
        return future

    def ask_to_stop(self) -> None:
        """Ask the processes to end after their job, or after its next checkpoint."""
        for process in self._running():
            process.terminate()

    def _running(self) -> list[BaseProcess]:
        found = [getattr(pool, "_processes", None) or {} for pool in self._pools]
        return [process for each in found for process in list(each.values())]

    def close(self) -> None:
        try:
            for pool in self._pools:
                pool.shutdown(cancel_futures=True)
        except BaseException:  # a second signal
            for process in self._running():
                process.kill()
            raise


def _started(threads: str) -> None:
    """Workers ignore Ctrl-C, which the parent process handles. They end when it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("OLX_THREADS", threads)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None  # a process that was spawned has one
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)  # a job is stored whole or not at all


@contextlib.contextmanager
def _dask(word: str, address: str, _: Path) -> Iterator[Submitter]:
    distributed = _needed(word, "distributed")
    try:
        client = distributed.Client(address, timeout=30, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"executor: no scheduler of Dask answers at {address} ({error}); start one with "
            "`dask scheduler`, and give the address that it prints."
        ) from None
    with client:
        yield Submitter(functools.partial(client.submit, pure=False))


@contextlib.contextmanager
def _slurm(word: str, rest: str, folder: Path) -> Iterator[Submitter]:
    partition, *more = rest.split(",")
    options: Tree = {"timeout_min": 60}
    for each in more:
        key, equals, value = each.partition("=")
        if not equals:
            raise ConfigError(f"executor: write {each!r} as a parameter of submitit, key=value.")
        options[key] = int(value) if value.isdigit() else value
    submitit = _needed(word, "submitit")
    try:
        made = submitit.AutoExecutor(folder=folder, cluster="slurm")
        made.update_parameters(slurm_partition=partition, **options)
    except (RuntimeError, NameError, ValueError) as error:
        raise ConfigError(f"executor: {word}: {error}") from None
    yield Submitter(made.submit, _MANY, 5.0, _MANY // 2, made.batch)
    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _local(word: str, rest: str, folder: Path) -> Iterator[Submitter]:
    count = _count(word, rest)
    made = _needed(word, "submitit").AutoExecutor(folder=folder, cluster="local")
    made.update_parameters(timeout_min=24 * 60)
    yield Submitter(made.submit, count)
    shutil.rmtree(folder, ignore_errors=True)


_WORDS = {  # what a word looks like, and who opens it
    "processes": ("processes:4", _processes),
    "dask": ("dask:tcp://host:8786", _dask),
    "slurm": ("slurm:PARTITION", _slurm),
    "local": ("local:2", _local),
}


def _count(word: str, rest: str) -> int:
    if not (rest.isascii() and rest.isdecimal()) or int(rest) < 1:
        raise ConfigError(f"executor: give the number of processes, as in processes:4, got {word}.")
    return int(rest)


def _needed(word: str, package: str) -> Any:  # a module without types
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ConfigError(
            f"executor: {word} needs {package}, which is not installed; pip install 'olx[cluster]'."
        ) from None


class JobFailed(RuntimeError):
    """A job failed on a worker."""


class WorkerLost(OSError):
    """The worker of a job was lost too often."""


def submit_jobs(
    submitter: Submitter,
    experiment: Experiment,
    jobs: Sequence[Job],
    folder: Path,
    signals: HeldSignals,
    say: Callable[[str], None],
) -> Generator[float, None, None]:
    """Have all jobs played; gives the seconds of each as it is done."""
    folder = folder.resolve()
    digest = worker.write_order(folder, experiment, jobs)
    queue, tries = deque(job.name for job in jobs), Counter[str]()
    waiting: dict[str, Submitted] = {}
    environments: list[Tree] = []  # of the workers
    try:
        while queue or waiting:
            if queue and len(waiting) <= submitter.refill:
                with submitter.together():
                    while queue and len(waiting) < submitter.most and signals.by is None:
                        name = queue.popleft()
                        given = str(folder), digest, name, tries[name]
                        waiting[name] = submitter.submit(worker.play, *given)
            done = [name for name, future in waiting.items() if future.done()]
            for name in done:
                outcome = _outcome(name, waiting.pop(name), tries)
                if outcome is None:
                    say(f"the worker of {name} was lost; the job is played again.")
                    queue.append(name)
                    continue
                if outcome.environment and outcome.environment not in environments:
                    environments.append(outcome.environment)
                    store.note_environment(folder, outcome.environment)
                yield outcome.seconds
            signals.stop_here()
            if not done:
                time.sleep(submitter.pause)
    finally:
        for future in waiting.values():
            with contextlib.suppress(Exception):  # the first error is being raised already
                future.cancel()
        worker.remove_order(folder)


def _outcome(name: str, future: Submitted, tries: Counter[str]) -> worker.Outcome | None:
    """What came of a job that is done; None if its worker was lost."""
    try:
        outcome = worker.Outcome(*future.result())
    except Exception as error:  # a job that fails says so in its outcome
        tries[name] += 1
        if tries[name] < TRIES:
            return None
        said = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        raise WorkerLost(
            f"executor: the worker of {name} was lost {TRIES} times, the last time with {said}. "
            "Finished jobs are kept; run the same command again to continue."
        ) from error
    if outcome.refused:
        raise ConfigError(outcome.refused)
    if outcome.failed:
        raise JobFailed(f"executor: {name} failed {outcome.failed}")
    return outcome
