"""How a file became the rows of a data set, so that new files become rows in the same way.

A `Table` is plain data: the columns and their categories, what fills missing values, the scale, the
intercept, and the labels. `to_json` writes it, `from_json` reads it.

    table = load("mine.csv", target="buys", scale="standard").table
    text = table.to_json()                          # store it with the model
    x = Table.from_json(text).apply("new.csv")      # with or without the column of labels
    table.predictions(olx.predict(learner, state, x))
"""

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from olx._refusal import own_name
from olx.lab.data.framed import Reading, is_framed, read_frame
from olx.lab.data.readers import all_but, read_file
from olx.lab.data.scaling import Scale
from olx.lab.tasks.outcomes import finite
from olx.streams.tables import Columns, Level, from_plain, tuples


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

    @property
    def names(self) -> list[str]:
        """The names of the features; x0, x1, x2, ... if the file has none."""
        if self.columns is not None:
            names = self.columns.names
        else:
            names = [f"x{i}" for i in range(self.width) if i not in self.without]
        return [*names, "intercept"] if self.bias else names

    def apply(self, data: Any, *, allow_unknown: bool = False) -> Any:
        """The contexts of new rows: an array of shape (T, d), or a SciPy matrix if they are sparse.

        data: the path of a file, a table that narwhals reads, or an array or SciPy matrix with the
            features of the file. Labels may be there or not.
        allow_unknown: a word that is not among the categories becomes zeros; False refuses it.
        """
        x = self._features(data, allow_unknown)
        finite(_place(data), "feature", x)
        return with_bias(self.scale.apply(x.astype(float)), self.bias)

    def predictions(self, actions: Any) -> np.ndarray:
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
        scale, labels = Scale(**tuples(tree["scale"])), Labels(**tuples(tree["labels"]))
        rest = tuples({**tree, "columns": columns, "scale": scale, "labels": labels})
        return Table(**rest)

    def _features(self, data: Any, allow_unknown: bool) -> Any:
        place = _place(data)
        is_path = isinstance(data, str | os.PathLike)
        is_array = isinstance(data, np.ndarray) or scipy.sparse.issparse(data)
        if self.columns is not None:
            if is_array or (is_path and not is_framed(Path(data))):
                raise ValueError(
                    f"{place}: the columns {', '.join(self.columns.names[:3])}, ... are found by "
                    "name; give a table, or a file of columns such as .csv or .parquet."
                )
            frame = self._frame(Path(data)) if is_path else data
            with own_name(place):
                return self.columns.apply(frame, allow_unknown=allow_unknown)
        if is_path:
            rows = read_file(Path(data), Reading(encoding=self.encoding), labelled=False)
            data = rows.x
        elif not is_array:
            raise TypeError(
                f"{place}: the features are the {self.width} columns of a file without names; give "
                "an array, or the path of a file."
            )
        return all_but(place, _as_wide(place, data, self.width), self.without)

    def _frame(self, path: Path) -> Any:
        assert self.columns is not None  # `_features` has checked
        words = [each.name for each in self.columns.columns if _has_words(each.levels)]
        try:
            return read_frame(path, Reading(), words).frame
        except ValueError:
            if self.encoding is None:
                raise
            return read_frame(path, Reading(encoding=self.encoding), words).frame


def with_bias(x: Any, bias: bool) -> Any:
    """The rows with a feature that is always 1, if `bias`."""
    if not bias:
        return x
    one = np.ones((x.shape[0], 1))
    return scipy.sparse.hstack([x, one], "csr") if scipy.sparse.issparse(x) else np.hstack([x, one])


def _as_wide(place: str, x: Any, width: int) -> Any:
    """The rows with `width` columns; sparse rows may leave out the last ones."""
    if x.ndim != 2 or x.shape[1] > width or (x.shape[1] < width and not scipy.sparse.issparse(x)):
        raise ValueError(f"{place} has rows of shape {x.shape[1:]}; they need {width} features.")
    if x.shape[1] < width:
        x = scipy.sparse.csr_array((x.data, x.indices, x.indptr), shape=(x.shape[0], width))
    return x


def _has_words(levels: Sequence[Level] | None) -> bool:
    return levels is not None and any(isinstance(level, str) for level in levels)


def _place(data: Any) -> str:
    return str(data) if isinstance(data, str | os.PathLike) else "Table.apply"
