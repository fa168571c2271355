"""A figure of lines as data: `figure` draws it for papers, `charts.js` draws it on the page."""

from typing import Any, NamedTuple

import numpy as np

from olx.lab.report.colours import dash

BOUND, OTHER = (1, 4), (12, 3, 2, 3, 2, 3)  # dashes of bounds, and of lines of no learner


class Scale(NamedTuple):
    """Linear; or logarithmic, but linear up to the distance `near` from 0."""

    log: bool = False
    near: float = 0.0


class Line(NamedTuple):
    label: str
    place: int  # number of the learner, which gives the colour; -1 for none
    x: np.ndarray
    y: np.ndarray
    error: np.ndarray | None = None  # one standard error, on both sides
    bound: bool = False
    lost: tuple[float, ...] = ()  # values of x at which the learner diverged
    dashes: tuple[int, ...] | None = None  # those of the learner if None

    @property
    def dash(self) -> tuple[int, ...]:
        if self.dashes is not None:
            return self.dashes
        return BOUND if self.bound else dash(self.place) if self.place >= 0 else OTHER


class Chart(NamedTuple):
    name: str  # of its files
    title: str
    caption: str
    heading: str
    x: str  # labels of the axes
    y: str
    scales: tuple[Scale, Scale]
    lines: list[Line]
    learners: int  # in the whole report
    dots: bool = False  # whether each value is a point


def is_wide(values: np.ndarray, ratio: float = 20) -> bool:
    """Whether a linear scale would hide the smaller values."""
    return values.size > 0 and bool(values.min() > 0 and values.max() >= ratio * values.min())


def as_json(chart: Chart) -> dict[str, Any]:
    """The chart for the page: all lines over the union of their rounds or values."""
    seen = [line.x for line in chart.lines] + [np.array(line.lost) for line in chart.lines]
    at = np.unique(np.concatenate(seen))
    floor = _floor(chart)
    return {
        "x": chart.x,
        "y": chart.y,
        "scales": [scale._asdict() for scale in chart.scales],
        "dots": chart.dots,
        "at": [_short(value) for value in at],
        "lines": [_line(line, at, floor) for line in chart.lines],
    }


def _line(line: Line, at: np.ndarray, floor: float) -> dict[str, Any]:
    spread = lambda values: _spread(line.x, np.maximum(values, floor), at)
    return {
        "label": line.label,
        "place": line.place,
        "dash": line.dash,
        "bound": line.bound,
        "y": spread(line.y),
        "band": None
        if line.error is None
        else [spread(line.y - line.error), spread(line.y + line.error)],
        "lost": [_short(value) for value in line.lost],
    }


def _floor(chart: Chart) -> float:
    """The least value that the scale can show, a little below all lines."""
    scale = chart.scales[1]
    if not scale.log or scale.near:
        return -np.inf
    return 0.5 * min(float(line.y.min()) for line in chart.lines if line.y.size)


def _spread(x: np.ndarray, values: np.ndarray, at: np.ndarray) -> list[float | None]:
    known = dict(zip(x.tolist(), values.tolist(), strict=True))
    return [_short(known[one]) if one in known else None for one in at.tolist()]


def _short(value: float) -> float:
    return float(f"{value:.6g}")
