"""How the columns of a table become features; the same for new rows as for the first ones.

A column of numbers is one feature. A column of words is a category: one feature per word, which is
1 in rows with this word and 0 in others. A `Columns` is plain data: `to_json` writes it as text.
"""

import dataclasses
import json
from typing import Any

import numpy as np

from olx.streams.cells import Level, as_numbers, as_words, opened, words_of

_ROWS = 2048  # that are filled at a time, so that they stay in the cache


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of a table that is used as features."""

    name: str
    levels: tuple[Level, ...] | None = None  # the words of a category; None for numbers
    fill: Level | None = None  # replaces a missing value; None refuses it

    @property
    def names(self) -> list[str]:
        """The names of its features."""
        if self.levels is None:
            return [self.name]
        return [f"{self.name}={level}" for level in self.levels]


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

    @property
    def names(self) -> list[str]:
        """The names of the features, in order."""
        return [name for column in self.columns for name in column.names]

    @property
    def width(self) -> int:
        """The number of features."""
        return len(self.names)

    def apply(
        self, frame: Any, *, allow_unknown: bool = False, owner: str = "Columns.apply"
    ) -> np.ndarray:
        """The features of the rows of `frame`, as an array with a row per row of the frame.

        frame: any table that narwhals reads; columns are found by name, others are not used.
        allow_unknown: a word that is in no level becomes zeros; False refuses it.
        """
        table = self._by_name(owner, opened(owner, frame))
        parts: list[np.ndarray] = []
        for column in self.columns:
            if column.levels is None:
                parts.append(as_numbers(owner, table[column.name], column.fill)[:, None])
            else:
                words = as_words(owner, table[column.name], column.fill)
                place = {level: i for i, level in enumerate(column.levels)}
                code = np.array([place.get(word, -1) for word in words], int)
                if not allow_unknown and np.any(code < 0):
                    raise _unknown(owner, column, words, code)
                parts.append(code[:, None] == np.arange(len(place)))
        x = np.empty((len(table), self.width))
        for start in range(0, len(table), _ROWS):
            rows = slice(start, start + _ROWS)
            np.concatenate([part[rows] for part in parts], axis=1, out=x[rows])
        return x

    def outcome(self, frame: Any, *, owner: str = "Columns.outcome") -> np.ndarray:
        """The outcomes of the rows of `frame`."""
        if self.target is None:
            raise ValueError(f"{owner}: no target is known; `from_frame` was given none.")
        table = opened(owner, frame)
        if self.target.name not in table.columns:
            raise ValueError(f"{owner}: the table has no column {self.target.name!r}.")
        return outcomes(owner, self.target, table[self.target.name])

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def from_json(text: str) -> "Columns":
        """The record that `to_json` wrote."""
        return from_plain(json.loads(text))

    def _by_name(self, owner: str, table: Any) -> Any:
        """The table with the names of this record."""
        wanted = [column.name for column in self.columns]
        if not self.named and len(table.columns) == len(wanted):  # without the target
            return table.rename(dict(zip(table.columns, wanted, strict=True)))
        missing = [name for name in wanted if name not in table.columns]
        if missing:
            raise ValueError(
                f"{owner}: the table has no column {missing[0]!r}; it has "
                f"{words_of(table.columns)}. New rows need the {len(wanted)} columns of the first "
                "ones."
            )
        return table


def tuples(tree: dict[str, Any]) -> dict[str, Any]:
    """The dictionary with tuples in place of lists."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in tree.items()}


def from_plain(tree: dict[str, Any]) -> Columns:
    """The record from a tree of dictionaries and lists."""
    columns = tuple(Column(**tuples(each)) for each in tree["columns"])
    target = None if tree["target"] is None else Target(**tuples(tree["target"]))
    return Columns(columns, target, tree["named"])


def outcomes(owner: str, target: Target, series: Any) -> np.ndarray:
    """The outcomes that the column of the target holds."""
    if target.labels is None and target.positive is None:
        return as_numbers(owner, series, None)
    words = as_words(owner, series, None)
    known = {label: i for i, label in enumerate(target.labels or ())}
    for row, word in enumerate(words):
        if target.labels is not None and word not in known:
            raise ValueError(
                f"{owner}: column {target.name!r} holds the unknown label {word!r} in row {row}; "
                f"known are {words_of(target.labels)}."
            )
    if target.positive is not None:
        return np.array([1.0 if word in target.positive else -1.0 for word in words])
    return np.array([known[word] for word in words], np.int32)


def _unknown(owner: str, column: Column, words: list[Level], code: np.ndarray) -> ValueError:
    row = int(np.argmax(code < 0))
    return ValueError(
        f"{owner}: column {column.name!r} holds {words[row]!r} in row {row}, which was not there "
        f"before; known are {words_of(column.levels or ())}. Correct it, or give "
        "allow_unknown=True to make it zeros."
    )
