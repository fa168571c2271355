r"""Dates as numbers: the year, and the place in the year, in the week and in the day.

The year counts from 2000. The others are cyclic: a place $p$ in a period $P$ becomes
$\sin(2 \pi p / P)$ and $\cos(2 \pi p / P)$, so that December is next to January, and Sunday next to
Monday. The hour holds minutes and seconds; it is left out if all cells are dates without a time. A
cell with an offset from UTC counts in UTC.
"""

import contextlib
import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from olx._refusal import RefusedValue
from olx.streams.cells import cells_of

if TYPE_CHECKING:
    from narwhals.stable.v2 import Series

PERIODS = {"month": 12, "weekday": 7, "hour": 24}  # months and days of the week count from 0 on


def parts_in(series: "Series") -> tuple[str, ...]:
    """The parts that the dates of a column have."""
    cells = [cell for cell in _parsed(series) if cell is not None]
    timed = any(isinstance(c, datetime.time) or _hour(c) for c in cells)
    dated = any(not isinstance(cell, datetime.time) for cell in cells)
    return ("year", "month", "weekday") * dated + ("hour",) * timed


def part_names(name: str, parts: Sequence[str]) -> list[str]:
    """The names of the features.

    >>> part_names("day", ("year", "month"))
    ['day.year', 'day.month.sin', 'day.month.cos']
    """
    each = ([f".{part}.sin", f".{part}.cos"] if part in PERIODS else [f".{part}"] for part in parts)
    return [name + ending for endings in each for ending in endings]


def date_features(series: "Series", parts: Sequence[str]) -> np.ndarray:
    """The parts of the dates of a column, as rows of numbers."""
    cells = _parsed(series)
    gone = [row for row, cell in enumerate(cells) if cell is None]
    if gone:
        raise RefusedValue(
            f"column {series.name!r} holds no date in {len(gone)} of {len(cells)} rows, "
            f"the first is row {gone[0]}; drop these rows, or leave the column out."
        )
    columns: list[np.ndarray] = []
    for part in parts:
        for row, cell in enumerate(cells):
            if part != "hour" and isinstance(cell, datetime.time):
                raise RefusedValue(
                    f"column {series.name!r} holds the time {cell} without a date in row {row}; "
                    "make all cells of one kind."
                )
        place = np.array([_READERS[part](cell) for cell in cells], float)
        if part not in PERIODS:
            columns.append(place)
            continue
        angle = 2 * np.pi * place / PERIODS[part]
        columns += [np.sin(angle), np.cos(angle)]
    return np.stack(columns, axis=1)


def _parsed(series: "Series") -> list[Any]:
    """The dates and times of a column, None where one is missing."""
    return [_date(series.name, row, cell) for row, cell in enumerate(cells_of(series))]


def _date(name: str, row: int, cell: Any) -> Any:
    for kind in (datetime.datetime, datetime.time) if isinstance(cell, str) else ():
        with contextlib.suppress(ValueError):
            cell = kind.fromisoformat(cell)
            break
    if isinstance(cell, datetime.datetime) and cell.tzinfo is not None:
        return cell.astimezone(datetime.UTC)
    if isinstance(cell, datetime.time) and cell.tzinfo is not None:
        raise RefusedValue(
            f"column {name!r} holds the time {cell} with an offset in row {row}; write it in UTC, "
            "without an offset."
        )
    if cell is None or isinstance(cell, datetime.date | datetime.time):
        return cell
    raise RefusedValue(f"column {name!r} holds {cell!r} in row {row}, which is no date.")


def _hour(cell: Any) -> float:
    if not isinstance(cell, datetime.datetime | datetime.time):
        return 0.0
    return cell.hour + cell.minute / 60 + (cell.second + cell.microsecond / 1e6) / 3600


_READERS = {
    "year": lambda cell: cell.year - 2000,
    "month": lambda cell: cell.month - 1,
    "weekday": lambda cell: cell.weekday(),
    "hour": _hour,
}
