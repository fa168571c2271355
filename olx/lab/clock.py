"""Where the time of a run goes: parts that add up to the whole."""

import json
import time
from pathlib import Path
from typing import Any

import jax

from olx import _archive as archive


class Clock:
    """Adds the time since its last lap to a part, so that no second is counted twice or lost."""

    def __init__(self) -> None:
        self._last, self._compiled = time.perf_counter(), _compiling.seconds
        self.parts: dict[str, float] = {}

    def lap(self, part: str, compiling: str = "") -> float:
        """Add the time since the last lap to `part`; that of the compiler to `compiling`.

        It returns the time since the last lap.
        """
        now, compiled = time.perf_counter(), _compiling.seconds
        passed, of_which = now - self._last, 0.0
        if compiling:  # nested programs report their time twice
            of_which = min(compiled - self._compiled, passed)
            self.parts[compiling] = self.parts.get(compiling, 0.0) + of_which
        self.parts[part] = self.parts.get(part, 0.0) + passed - of_which
        self._last, self._compiled = now, compiled
        return passed


def outside(folder: Path) -> float:
    """The seconds of all plays of a result that no job counts, such as preparing and storing."""
    place = folder / "outside.json"
    return float(json.loads(place.read_text())["seconds"]) if place.is_file() else 0.0


def add_outside(folder: Path, seconds: float) -> None:
    """Count seconds that belong to no job."""
    archive.write_json(folder / "outside.json", {"seconds": outside(folder) + seconds})


class _Compiling:
    """Adds up the seconds that compilation takes."""

    def __init__(self) -> None:
        self.seconds = 0.0
        jax.monitoring.register_event_duration_secs_listener(self._listen)

    def _listen(self, event: str, duration_secs: float, **_: Any) -> None:
        if event.startswith("/jax/core/compile/"):
            self.seconds += duration_secs


_compiling = _Compiling()
