"""The table and the picture of `experiments.tuning`."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

import olx

NEAR = 1.01
COLUMNS = ("stream", "method", "rounds", "all", "time", "end", "first")


class Row(NamedTuple):
    """A line of the table; infinite if the method did not arrive."""

    stream: str
    method: str
    rounds: float
    all: float
    time: float
    end: float
    first: float | None = None


def path(found: olx.tune.Tuned, best: float) -> tuple[np.ndarray, np.ndarray]:
    """The cost in runs, and the lowest loss of a whole run so far; of those that finished."""
    length = max(one.rounds for one in found.history)
    whole = [one for one in found.history if one.rounds == length]
    prices = np.array([1.0 + len(one.numbers) if one.slopes else 0.0 for one in whole])
    at = found.runs - prices.sum() + np.cumsum(prices)
    low = np.minimum.accumulate([one.total if np.isfinite(one.total) else np.inf for one in whole])
    return at, low / best


def table(rows: list[Row]) -> str:
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    show = lambda value: "" if value is None else "never" if np.isinf(value) else f"{value:.1f}"
    lines += [
        f"| {row.stream} | {row.method} | {show(row.rounds)} | {show(row.all)} | {show(row.time)} "
        f"| {row.end:.4f} | {show(row.first)} |"
        for row in rows
    ]
    mine = [row for row in rows if row.method == "both"]
    met = [row.stream for row in mine if max(row.rounds, row.all, row.time) <= 60]
    lines.append(
        f"\n`olx.tune.both` arrives with at most 60 runs of rounds and of time on {len(met)} of "
        f"{len(mine)} streams{': ' * bool(met)}{', '.join(met)}."
    )
    return "\n".join(lines)


def draw(paths: dict[str, dict[str, list]], out: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.1 * len(paths), 3.0), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(paths)))
    for axes, (stream, methods) in zip(panels, paths.items(), strict=True):
        for i, (method, each) in enumerate(methods.items()):
            for k, (at, ratio) in enumerate(each):
                label = method if k == 0 else None
                axes.step(at, ratio, where="post", color=f"C{i}", lw=1.2, label=label, marker=".")
        axes.axhline(NEAR, color="grey", lw=0.8)
        axes.set(title=stream, xscale="log", ylim=(0.97, 1.25), xlabel="runs of rounds")
    panels[0].set_ylabel("lowest loss / best of the grid")
    panels[0].legend(frameon=False, fontsize=8)
    figure.savefig(out / "tuning.png", dpi=110)
    figure.savefig(out / "tuning.svg")
