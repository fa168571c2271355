"""How a file became the rows of a data set, so that new files become rows in the same way.

A `Table` is plain data: the columns and their categories, what fills missing values, the scale, the
intercept, and the labels. `to_json` writes it, `from_json` reads it.

    table = load("mine.csv", target="buys", scale="standard").table
    text = table.to_json()                          # store it with the model
    x = Table.from_json(text).apply("new.csv")      # with or without the column of labels
    table.predictions(olx.predict(learner, state, x))
    outcomes_of(table, Path("new.csv"), None)       # if the column of labels is there
"""

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse

from olx._refusal import RefusedValue, own_name
from olx.lab.data.files import (
    Matrix,
    Reading,
    Rows,
    is_table,
    labels_of,
    other_columns,
    read_file,
    read_frame,
)
from olx.lab.tasks import outcomes
from olx.lab.tasks.task import TASKS, Task
from olx.streams.cells import Level, in_one_message
from olx.streams.columns import Columns, from_plain, narwhals_frame, with_tuples
from olx.streams.scales import Scale

Binarize = float | str | bool | Sequence[float | str] | None  # the labels that count as +1


@dataclasses.dataclass(frozen=True)
class Labels:
    """What the outcomes mean.

    Outcomes are numbers, times `spread` plus `mean`, if `classes` is empty. Two classes are -1 and
    +1, in this order, if `signs`; else the outcome is the place in `classes`.
    """

    name: str = ""  # of the column; empty if unknown
    classes: tuple[Level, ...] = ()
    signs: bool = False
    mean: float = 0.0
    spread: float = 1.0
    weights: tuple[float, ...] = ()  # with which the rows of each class are learned; empty for 1

    def class_numbers(self, outcome: np.ndarray) -> np.ndarray:
        """The places in `classes` of some outcomes."""
        return np.asarray((outcome + 1) / 2 if self.signs else outcome).astype(int)

    def row_weights(self, outcome: np.ndarray) -> np.ndarray | None:
        """The weights with which rows of these outcomes are learned; None for 1."""
        return np.array(self.weights)[self.class_numbers(outcome)] if self.weights else None


@dataclasses.dataclass(frozen=True)
class Table:
    """The way from a file to the contexts of a data set.

    columns: how the columns of a table become features; None if the file holds rows of numbers
        (.npz, svmlight, arrays), of which the first `width` are used, all but those `without`.
    """

    task: str
    columns: Columns | None
    width: int  # the number of features in the file
    without: tuple[int, ...] = ()
    scale: Scale = dataclasses.field(default_factory=Scale)
    bias: bool = False  # whether a feature that is always 1 is appended
    labels: Labels = dataclasses.field(default_factory=Labels)
    encoding: str | None = None  # of a CSV file that is not UTF-8
    first: int | None = None  # the index of the first feature in svmlight files; found if None
    id: str = ""  # the column that says which row is which; empty if there is none

    @property
    def names(self) -> list[str]:
        """The names of the features; x0, x1, x2, ... if the file has none."""
        if self.columns is not None:
            names = self.columns.names
        else:
            names = [f"x{i}" for i in range(self.width) if i not in self.without]
        return [*names, "intercept"] if self.bias else names

    def apply(
        self, data: object, *, allow_unknown: bool = False, place: str = "Table.apply"
    ) -> Matrix:
        """The contexts of new rows: an array of shape (T, d), or a SciPy matrix if they are sparse.

        data: the path of a file, a table that narwhals reads, a row as a dictionary or a list of
            such rows, or an array or SciPy matrix with the features of the file. Labels may be
            there or not.
        allow_unknown: a word that is not among the categories becomes zeros; False refuses it.
        place: what messages call rows that are in no file.
        """
        place = str(data) if isinstance(data, str | os.PathLike) else place
        rows = [data] if isinstance(data, dict) else data
        if isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows):
            data = pa.Table.from_pylist(rows)
        x = self._features(place, data, allow_unknown)
        outcomes.finite(place, "feature", x)
        return with_bias(self.scale.apply(x.astype(float)), self.bias)

    def predictions(self, actions: np.ndarray) -> np.ndarray:
        """What the actions of a learner say: labels, or numbers on the scale of the file.

        actions: one score per row; or one per class, of which the largest counts.
        """
        actions, known = np.asarray(actions), self.labels
        if not known.classes:
            return actions * known.spread + known.mean
        place = (actions > 0).astype(int) if known.signs else np.argmax(actions, axis=-1)
        return np.array(known.classes)[place]

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def from_json(text: str) -> "Table":
        """The record that `to_json` wrote."""
        return Table.from_plain(json.loads(text))

    @staticmethod
    def from_plain(tree: dict[str, Any]) -> "Table":
        """The record from a tree of dictionaries and lists."""
        columns = None if tree["columns"] is None else from_plain(tree["columns"])
        scale, labels = Scale(**with_tuples(tree["scale"])), Labels(**with_tuples(tree["labels"]))
        return Table(**with_tuples({**tree, "columns": columns, "scale": scale, "labels": labels}))

    def rows(self, path: Path) -> Rows:
        """The rows of numbers in a file, before they are scaled."""
        several = TASKS[self.task].several
        reading = Reading(encoding=self.encoding, labelled=False, several=several, first=self.first)
        return read_file(path, reading)

    def _features(self, place: str, data: object, allow_unknown: bool) -> Matrix:
        path = Path(data) if isinstance(data, str | os.PathLike) else None
        is_array = isinstance(data, np.ndarray) or scipy.sparse.issparse(data)
        if self.columns is not None:
            if is_array or (path and not is_table(path)):
                raise ValueError(
                    f"{place}: the columns {', '.join(self.columns.names[:3])}, ... are found by "
                    "name; give a table, or a file of columns such as .csv or .parquet."
                )
            with own_name(place):
                frame = self._frame(path, self.columns) if path else data
                return self.columns.apply(frame, allow_unknown=allow_unknown)
        if not path and not is_array:
            raise TypeError(
                f"{place}: the features are the {self.width} columns of a file without names; give "
                "an array, or the path of a file."
            )
        x: Matrix = self.rows(path).x if path else data
        sparse = scipy.sparse.issparse(x)  # sparse rows may leave out the last columns
        if x.ndim != 2 or x.shape[1] > self.width or (x.shape[1] < self.width and not sparse):
            shape = x.shape[1:]
            raise ValueError(f"{place} has rows of shape {shape}; they need {self.width} features.")
        if x.shape[1] < self.width:
            shape = x.shape[0], self.width
            x = scipy.sparse.csr_array((x.data, x.indices, x.indptr), shape=shape)
        return other_columns(place, x, self.without)

    def _frame(self, path: Path, columns: Columns) -> pa.Table:
        levels = {each.name: each.levels or () for each in columns.columns}
        words = [name for name, known in levels.items() if any(isinstance(k, str) for k in known)]
        reading = Reading(target=self.labels.name)
        try:
            frame = read_frame(path, reading, words)
        except ValueError:
            if self.encoding is None:
                raise
            frame = read_frame(path, reading._replace(encoding=self.encoding), words)
        if problems := [frame.problems[name] for name in levels if name in frame.problems]:
            raise RefusedValue(in_one_message(problems))
        return frame.table


def fit_labels(task: Task, rows: Rows, binarize: Binarize) -> Labels:
    """The labels behind the outcomes that a task reads from the rows of a file."""
    y, name = rows.y, rows.target
    if y is None or task.read not in (outcomes.signs, outcomes.classes, outcomes.single_labels):
        return Labels(name, rows.labels)
    there = [_plain(label) for label in np.unique(y).tolist()]
    signs = task.read is outcomes.signs
    if binarize is None:
        return Labels(name, tuple(there), signs)
    chosen = chosen_labels(binarize)
    other = [label for label in there if label not in chosen]
    one = _plain(chosen[0]) if len(chosen) == 1 else " or ".join(str(_plain(x)) for x in chosen)
    return Labels(name, (other[0] if len(other) == 1 else f"not {one}", one), signs)


def ids_of(table: Table, path: Path) -> pa.ChunkedArray | None:
    """What the rows of a file are called; None if its table has no column for that."""
    if not table.id or not is_table(path):
        return None
    frame = read_frame(path, Reading(encoding=table.encoding), [table.id]).table
    return frame[table.id] if table.id in frame.column_names else None


def outcomes_of(table: Table, path: Path, binarize: Binarize) -> np.ndarray | None:
    """The outcomes of the rows of a file; None if it holds no labels.

    binarize: the labels that count as +1, if the config names some.
    """
    y = _labels_in(table, path)
    return None if y is None else outcomes_from(str(path), table.labels, y, binarize)


def outcomes_from(
    place: str, known: Labels, y: np.ndarray | list[Level], binarize: Binarize
) -> np.ndarray:
    """The outcomes that labels stand for. `place` is what messages call their source."""
    if not known.classes:
        return (np.asarray(y, float) - known.mean) / known.spread
    found = [_plain(label) for label in (y.tolist() if isinstance(y, np.ndarray) else y)]
    if binarize is not None:
        chosen = chosen_labels(binarize)
        are_words = {isinstance(label, str) for label in chosen}
        for row, label in enumerate(found):
            if isinstance(label, str) not in are_words:  # "1" would be another label than 1
                kind = "words" if are_words == {True} else "numbers"
                raise ValueError(
                    f"{place} holds the label {label!r} in row {row}, and labels are {kind}, such "
                    f"as {chosen[0]!r}; write all of them so."
                )
        return np.array([1.0 if label in chosen else -1.0 for label in found])
    number_of = {label: i for i, label in enumerate(known.classes)}
    for row, label in enumerate(found):
        if label not in number_of:
            raise ValueError(
                f"{place} holds the label {label!r} in row {row}, which was not there before; "
                f"known are {outcomes.few(list(known.classes))}."
            )
    number = np.array([number_of[label] for label in found], np.int32)
    return 2.0 * number - 1.0 if known.signs else number


def _labels_in(table: Table, path: Path) -> np.ndarray | None:
    if table.columns is None:
        return table.rows(path).y
    if not is_table(path):
        return None
    with own_name(str(path)):
        name, columns = table.labels.name, table.columns
        reading = Reading(encoding=table.encoding, target=name)
        whole = read_frame(path, reading)
        if name in whole.problems:
            raise RefusedValue(whole.problems[name])
        frame = narwhals_frame(whole.table)
        bare = not columns.named and len(frame.columns) == len(columns.columns)  # features alone
        return None if bare or name not in frame.columns else labels_of(frame[name])


def chosen_labels(binarize: Binarize) -> list[Level]:
    """The labels that count as +1."""
    if isinstance(binarize, list | tuple):
        return list(binarize)
    return [] if binarize is None else [binarize]  # pyright: ignore[reportReturnType]


def with_bias(x: Matrix, bias: bool) -> Matrix:
    """The rows with a feature that is always 1, if `bias`."""
    if not bias:
        return x
    one = np.ones((x.shape[0], 1))
    return scipy.sparse.hstack([x, one], "csr") if scipy.sparse.issparse(x) else np.hstack([x, one])


def _plain(label: Level) -> Level:
    """A label as JSON keeps it; whole numbers are integers."""
    return int(label) if isinstance(label, float) and label.is_integer() else label
