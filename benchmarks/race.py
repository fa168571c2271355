"""Round-robin timing: in every round each contestant runs once, and medians are compared.

The speed of a machine varies over time. Contestants that take turns meet the same variations, so
the ratio of their medians is more reliable than a single time.
"""

import contextlib
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

PATIENCE = 4.0  # seconds: a contestant slower in the warm-up is timed once only


class Contestant(NamedTuple):
    name: str
    prepare: Callable[[], Callable[[], Any]]  # not timed; returns the blocking call to be timed
    work: int  # the number of examples per call


class Timing(NamedTuple):
    name: str
    work: int
    seconds: tuple[float, ...] = ()
    busy: tuple[float, ...] = ()  # CPU seconds of the process in the same calls
    failure: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def nanoseconds(self) -> float | None:
        """Nanoseconds per unit of work, in the median round; None if it failed."""
        return self.median / self.work * 1e9 if self.seconds else None

    @property
    def least(self) -> float | None:
        """Nanoseconds per unit of work, in the fastest round."""
        return min(self.seconds) / self.work * 1e9 if self.seconds else None

    @property
    def cores(self) -> float | None:
        return statistics.median(self.busy) / self.median if self.seconds else None

    def as_dict(self) -> dict[str, Any]:
        own = {"nanoseconds": self.nanoseconds, "least": self.least, "cores": self.cores}
        return {**self._asdict(), **own}


def kept_race(
    case: str, contestants: Sequence[Contestant], rounds: int, timings: dict[str, Any]
) -> dict[str, Timing]:
    """Print the case, race, and put the timings into `timings`."""
    print(f"  {case}", flush=True)
    seen = race(contestants, rounds)
    timings[case] = [timing.as_dict() for timing in seen.values()]
    return seen


def race(contestants: Sequence[Contestant], rounds: int) -> dict[str, Timing]:
    """Time all contestants; a failure is reported with its reason."""
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
        warnings.simplefilter("ignore")  # other libraries warn at every call
        yield


def _reason(error: Exception) -> str:
    if isinstance(error, ImportError):
        return f"not installed ({error})"
    lines = str(error).splitlines() or [""]
    return f"failed: {type(error).__name__}: {lines[0][:120]}"
