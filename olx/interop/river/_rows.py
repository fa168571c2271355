"""Rows of named numbers, written into a matrix: a table of columns that grows."""

import struct
from collections.abc import Callable, Hashable, Mapping
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from olx._refusal import RefusedType, RefusedValue
from olx.interop.river._device import LEAD

_MOST = 256  # rows that wait at most,
_WIDE = 1024, 64  # and from this many features on
_LAYOUTS = 64  # that are remembered


class Layout(NamedTuple):
    """Where the numbers of a row go, by their names."""

    pack: Callable[..., None] | None  # writes a row whose columns are the first ones, in order
    columns: np.ndarray  # of all numbers
    end: int  # the first column that `pack` leaves as it is
    short: bool  # whether there are such columns


class Table:
    """The columns of the features, and a matrix of rows that wait to be played.

    A row is the outcome, the weight, a 1 if there is an intercept, and the features. Columns that
    no feature has are 0.
    """

    def __init__(self, intercept: bool) -> None:
        self.intercept = intercept
        self.columns: dict[Hashable, int] = {}  # by name
        self.resize(0)

    @property
    def begin(self) -> int:
        """The column of the first feature."""
        return LEAD + self.intercept

    @property
    def width(self) -> int:
        """How many features there are, with the intercept."""
        return len(self.columns) + self.intercept

    def resize(self, width: int) -> None:
        """Make room for rows of `width` features that wait, and one more; all are forgotten."""
        self.most = _MOST if width < _WIDE[0] else _WIDE[1]
        self.rows = np.zeros((self.most + 1, LEAD + width))
        self.rows[:, LEAD : self.begin] = 1.0
        self.features = [row[LEAD:] for row in self.rows]  # views
        self.memory, self.stride = self.rows.data, self.rows.strides[0]
        self.layouts: dict[tuple, Layout] = {}

    def __getstate__(self) -> dict[str, object]:
        """What a copy needs; there are no rows then that wait."""
        fields = {name: vars(self)[name] for name in ("intercept", "columns")}
        return {**fields, "rows": self.rows.shape[1] - LEAD}

    def __setstate__(self, own: dict[str, Any]) -> None:
        vars(self).update(own)
        self.resize(own["rows"])

    def add(self, names: list) -> None:
        """Give columns to new names."""
        for name in names:
            self.columns[name] = self.begin + len(self.columns)

    def add_layout(self, names: tuple) -> None:
        """Keep the layout of a row whose names all have columns."""
        columns = [self.columns[name] for name in names]
        first = columns == list(range(self.begin, self.begin + len(columns)))
        pack = struct.Struct(f"{self.begin + len(columns)}d").pack_into if first else None
        end = self.begin + len(columns)
        if len(self.layouts) >= _LAYOUTS:
            self.layouts.clear()
        short = end < self.rows.shape[1]
        self.layouts[names] = Layout(pack, np.array(columns, int), end, short)

    def write(self, i: int, x: Mapping, y: float, weight: float) -> bool:
        """Write row `i`; refuses what is not a finite number. Whether its names have a layout."""
        try:
            layout = self.layouts.get(tuple(x))
            if layout is None:
                return False
            values = x.values()
            if not isfinite(sum(values) + y + weight):
                self.refuse(x, y, weight)
            if layout.pack is None:
                row = self.rows[i]
                row[self.begin :] = 0.0
                row[layout.columns] = list(values)
                row[0], row[1] = y, weight
                return True
            if self.intercept:
                layout.pack(self.memory, i * self.stride, y, weight, 1.0, *values)
            else:
                layout.pack(self.memory, i * self.stride, y, weight, *values)
        except (AttributeError, TypeError, ValueError, struct.error):
            self.refuse(x, y, weight)
            raise
        if layout.short:
            self.rows[i, layout.end :] = 0.0
        return True

    def refuse_kind(self, x: object) -> None:
        """Refuse a row that is no mapping from names to numbers."""
        if not isinstance(x, Mapping):
            raise RefusedType(
                f"a row must be a dictionary of features by name, got a "
                f"{type(x).__name__}; give dict(enumerate(row)) for numbers without names."
            )

    def refuse(self, x: Mapping, y: Any, weight: Any) -> None:
        """Refuse a row by the name of the feature that is not a finite number."""
        self.refuse_kind(x)
        for name, given in x.items():
            try:
                fine = not isinstance(given, str | bytes) and isfinite(given)
            except (TypeError, ValueError):
                fine = False
            if not fine:
                word = "encode words, as by `river.preprocessing.OneHotEncoder()`"
                gap = "fill gaps, as by `river.preprocessing.StatImputer()`"
                raise RefusedValue(
                    f"the feature {name!r} must be a finite number, got {given!r}; "
                    f"{word if isinstance(given, str) else gap}."
                )
        for name, given in (("y", y), ("w", weight)):
            try:
                fine = isfinite(given)
            except (TypeError, ValueError):
                fine = False
            if not fine:
                raise RefusedValue(f"`{name}` must be a finite number, got {given!r}.")

    def place(self, matrix: np.ndarray, names: list) -> None:
        """Write the features of many rows, from the first row on."""
        here = self.rows[: len(matrix)]
        here[:, self.begin :] = 0.0
        here[:, [self.columns[name] for name in names]] = matrix
