"""How a group of benchmarks is measured and printed.

In every round each contestant runs once, and medians are compared. The speed of a machine varies
over time. Contestants that take turns meet the same variations, so the ratio of their medians is
more reliable than a single time. Results go to the terminal, to JSON and to Markdown.
"""

import contextlib
import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from benchmarks import THREADS

PATIENCE = 4.0  # seconds that all turns of a contestant may take; it has at least one
PACKAGES = ("olx", "jax", "numpy", "scikit-learn", "vowpalwabbit", "river", "numba", "scipy")
HELD = re.compile("from (numpy|csr)", re.IGNORECASE)  # in the name of a case
HEADINGS = ("case", "against", "theirs", "olx", "cores", "ratio", "best", "target", "")


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


class Row(NamedTuple):
    """One line of the table, and its verdict."""

    case: str
    against: str
    value: float | None  # compared with the target; a ratio unless `unit` says otherwise
    least: float | None = None  # the target is met by a value of at least this,
    most: float | None = None  # or of at most this
    unit: str = ""
    theirs: float | None = None  # nanoseconds
    ours: float | None = None
    cores: float | None = None  # busy cores of olx
    best: float | None = None  # the ratio of the fastest rounds, least disturbed by other work
    note: str = ""

    @property
    def target(self) -> str:
        return (
            f"<= {self.most:g}"
            if self.least is None and self.most is not None
            else ("" if self.least is None else f">= {self.least:g}")
        )

    @property
    def verdict(self) -> str:
        if self.value is None:
            return self.note or "failed"
        if not self.target:
            return self.note
        met = self.value <= self.most if self.least is None else self.value >= self.least
        return "; ".join(filter(None, ("met" if met else "missed", self.note)))


class Group:
    """The races of a group: its rows for the table, and all its times by case."""

    def __init__(self, title: str, rounds: int = 5, quick: bool = False, folder: str = "."):
        """rounds: of every race. quick: small sizes. folder: for files to be thrown away."""
        self.title, self.rounds, self.quick, self.folder = title, rounds, quick, folder
        self.seconds = 0.0  # that the whole group took
        self.rows: list[Row] = []
        self.timings: dict[str, Any] = {}

    def size(self, full: int, quick: int) -> int:
        return min(full, quick) if self.quick else full

    def race(
        self, case: str, contestants: Sequence[Contestant], rounds: int | None = None
    ) -> dict[str, Timing]:
        """Print the case, time all contestants and keep the times."""
        print(f"  {case}", flush=True)
        seen = race(contestants, rounds or self.rounds)
        self.timings[case] = [timing.as_dict() for timing in seen.values()]
        return seen

    def note(self, case: str, against: str, value: float | None, **more: Any) -> None:
        """Add a row that is no ratio of times."""
        self.rows.append(Row(case, against, value, **more))

    def compare(
        self,
        case: str,
        ours: Timing,
        theirs: Timing,
        least: float | None = None,
        most: float | None = None,
        inverse: bool = False,
        per: int = 1,
        **changes: Any,
    ) -> None:
        """Add a row with time of the other library / time of olx, or with `most` the inverse.

        inverse: the inverse without a target. per: divides the ratio.
        """
        inverse = inverse or most is not None
        failure = "; ".join(f"{t.name} {t.failure}" for t in (ours, theirs) if t.failure)
        few = [t.name for t in (ours, theirs) if len(t.seconds) == 1]
        above, below = (ours, theirs) if inverse else (theirs, ours)
        values = {
            "value": _ratio(above.nanoseconds, below.nanoseconds, per),
            "best": _ratio(above.least, below.least, per),
            "least": least,
            "most": most,
            "unit": "olx / theirs" if inverse else "",
            "theirs": theirs.nanoseconds,
            "ours": ours.nanoseconds,
            "cores": ours.cores,
            "note": failure or ("single run of " + ", ".join(few) if few else ""),
        }
        self.rows.append(Row(case, **({"against": theirs.name} | values | changes)))

    def duel(
        self, case: str, ours: Contestant, *theirs: Contestant, **target: Any
    ) -> dict[str, Timing]:
        """Race olx with others and compare it with each of them; the target is for the first."""
        seen = self.race(case, [ours, *theirs])
        for i, other in enumerate(theirs):
            self.compare(case, seen[ours.name], seen[other.name], **(target if i == 0 else {}))
        return seen


def race(contestants: Sequence[Contestant], rounds: int) -> dict[str, Timing]:
    """Time all contestants; a failure is reported with its reason."""
    timings, calls, turns = {}, {}, {}
    for name, prepare, work in contestants:
        timings[name] = Timing(name, work)
        try:
            with _quiet():
                call = prepare()
                call()  # the first call compiles
                wall, busy = _timed(call)
                calls[name], turns[name] = call, int(PATIENCE / wall)
                if not turns[name]:
                    timings[name] = Timing(name, work, (wall,), (busy,))
        except Exception as error:
            timings[name] = timings[name]._replace(failure=reason(error))
            print(f"  {name}: {timings[name].failure}", flush=True)
    for number in range(rounds):
        for name, call in calls.items():
            if number >= turns[name]:
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


def reason(error: Exception) -> str:
    """Why a contestant or a group has no time."""
    if isinstance(error, ImportError):
        return f"not installed ({error})"
    lines = str(error).splitlines() or [""]
    return f"failed: {type(error).__name__}: {lines[0][:120]}"


def table(groups: Sequence[Group]) -> str:
    """The groups as Markdown; first all rows that begin with arrays as most users hold them, and of
    these the ones with a target."""
    held = [row for group in groups for row in group.rows if HELD.search(row.case)]
    held.sort(key=lambda row: not row.target)
    parts = []
    for title, rows in [("From arrays of NumPy and SciPy", held)] + [
        (group.title, [row for row in group.rows if row not in held]) for group in groups
    ]:
        if not rows:
            continue
        lines = [_cells(row) for row in rows]
        widths = [max(map(len, column)) for column in zip(HEADINGS, *lines, strict=True)]
        pad = lambda cells, widths=widths: (
            "| " + " | ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)) + " |"
        )
        rule = "|" + "|".join("-" * (w + 2) for w in widths) + "|"
        parts.append("\n".join([f"## {title}", "", pad(HEADINGS), rule, *map(pad, lines)]))
    return "\n\n".join(parts)


def summary(groups: Sequence[Group]) -> str:
    """The groups in a line each, and a line for each target that was missed, as Markdown."""
    counts = [_counts(group) for group in groups]
    lines = [
        f"| {group.title} | {' | '.join(map(str, count))} | {group.seconds:.0f} |"
        for group, count in zip(groups, counts, strict=True)
    ]
    whole = " | ".join(str(sum(column)) for column in zip(*counts, strict=True))
    seconds = sum(group.seconds for group in groups)
    missed = [
        f"- {group.title}: {row.case}, {row.against}: {value} ({row.target})"
        for group in groups
        for row in group.rows
        if row.verdict.startswith("missed") and (value := _cells(row)[5])
    ]
    head = ["| group | met | missed | not measured | seconds |", "|---|---|---|---|---|"]
    table = [*head, *lines, f"| all | {whole} | {seconds:.0f} |"]
    return "\n".join([*table, *(["", "Missed targets:", "", *missed] if missed else [])])


def _counts(group: Group) -> tuple[int, int, int]:
    """The number of targets that were met, missed and not measured."""
    judged = [row for row in group.rows if row.target or row.value is None]
    met = sum(row.verdict.startswith("met") for row in judged)
    failed = sum(row.value is None for row in judged)
    return met, len(judged) - met - failed, failed


def environment(rounds: int, quick: bool) -> dict[str, Any]:
    """The machine, the versions and the settings."""
    import jax

    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "rounds": rounds,
        "processor": _processor(),
        "cores": _cores(),
        "load": load(),
        "python": platform.python_version(),
        "devices": [str(device) for device in jax.local_devices()],
        "threads": {name: os.environ.get(name) for name in THREADS},
        "versions": {name: _version(name) for name in PACKAGES},
    }


def load() -> list[float]:
    """The mean number of busy cores in the last 1, 5 and 15 minutes."""
    return [round(minutes, 2) for minutes in os.getloadavg()] if hasattr(os, "getloadavg") else []


def write(folder: pathlib.Path, about: dict[str, Any], groups: list[Group]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    results = [
        {
            "title": group.title,
            "seconds": group.seconds,
            "rows": [
                {**row._asdict(), "target": row.target, "verdict": row.verdict}
                for row in group.rows
            ],
            "timings": group.timings,
        }
        for group in groups
    ]
    document = {"about": about, "groups": results}
    (folder / "benchmarks.json").write_text(json.dumps(document, indent=1) + "\n")
    facts = "\n".join(f"- {name}: {_plain(value)}" for name, value in about.items())
    parts = ["# Benchmarks", facts, NOTES, table(groups), "## Summary", summary(groups)]
    text = "\n\n".join(parts) + "\n"
    (folder / "benchmarks.md").write_text(text)


NOTES = """A ratio is the time of the peer / the time of olx unless it says otherwise. Times are
nanoseconds per unit of work in the median round; a unit is one example unless the heading says
otherwise. The verdict is about their ratio. `best` is the ratio of the fastest rounds, which other
work on the machine disturbs least. `cores` is the number of busy cores of olx; less than 1 means
that it had to wait."""


def _cells(row: Row) -> tuple[str, ...]:
    value = "" if row.value is None else f"{_number(row.value)} {row.unit}".strip()
    times = (_number(row.theirs), _number(row.ours), _number(row.cores))
    return (row.case, row.against, *times, value, _number(row.best), row.target, row.verdict)


def _ratio(a: float | None, b: float | None, per: int) -> float | None:
    return None if a is None or b is None else a / b / per


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _processor() -> str:
    path = pathlib.Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
