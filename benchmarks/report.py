"""Write the results: on the terminal, as JSON with all times, and as Markdown."""

import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
from collections.abc import Iterable
from typing import Any, NamedTuple

from benchmarks import THREADS
from benchmarks.race import Timing
from benchmarks.targets import Target

PACKAGES = ("olx", "jax", "numpy", "scikit-learn", "vowpalwabbit", "river", "numba", "scipy")
HEADINGS = ("case", "against", "theirs", "olx", "cores", "ratio", "best", "target", "")


class Row(NamedTuple):
    """One line of the table, and its verdict."""

    case: str
    against: str
    value: float | None  # compared with the target; a ratio unless `unit` says otherwise
    target: Target | None = None
    unit: str = ""
    theirs: float | None = None  # nanoseconds
    ours: float | None = None
    cores: float | None = None  # busy cores of olx
    best: float | None = None  # the ratio of the fastest rounds, least disturbed by other work
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.value is None:
            return self.note or "failed"
        if self.target is None:
            return self.note
        verdict = "met" if self.target.met(self.value) else "missed"
        return f"{verdict}; {self.note}" if self.note else verdict


class Group(NamedTuple):
    title: str
    rows: list[Row]
    timings: dict[str, Any]  # all measurements, by case


def compared(
    case: str, ours: Timing, theirs: Timing, target: Target | None, inverse: bool = False
) -> Row:
    """A row with time of the other library / time of olx, or the inverse."""
    failure = "; ".join(f"{t.name} {t.failure}" for t in (ours, theirs) if t.failure)
    a, b = theirs.nanoseconds, ours.nanoseconds
    value = _ratio(b, a) if inverse else _ratio(a, b)
    best = _ratio(ours.least, theirs.least) if inverse else _ratio(theirs.least, ours.least)
    few = [t.name for t in (ours, theirs) if len(t.seconds) == 1]
    note = failure or ("single run of " + ", ".join(few) if few else "")
    unit = "olx / theirs" if inverse else ""
    return Row(case, theirs.name, value, target, unit, a, b, ours.cores, best, note)


def only(case: str, timing: Timing, note: str = "") -> Row:
    """A row with a single time and no ratio."""
    spent = timing.nanoseconds
    return Row(case, timing.name, spent, None, "ns", note=timing.failure or note)


def table(groups: Iterable[Group]) -> str:
    """The groups as Markdown."""
    parts = []
    for group in groups:
        lines = [_cells(row) for row in group.rows]
        widths = [max(map(len, column)) for column in zip(HEADINGS, *lines, strict=True)]
        pad = lambda cells, widths=widths: (
            "| " + " | ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)) + " |"
        )
        rule = "|" + "|".join("-" * (w + 2) for w in widths) + "|"
        parts.append("\n".join([f"## {group.title}", "", pad(HEADINGS), rule, *map(pad, lines)]))
    return "\n\n".join(parts)


def summary(groups: Iterable[Group]) -> str:
    judged = [row for group in groups for row in group.rows if row.target is not None]
    failed = [row for row in judged if row.value is None]
    met = [row for row in judged if row.value is not None and row.verdict.startswith("met")]
    missed = len(judged) - len(met) - len(failed)
    return f"{len(met)} targets met, {missed} missed, {len(failed)} not measured."


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
            "rows": [{**row._asdict(), "verdict": row.verdict} for row in group.rows],
            "timings": group.timings,
        }
        for group in groups
    ]
    document = {"about": about, "groups": results}
    (folder / "benchmarks.json").write_text(json.dumps(document, indent=1) + "\n")
    facts = "\n".join(f"- {name}: {_plain(value)}" for name, value in about.items())
    text = f"# Benchmarks\n\n{facts}\n\n{NOTES}\n\n{table(groups)}\n\n{summary(groups)}\n"
    (folder / "benchmarks.md").write_text(text)


NOTES = """A ratio is the time of the peer / the time of olx unless it says otherwise. Times are
nanoseconds per unit of work in the median round; a unit is one example unless the heading says
otherwise. The verdict is about their ratio. `best` is the ratio of the fastest rounds, which other
work on the machine disturbs least. `cores` is the number of busy cores of olx; less than 1 means
that it had to wait."""


def _cells(row: Row) -> tuple[str, ...]:
    target = "" if row.target is None else str(row.target)
    value = "" if row.value is None else f"{_number(row.value)} {row.unit}".strip()
    times = (_number(row.theirs), _number(row.ours), _number(row.cores))
    return (row.case, row.against, *times, value, _number(row.best), target, row.verdict)


def _ratio(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a / b


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
