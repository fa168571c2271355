"""Executors: who plays the jobs of a run.

    processes:4              processes on this machine
    dask:tcp://host:8786     the workers of a Dask scheduler
    slurm:PARTITION          jobs of SLURM, by submitit; with parameters of submitit, as in
                             slurm:PARTITION,timeout_min=240,cpus_per_task=8
    local:2                  the same as for SLURM, but on this machine: for rehearsals

From Python any object with a method `submit` will do.
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
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from olx._refusal import own_name
from olx.engine.threads import threads_of
from olx.lab.config import ConfigError

FORMS = {
    "processes": "processes:4",
    "dask": "dask:tcp://host:8786",
    "slurm": "slurm:PARTITION",
    "local": "local:2",
}
_MANY = 500  # jobs of SLURM at a time; an array holds at most about 1000


class Hands(NamedTuple):
    """How jobs are handed to an executor."""

    submit: Callable[..., Any]  # (function, arguments) -> what has `done`, `result` and `cancel`
    most: float = float("inf")  # jobs that it has at a time
    pause: float = 0.2  # seconds between two looks at them
    refill: float = float("inf")  # more jobs are handed out when it has at most so many left
    together: Callable[[], contextlib.AbstractContextManager] = contextlib.nullcontext


def check(executor: Any) -> None:
    """Refuse what is no executor."""
    legal = ", ".join(FORMS.values())
    if isinstance(executor, str):
        kind, _, rest = executor.partition(":")
        if kind not in FORMS or not rest:
            raise ConfigError(f"executor: there is no {executor!r}; it takes {legal}.")
    elif executor is not None and not callable(getattr(executor, "submit", None)):
        raise ConfigError(
            f"executor: give an object with a method `submit`, or one of {legal}, got a "
            f"{type(executor).__name__}."
        )


@contextlib.contextmanager
def opened(executor: Any, folder: Path) -> Iterator[Hands | None]:
    """The executor that a word names, or that is given; None if there is none.

    folder: of the result; submitit keeps its files there.
    """
    check(executor)
    if executor is None:
        yield None
    elif isinstance(executor, str):
        kind, _, rest = executor.partition(":")
        with _OPEN[kind](executor, rest, folder.resolve() / "submitit") as hands:
            yield hands
    else:
        yield Hands(executor.submit)


@contextlib.contextmanager
def _processes(word: str, rest: str, _: Path) -> Iterator[Hands]:
    pools = _Pools(_count(word, rest))
    try:
        yield Hands(pools.submit, pools.count, 0.02)
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

    def submit(self, function: Callable[..., Any], *given: Any) -> Future:
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

    def _running(self) -> list[Any]:
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
    """A signal of the keyboard is for the process that hands out the jobs; a worker ends with it,
    also if that process is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("OLX_THREADS", threads)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None  # a process that was spawned has one
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)  # a job is stored whole or not at all


@contextlib.contextmanager
def _dask(word: str, address: str, _: Path) -> Iterator[Hands]:
    distributed = _needed(word, "distributed")
    try:
        client = distributed.Client(address, timeout=30, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"executor: no scheduler of Dask answers at {address} ({error}); start one with "
            "`dask scheduler`, and give the address that it prints."
        ) from None
    with client:
        yield Hands(functools.partial(client.submit, pure=False))


@contextlib.contextmanager
def _slurm(word: str, rest: str, folder: Path) -> Iterator[Hands]:
    partition, *more = rest.split(",")
    options: dict[str, Any] = {"timeout_min": 60}
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
    yield Hands(made.submit, _MANY, 5.0, _MANY // 2, made.batch)
    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _local(word: str, rest: str, folder: Path) -> Iterator[Hands]:
    count = _count(word, rest)
    made = _needed(word, "submitit").AutoExecutor(folder=folder, cluster="local")
    made.update_parameters(timeout_min=24 * 60)
    yield Hands(made.submit, count)
    shutil.rmtree(folder, ignore_errors=True)


_OPEN = {"processes": _processes, "dask": _dask, "slurm": _slurm, "local": _local}


def _count(word: str, rest: str) -> int:
    if not (rest.isascii() and rest.isdecimal()) or int(rest) < 1:
        raise ConfigError(f"executor: give the number of processes, as in processes:4, got {word}.")
    return int(rest)


def _needed(word: str, package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ConfigError(
            f"executor: {word} needs {package}, which is not installed; pip install 'olx[cluster]'."
        ) from None
