"""Tables of pandas, polars, pyarrow and others as streams.

`from_frame` finds how the columns of a table become features; `Columns` applies the same to new
rows. A column of numbers is one feature. A column of words is a category: one feature per word,
which is 1 in rows with this word and 0 in others. A `Columns` is plain data: `to_json` writes it as
text. Any table that narwhals reads is read; missing values are refused or filled.

The lab reads its files by the same rules; `olx.streams.cells` holds them.
"""

import dataclasses
import json
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from olx import _check as check
from olx._refusal import RefusedImport, RefusedType, RefusedValue, public
from olx.core import Rounds
from olx.streams.arrays import from_arrays
from olx.streams.cells import (
    Level,
    as_numbers,
    as_words,
    cells_of,
    complete_cells,
    holds_dates,
    in_one_message,
    is_number,
    missing_values,
    numbers_of,
    refuse_kind,
    short_list,
    word_of,
)
from olx.streams.dates import date_features, part_names, parts_in
from olx.streams.scales import ROWS, SCALES, Scale, fit_scale, uneven_spreads

if TYPE_CHECKING:
    from narwhals.stable.v2 import DataFrame, Series

Values = np.ndarray | list[str]  # the numbers or the words of a column, without gaps
Fill = str | float | Mapping[str, Level] | None
LEVELS = 1000  # the largest number of words of a category


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
        return _outcomes(self.target, table[self.target.name])

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


class Framed(NamedTuple):
    """A table as a stream, and the mapping that made it. New rows: `columns.apply(frame)`."""

    rounds: Rounds
    columns: Columns


@public
def from_frame(
    frame: object,
    target: str,
    *,
    features: Sequence[str] | None = None,
    categories: Sequence[str] = (),
    fill: Fill = None,
    dates: str | None = None,
    positive: Level | Sequence[Level] | None = None,
    labels: bool = False,
    scale: str = "none",
) -> Framed:
    """Make a stream from a table of pandas, polars, pyarrow, or another that narwhals reads.

    target: the column of outcomes. Numbers stay as they are. Two words, or Booleans, become -1 and
        +1: the larger one is +1. More words become classes 0, 1, 2, ... in their order.
    features: the columns to use; all but the target if None. A column of words becomes one feature
        per word, Booleans become 0 and 1.
    categories: columns of numbers or dates that are words too, such as a postcode.
    fill: replaces missing values: "mean" or "median" of the column, and its most frequent word; or
        one number for all columns of numbers; or a value per column. None refuses missing values.
    dates: "parts" makes numbers of a column of dates: its year, month, day of the week and hour, as
        `olx.streams.dates` says; None refuses dates.
    positive: the label, or the labels, that count as +1, against all others as -1.
    labels: True if the target is a class even where it is a number.
    scale: of the features: "none", "rows" (each of length 1), "standard" (each column of mean 0 and
        variance 1) or "maximum" (each column at most 1); `columns` applies it to new rows. Without
        one there is a warning if a column of numbers spreads 1000 times as far as another one.

    >>> import pyarrow
    >>> table = {"age": [20, 30, 40], "city": ["Oslo", "Bonn", "Oslo"], "buys": ["no", "yes", "no"]}
    >>> rounds, columns = from_frame(pyarrow.table(table), target="buys")
    >>> columns.names
    ['age', 'city=Bonn', 'city=Oslo']
    >>> rounds.context.tolist()[0], rounds.outcome.tolist()
    ([20.0, 0.0, 1.0], [-1.0, 1.0, -1.0])
    >>> new = pyarrow.table({"city": ["Bonn"], "age": [50]})
    >>> columns.apply(new).tolist()
    [[50.0, 1.0, 0.0]]
    """
    table = narwhals_frame(frame)
    _refuse_absent("target", [target], table.columns)
    check.flag("labels", labels)
    for word, given in (("features", features), ("categories", categories)):
        if given is not None:
            check.iterable(word, given)
    names = [name for name in table.columns if name != target] if features is None else features
    _refuse_absent("features", names, table.columns)
    if target in names:
        raise RefusedValue(f"the target {target!r} is among the features.")
    columns, values = fit_columns(table, names, categories, fill, dates)
    if len(table) == 0:
        raise RefusedValue("the table has no rows.")
    about = _fit_target(table[target], positive, labels)
    if scale not in SCALES:
        raise RefusedValue(f"scale must be one of {', '.join(SCALES)}, got {scale!r}.")
    x = features_of(columns, values)
    found = Columns(columns, about, scale=fit_scale(x, scale))
    if scale == "none" and (said := found.uneven_spreads(x)):
        warnings.warn(f'from_frame: {said}; give scale = "standard".', stacklevel=3)
    whole = about.labels is not None and about.positive is None
    y = _outcomes(about, table[target])
    return Framed(from_arrays(found.scale.apply(x), y, labels=whole), found)


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


def fit_columns(
    table: "DataFrame",
    names: Sequence[str],
    categories: Sequence[str],
    fill: Fill,
    dates: str | None = None,
    problems: Mapping[str, str] = MappingProxyType({}),
) -> tuple[tuple[Column, ...], list[Values]]:
    """The columns `names` of a table as they are there, their words and what fills gaps; and the
    values of each column, with gaps filled.

    problems: what is known to be wrong with a column, by its name.
    """
    _refuse_absent("categories", categories, names)
    if isinstance(fill, Mapping):
        _refuse_absent("fill", list(fill), names)
    elif isinstance(fill, str) and fill not in ("mean", "median"):
        raise RefusedValue(
            f'fill must be "mean", "median", a number, or a value per column, got {fill!r}.'
        )
    if dates not in (None, "parts"):
        raise RefusedValue(f'dates must be "parts", or None to refuse them, got {dates!r}.')
    if not names:
        raise RefusedValue("there is no column of features.")
    gaps: dict[str, np.ndarray] = {}
    found: list[tuple[Column, Values]] = []
    said = list(problems.values())
    for name in [name for name in names if name not in problems]:
        try:
            found.append(_fit_column(table[name], name in categories, fill, dates, gaps))
        except RefusedValue as error:
            said.append(str(error))
    if gaps:
        said.append(str(missing_values(gaps)))
    if said:
        raise RefusedValue(in_one_message(said))
    return tuple(column for column, _ in found), [values for _, values in found]


def _fit_column(
    series: "Series", category: bool, fill: Fill, dates: str | None, gaps: dict[str, np.ndarray]
) -> tuple[Column, Values]:
    if dates and not category and holds_dates(series):
        column = Column(series.name, parts=parts_in(series))
        return column, column.values(series)
    refuse_kind(series, category=category)
    words = category or not is_number(series)
    return (_fit_category if words else _fit_numbers)(series, fill, gaps)


def _fit_numbers(
    series: "Series", fill: Fill, gaps: dict[str, np.ndarray]
) -> tuple[Column, np.ndarray]:
    numbers = numbers_of(series)
    value = fill.get(series.name) if isinstance(fill, Mapping) else fill
    missing = np.isnan(numbers)
    if np.all(missing):
        raise RefusedValue(f"column {series.name!r} holds no value; leave it out.")
    if value in ("mean", "median"):
        value = float({"mean": np.mean, "median": np.median}[str(value)](numbers[~missing]))
    if value is not None and (isinstance(value, str) or not np.isfinite(value)):
        raise RefusedValue(f"fill of the numbers in {series.name!r} is {value!r}.")
    if value is None:
        if np.any(missing):
            gaps[series.name] = missing
        return Column(series.name), numbers
    filled = np.where(missing, value, numbers) if np.any(missing) else numbers
    return Column(series.name, None, float(value)), filled


def _fit_category(
    series: "Series", fill: Fill, gaps: dict[str, np.ndarray]
) -> tuple[Column, list[str]]:
    words = [None if cell is None else word_of(cell) for cell in cells_of(series)]
    count = Counter(word for word in words if word is not None)
    if not count:
        raise RefusedValue(f"column {series.name!r} holds no value; leave it out.")
    given = fill.get(series.name) if isinstance(fill, Mapping) else None
    value = None if given is None else word_of(given)
    if isinstance(fill, str):
        value = min(count, key=lambda word: (-count[word], word))
    if value is None and len(words) > count.total():
        gaps[series.name] = np.array([word is None for word in words])
    levels: list[str] = sorted({*count, *([] if value is None else [value])})
    if len(levels) > LEVELS:
        raise RefusedValue(
            f"column {series.name!r} holds {len(levels)} different words, such as "
            f"{short_list(levels[:3])}; {LEVELS} are the most. Leave it out, or give the rows to "
            "`olx.streams.from_dicts`, which can hash them."
        )
    filled = [word or value or "" for word in words]  # a gap that nothing fills is refused
    return Column(series.name, tuple(levels), value), filled


def _fit_target(series: "Series", positive: Level | Sequence[Level] | None, labels: bool) -> Target:
    import narwhals.stable.v2 as narwhals

    name = series.name
    refuse_kind(series)
    plain = is_number(series) and series.dtype not in (narwhals.Boolean, narwhals.Object)
    if plain and not labels and positive is None:
        return Target(name)
    found = tuple(
        sorted(
            set(complete_cells(series)),
            key=lambda label: (isinstance(label, str), label),
        )
    )
    if positive is not None:
        chosen = (positive,) if isinstance(positive, Level) else tuple(positive)
        _refuse_absent("positive", chosen, found, "label")
        return Target(name, None, chosen)
    if len(found) < 2:
        raise RefusedValue(f"the target {name!r} holds {short_list(found)} alone.")
    return Target(name, found, found[1:] if len(found) == 2 and not labels else None)


def _outcomes(target: Target, series: "Series") -> np.ndarray:
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


def _refuse_absent(
    what: str, asked: Iterable[Level], there: Sequence[Level], kind: str = "column"
) -> None:
    """Refuse a name that is not there."""
    for name in asked:
        if name not in there:
            raise RefusedValue(
                f"`{what}` names the {kind} {name!r}; there are {short_list(there)}."
            )
