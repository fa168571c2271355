"""How the columns of a table become features: the record that is kept, and applied to new rows.

A column of numbers is one feature. A column of words is a category: one feature per word, which is
1 in rows with this word and 0 in others. A `Columns` is plain data: `to_json` writes it as text.
Any table that narwhals reads is read.
"""

import dataclasses
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from olx._refusal import RefusedImport, RefusedType, RefusedValue, public
from olx.streams.cells import (
    Level,
    as_numbers,
    as_words,
    complete_cells,
    in_one_message,
    short_list,
    word_of,
)
from olx.streams.dates import date_features, part_names
from olx.streams.scales import ROWS, Scale, uneven_spreads

if TYPE_CHECKING:
    from narwhals.stable.v2 import DataFrame, Series

Values = np.ndarray | list[str]  # the numbers or the words of a column, without gaps


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of a table that is used as features."""

    name: str
    levels: tuple[Level, ...] | None = None  # the words of a category; None for numbers
    fill: Level | None = None  # replaces a missing value; None refuses it
    parts: tuple[str, ...] = ()  # of dates, which `olx.streams.dates` makes numbers of

    @property
    def names(self) -> list[str]:
        """The names of its features."""
        if self.parts:
            return part_names(self.name, self.parts)
        if self.levels is None:
            return [self.name]
        return [f"{self.name}={level}" for level in self.levels]

    def values(self, series: "Series") -> Values:
        """The numbers or the words of a column of new rows."""
        if self.parts:
            return date_features(series, self.parts)
        return (as_numbers if self.levels is None else as_words)(series, self.fill)


@dataclasses.dataclass(frozen=True)
class Target:
    """The column of outcomes.

    Numbers stay as they are if `labels` and `positive` are None. With `positive` the outcome is +1
    for the labels in it and -1 for others. Else it is the place in `labels`: 0, 1, 2, ...
    """

    name: str
    labels: tuple[Level, ...] | None = None  # all labels; None if any is legal
    positive: tuple[Level, ...] | None = None


@dataclasses.dataclass(frozen=True)
class Columns:
    """The mapping of a table to rows of numbers, as `olx.streams.from_frame` found it.

    >>> columns = Columns((Column("age", fill=30.0), Column("city", ("Bonn", "Oslo"))))
    >>> columns.names
    ['age', 'city=Bonn', 'city=Oslo']
    >>> Columns.from_json(columns.to_json()) == columns
    True
    """

    columns: tuple[Column, ...]
    target: Target | None = None
    named: bool = True  # whether the table names its columns; else they are found by number
    scale: Scale = dataclasses.field(default_factory=Scale)  # of the features

    @property
    def names(self) -> list[str]:
        """The names of the features, in order."""
        return [name for column in self.columns for name in column.names]

    @property
    def width(self) -> int:
        """The number of features."""
        return len(self.names)

    @public
    def apply(self, frame: object, *, allow_unknown: bool = False) -> np.ndarray:
        """The features of the rows of `frame`, as an array with a row per row of the frame.

        frame: any table that narwhals reads; columns are found by name, others are not used.
        allow_unknown: a word that is in no level becomes zeros; False refuses it.
        """
        table = self._by_name(narwhals_frame(frame))
        values, problems = [], []
        for column in self.columns:
            try:
                values.append(column.values(table[column.name]))
            except RefusedValue as error:
                problems.append(str(error))
        if problems:
            raise RefusedValue(in_one_message(problems))
        return self.scale.apply(features_of(self.columns, values, allow_unknown))

    @public
    def outcome(self, frame: object) -> np.ndarray:
        """The outcomes of the rows of `frame`."""
        if self.target is None:
            raise RefusedValue("no target is known; `from_frame` was given none.")
        table = narwhals_frame(frame)
        if self.target.name not in table.columns:
            raise RefusedValue(f"the table has no column {self.target.name!r}.")
        return outcomes_in(self.target, table[self.target.name])

    def uneven_spreads(self, x: np.ndarray) -> str:
        """Says which column of the features `x` spreads far more than another one, if one does."""
        plain = [not (one.levels or one.parts) for one in self.columns for _ in one.names]
        names = [name for name, own in zip(self.names, plain, strict=True) if own]
        words = [one.name for one in self.columns if one.levels]
        return uneven_spreads(names, x if all(plain) else x[:, plain], words)

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def from_json(text: str) -> "Columns":
        """The record that `to_json` wrote."""
        return from_plain(json.loads(text))

    def _by_name(self, table: "DataFrame") -> "DataFrame":
        """The table with the names of this record."""
        wanted = [column.name for column in self.columns]
        if not self.named and len(table.columns) == len(wanted):  # without the target
            return table.rename(dict(zip(table.columns, wanted, strict=True)))
        missing = [name for name in wanted if name not in table.columns]
        if missing:
            raise RefusedValue(
                f"the table has no column {missing[0]!r}; it has {short_list(table.columns)}. New "
                f"rows need the {len(wanted)} columns of the first ones."
            )
        return table


def features_of(
    columns: Sequence[Column], values: Sequence[Values], allow_unknown: bool = False
) -> np.ndarray:
    """The features that the values of each column stand for, as an array with a row per value."""
    parts: list[np.ndarray] = []
    for column, each in zip(columns, values, strict=True):
        if column.levels is None:
            parts.append(np.reshape(each, (len(each), -1)))
            continue
        place = {word_of(level): i for i, level in enumerate(column.levels)}
        code = np.array([place.get(word, -1) for word in each], int)
        if not allow_unknown and np.any(code < 0):
            row = int(np.argmax(code < 0))
            raise RefusedValue(
                f"column {column.name!r} holds {each[row]!r} in row {row}, which was not "
                f"there before; known are {short_list(column.levels)}. Correct it, or give "
                "allow_unknown=True to make it zeros."
            )
        parts.append(code[:, None] == np.arange(len(place)))
    x = np.empty((len(parts[0]), sum(part.shape[1] for part in parts)))
    for start in range(0, len(x), ROWS):
        rows = slice(start, start + ROWS)
        np.concatenate([part[rows] for part in parts], axis=1, out=x[rows])
    return x


def from_plain(tree: dict[str, Any]) -> Columns:
    """The record from a tree of dictionaries and lists."""
    columns = tuple(Column(**with_tuples(each)) for each in tree["columns"])
    target = None if tree["target"] is None else Target(**with_tuples(tree["target"]))
    scale = Scale(**with_tuples(tree.get("scale", {})))
    return Columns(columns, target, tree["named"], scale)


def with_tuples(tree: dict[str, Any]) -> dict[str, Any]:
    """The dictionary with tuples in place of lists."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in tree.items()}


def narwhals_frame(frame: object) -> "DataFrame":
    """The table as a frame of narwhals."""
    try:
        import narwhals.stable.v2 as narwhals
    except ImportError as error:
        raise RefusedImport("tables need narwhals: pip install 'olx[lab]'.") from error
    try:
        return narwhals.from_native(frame, eager_only=True)  # pyright: ignore[reportArgumentType, reportCallIssue]
    except TypeError:
        lazy = hasattr(frame, "collect")
        remedy = "call its collect() first" if lazy else "arrays go into olx.streams.from_arrays"
        raise RefusedType(
            f"`frame` is a {type(frame).__name__}; give a table of pandas, polars, "
            f"pyarrow or another that narwhals reads; {remedy}."
        ) from None


def outcomes_in(target: Target, series: "Series") -> np.ndarray:
    """The outcomes that the column of the target holds."""
    if target.labels is None and target.positive is None:
        return as_numbers(series, None)
    cells = complete_cells(series)
    known = {label: i for i, label in enumerate(target.labels or ())}
    for row, cell in enumerate(cells):
        if target.labels is not None and cell not in known:
            raise RefusedValue(
                f"column {target.name!r} holds the unknown label {cell!r} in row {row}; "
                f"known are {short_list(target.labels)}."
            )
    if target.positive is not None:
        return np.array([1.0 if cell in target.positive else -1.0 for cell in cells])
    return np.array([known[cell] for cell in cells], np.int32)
