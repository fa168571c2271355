"""Round-robin timing: in every round each contestant runs once, and medians are compared.

Machines slow down and speed up. Contestants that take turns meet the same weather, so the ratio of
their medians is worth quoting where a time alone is not.
"""

import contextlib
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

PATIENCE = 4.0  # seconds: who takes longer in the warm-up runs once more and no further


class Contestant(NamedTuple):
    name: str
    prepare: Callable[[], Callable[[], Any]]  # not timed; gives the call to be timed, which blocks
    work: int  # examples in one call


class Timing(NamedTuple):
    name: str
    work: int
    seconds: tuple[float, ...] = ()
    busy: tuple[float, ...] = ()  # processor seconds of the whole process in the same calls
    failure: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def nanoseconds(self) -> float | None:
        """A unit of work, in the median round; None for who failed."""
        return self.median / self.work * 1e9 if self.seconds else None

    @property
    def least(self) -> float | None:
        """The same in the fastest round."""
        return min(self.seconds) / self.work * 1e9 if self.seconds else None

    @property
    def cores(self) -> float | None:
        return statistics.median(self.busy) / self.median if self.seconds else None

    def as_dict(self) -> dict[str, Any]:
        own = {"nanoseconds": self.nanoseconds, "least": self.least, "cores": self.cores}
        return {**self._asdict(), **own}


def race(contestants: Sequence[Contestant], rounds: int) -> dict[str, Timing]:
    """Time all contestants; who fails is reported with the reason, not left out."""
    timings, calls, slow = {}, {}, set()
    for name, prepare, work in contestants:
        timings[name] = Timing(name, work)
        try:
            with _quiet():
                call = prepare()
                call()  # the first call compiles
                calls[name] = call
                if _timed(call)[0] > PATIENCE:
                    slow.add(name)
        except Exception as error:
            calls.pop(name, None)
            timings[name] = timings[name]._replace(failure=_reason(error))
            print(f"  {name}: {timings[name].failure}", flush=True)
    for number in range(rounds):
        for name, call in calls.items():
            if number and name in slow:
                continue
            with _quiet():
                wall, busy = _timed(call)
            seen = timings[name]
            timings[name] = seen._replace(seconds=(*seen.seconds, wall), busy=(*seen.busy, busy))
    return timings


def _timed(call: Callable[[], Any]) -> tuple[float, float]:
    busy, start = time.process_time(), time.perf_counter()
    call()
    return time.perf_counter() - start, time.process_time() - busy


@contextlib.contextmanager
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers announce deprecations at every call
        yield


def _reason(error: Exception) -> str:
    if isinstance(error, ImportError):
        return f"not installed ({error})"
    lines = str(error).splitlines() or [""]
    return f"failed: {type(error).__name__}: {lines[0][:120]}"
