"""Rows that arrive as dictionaries, one or a few at a time, such as those of a web service.

`Table.apply` makes a table of them first, which costs milliseconds. Here numbers, and words that
are known, are put into their places directly; a request with anything else (a missing value, a new
word, a word for a number) is given to `Table.apply`, which fills or refuses it. So both ways give
the same numbers and the same refusals.

A row of a file without names is {"features": [numbers], "label": its label}.
"""

import math
import sys
from typing import Any

import numpy as np
import pyarrow as pa

from olx._refusal import RefusedValue
from olx.lab.data.table import Binarize, Table, outcomes_from, with_bias
from olx.lab.tasks import outcomes
from olx.streams.cells import word_of

Row = dict[str, Any]
_EXACT = 2**53  # whole numbers below it are floats


class JsonRows:
    """Reads rows as the rows of a file were read.

    allow_unknown: whether a word that was in no row before becomes zeros; False refuses it.
    """

    def __init__(self, table: Table, binarize: Binarize, allow_unknown: bool = False):
        self.table, self.binarize = table, binarize
        self._options: dict[str, Any] = {"allow_unknown": allow_unknown, "place": "the request"}
        self.label = table.labels.name or "label"
        self._columns: list[tuple[str, dict[str, int] | None, int]] = []
        columns = table.columns.columns if table.columns is not None else ()
        self._has_dates = any(column.parts for column in columns)
        width = 0
        for column in columns:
            words = None
            if column.levels is not None or column.parts:  # `Table.apply` reads dates
                words = {word_of(level): i for i, level in enumerate(column.levels or ())}
            self._columns.append((column.name, words, width))
            width += len(column.names)
        self._width = width

    def contexts(self, rows: list[Row]) -> np.ndarray:
        """The contexts of some rows."""
        if self.table.columns is None:
            x = np.array([self._features(row) for row in rows])
            return self.table.apply(x, **self._options)
        if (x := self._plain(rows)) is not None:
            return with_bias(self.table.scale.apply(x), self.table.bias)
        others = {self.label, self.table.id}
        names = [set(row) - others for row in rows]
        for i, each in enumerate(names):
            if each != names[0]:
                odd = min(each ^ names[0], key=str)
                raise RefusedValue(f"row {i} and row 0 have other columns: one has {odd!r}.")
        features = [{key: row[key] for key in row if key not in others} for row in rows]
        try:
            return self.table.apply(features, **self._options)
        except (pa.ArrowInvalid, TypeError, OverflowError) as error:
            raise RefusedValue(f"the rows cannot be read as a table: {error}") from error

    def outcomes(self, rows: list[Row]) -> np.ndarray:
        """The outcomes that the labels of some rows stand for."""
        for i, row in enumerate(rows):
            if row.get(self.label) is None:
                raise RefusedValue(f"row {i} has no label {self.label!r}; a learner learns by it.")
        found = [row[self.label] for row in rows]
        for i, label in enumerate(found):
            number = isinstance(label, int | float)
            if not self.table.labels.classes and (not number or isinstance(label, bool)):
                raise RefusedValue(f"the label of row {i} is {label!r}; it must be a number.")
            if type(label) is int and abs(label) > sys.float_info.max:
                raise RefusedValue(f"the label of row {i} is larger than all floats.")
            if not number and not isinstance(label, str):
                raise RefusedValue(f"the label of row {i} is {label!r}, no number and no word.")
        found = [label.strip() if isinstance(label, str) else label for label in found]
        if not self.table.labels.classes:
            found = np.array(found, float)
            outcomes.finite("the request", "label", found)
        return outcomes_from("the request", self.table.labels, found, self.binarize)

    def _features(self, row: Row) -> list[float]:
        """The numbers of a row without names."""
        given = row.get("features")
        plain = isinstance(given, list) and all(map(_is_plain, given))
        if not isinstance(given, list) or not plain or len(given) != self.table.width:
            raise RefusedValue(
                'a row must be {"features": [numbers]} with '
                f"{self.table.width} finite numbers, as the file had no names of columns."
            )
        return [float(cell) for cell in given]

    def _plain(self, rows: list[Row]) -> np.ndarray | None:
        """The features before they are scaled; None if a cell must be looked at."""
        if self._has_dates:
            return None
        x = np.zeros((len(rows), self._width))
        for i, row in enumerate(rows):
            for name, words, place in self._columns:
                cell = row.get(name)
                if words is None:
                    if not _is_plain(cell):
                        return None
                    x[i, place] = cell
                elif isinstance(cell, str) and (number := words.get(cell)) is not None:
                    x[i, place + number] = 1
                else:
                    return None
        return x


def _is_plain(cell: object) -> bool:
    """Whether a cell is a finite number of 64 bits; Booleans are not taken for numbers here."""
    if type(cell) is float:
        return math.isfinite(cell)
    return type(cell) is int and -_EXACT < cell < _EXACT
