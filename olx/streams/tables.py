"""Tables of pandas, polars, pyarrow and others as streams.

`from_frame` finds how the columns of a table become features: which hold numbers, which hold words
and how many, and what fills gaps. `olx.streams.Columns` applies the same to new rows. Missing
values are refused or filled.

The lab reads its files by the same rules; `olx.streams.cells` holds them.
"""

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from olx import _check as check
from olx._refusal import RefusedValue, public
from olx.core import Rounds
from olx.streams.arrays import from_arrays
from olx.streams.cells import (
    Level,
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
from olx.streams.columns import (
    Column,
    Columns,
    Target,
    Values,
    features_of,
    narwhals_frame,
    outcomes_in,
)
from olx.streams.dates import parts_in
from olx.streams.scales import SCALES, fit_scale

if TYPE_CHECKING:
    from narwhals.stable.v2 import DataFrame, Series

Fill = str | float | Mapping[str, Level] | None
LEVELS = 1000  # the largest number of words of a category


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
    y = outcomes_in(about, table[target])
    return Framed(from_arrays(found.scale.apply(x), y, labels=whole), found)


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


def _refuse_absent(
    what: str, asked: Iterable[Level], there: Sequence[Level], kind: str = "column"
) -> None:
    """Refuse a name that is not there."""
    for name in asked:
        if name not in there:
            raise RefusedValue(
                f"`{what}` names the {kind} {name!r}; there are {short_list(there)}."
            )
