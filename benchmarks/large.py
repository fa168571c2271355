"""Large problems: streams that do not fit in memory, many columns, many configurations.

Every case is played by a process of its own, which says how much memory it had at most: the peak of
its resident memory, with the pages of mapped files, the interpreter and JAX. The file of a stream
is sparse: it has its full size, and all of it is read, but it takes no space on the disk.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from benchmarks import large_cases, targets
from benchmarks.large_cases import Line
from benchmarks.report import Group, Row
from benchmarks.settings import Settings


def measure(settings: Settings) -> Group:
    stream = {"size": 200_000_000 if settings.quick else 20_000_000_000}
    rounds = settings.size(10_000, 640)
    cases: list[tuple[Callable, dict[str, Any]]] = [
        (large_cases.mapped, stream),
        (large_cases.generated, stream),
        (large_cases.affine, {"size": stream["size"] // 10}),
        (large_cases.columns, {"rows": settings.size(100_000, 2000)}),
        (large_cases.configurations, {"rounds": rounds // 10}),
        (large_cases.configurations, {"rounds": rounds}),
    ]
    rows, timings = [], {}
    for play, given in cases:
        print(f"  {play.__name__} {given}", flush=True)
        lines, failure = _apart(play.__name__, given, settings.folder)
        timings[f"{play.__name__} {given}"] = [line._asdict() for line in lines]
        rows += map(_row, lines)
        if failure:
            rows.append(Row(play.__name__, "", None, targets.at_most(targets.LARGE), note=failure))
    return Group("Large problems", rows, timings)


def _apart(name: str, given: dict[str, Any], folder: str) -> tuple[list[Line], str]:
    """The lines of a case that is played by a process of its own, and why it failed."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        words = [sys.executable, "-m", large_cases.__name__, name]
        words.append(json.dumps({**given, "folder": own}))
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        return [], (done.stderr.splitlines() or ["failed"])[-1]
    return [Line(**line) for line in json.loads(done.stdout.splitlines()[-1])], ""


def _row(line: Line) -> Row:
    target = targets.at_most(line.limit)
    times = {"theirs": line.theirs, "ours": line.ours}
    return Row(line.case, line.against, line.value, target, line.unit, **times)
