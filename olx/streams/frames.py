"""Tables of pandas, polars, pyarrow and others as streams."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from olx import _check as check
from olx.core import Rounds
from olx.streams.arrays import from_arrays
from olx.streams.cells import (
    LEVELS,
    Level,
    as_numbers,
    as_words,
    is_missing,
    is_number,
    missing_values,
    opened,
    refuse_kind,
    words_of,
)
from olx.streams.columns import Column, Columns, Target, outcomes

Fill = str | float | Mapping[str, Level] | None


class Framed(NamedTuple):
    """A table as a stream, and the mapping that made it. New rows: `columns.apply(frame)`."""

    rounds: Rounds
    columns: Columns


def from_frame(
    frame: Any,
    target: str,
    *,
    features: Sequence[str] | None = None,
    categories: Sequence[str] = (),
    fill: Fill = None,
    positive: Level | Sequence[Level] | None = None,
    labels: bool = False,
) -> Framed:
    """Make a stream from a table of pandas, polars, pyarrow, or another that narwhals reads.

    target: the column of outcomes. Numbers stay as they are. Two words, or Booleans, become -1 and
        +1: the larger one is +1. More words become classes 0, 1, 2, ... in their order.
    features: the columns to use; all but the target if None. A column of words becomes one feature
        per word, Booleans become 0 and 1. Dates are refused.
    categories: columns of numbers that are words too, such as a postcode.
    fill: replaces missing values: "mean" or "median" of the column, and its most frequent word; or
        one number for all columns of numbers; or a value per column. None refuses missing values.
    positive: the label, or the labels, that count as +1, against all others as -1.
    labels: True if the target is a class even where it is a number.

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
    owner = "from_frame"
    table = opened(owner, frame)
    refuse_absent(owner, "target", [target], table.columns)
    check.flag(owner, "labels", labels)
    for word, given in (("features", features), ("categories", categories)):
        if given is not None:
            check.iterable(owner, word, given)
    names = [name for name in table.columns if name != target] if features is None else features
    refuse_absent(owner, "features", names, table.columns)
    if target in names:
        raise ValueError(f"{owner}: the target {target!r} is among the features.")
    columns = fitted(owner, table, names, categories, fill)
    if len(table) == 0:
        raise ValueError(f"{owner}: the table has no rows.")
    about = _target(owner, table[target], positive, labels)
    found = Columns(columns, about)
    y = outcomes(owner, about, table[target])
    whole = about.labels is not None and about.positive is None
    return Framed(from_arrays(found.apply(table, owner=owner), y, labels=whole), found)


def fitted(
    owner: str, table: Any, names: Sequence[str], categories: Sequence[str], fill: Fill
) -> tuple[Column, ...]:
    """The columns `names` of a table as they are there: their words, and what fills gaps."""
    refuse_absent(owner, "categories", categories, names)
    if isinstance(fill, Mapping):
        refuse_absent(owner, "fill", list(fill), names)
    elif isinstance(fill, str) and fill not in ("mean", "median"):
        raise ValueError(
            f'{owner}: fill must be "mean", "median", a number, or a value per column, got '
            f"{fill!r}."
        )
    if not names:
        raise ValueError(f"{owner}: there is no column of features.")
    gaps: dict[str, np.ndarray] = {}
    found = []
    for name in names:
        refuse_kind(owner, table[name])
        words = name in categories or not is_number(table[name])
        fit = _category if words else _numbers
        found.append(fit(owner, table[name], fill, gaps))
    if gaps:
        raise missing_values(owner, gaps)
    return tuple(found)


def _numbers(owner: str, series: Any, fill: Fill, gaps: dict[str, np.ndarray]) -> Column:
    numbers = as_numbers(owner, series, np.nan)
    value = fill.get(series.name) if isinstance(fill, Mapping) else fill
    missing = np.isnan(numbers)
    if np.all(missing):
        raise ValueError(f"{owner}: column {series.name!r} holds no value; leave it out.")
    if value in ("mean", "median"):
        value = float({"mean": np.mean, "median": np.median}[str(value)](numbers[~missing]))
    if value is not None and (isinstance(value, str) or not np.isfinite(value)):
        raise ValueError(f"{owner}: fill of the numbers in {series.name!r} is {value!r}.")
    if value is None and np.any(missing):
        gaps[series.name] = missing
    return Column(series.name, None, None if value is None else float(value))


def _category(owner: str, series: Any, fill: Fill, gaps: dict[str, np.ndarray]) -> Column:
    cells = series.to_list()
    count = Counter(cell for cell in cells if not is_missing(cell))
    value = None
    if isinstance(fill, Mapping):
        value = fill.get(series.name)
    elif isinstance(fill, str):
        value = min(count, key=lambda word: (-count[word], str(word)))
    missing = np.array([is_missing(cell) for cell in cells])
    if value is None and np.any(missing):
        gaps[series.name] = missing
    levels = sorted({*count, *([] if value is None else [value])}, key=_order)
    if len(levels) > LEVELS:
        raise ValueError(
            f"{owner}: column {series.name!r} holds {len(levels)} different words, such as "
            f"{words_of(levels[:3])}; {LEVELS} are the most. Leave it out, or give the rows to "
            "`olx.streams.from_dicts`, which can hash them."
        )
    return Column(series.name, tuple(levels), value)


def _target(owner: str, series: Any, positive: Any, labels: bool) -> Target:
    name = series.name
    refuse_kind(owner, series)
    words = as_words(owner, series, None) if positive is not None or labels else None
    if positive is not None:
        chosen = (positive,) if isinstance(positive, Level) else tuple(positive)
        refuse_absent(owner, "positive", chosen, sorted(set(words or ()), key=_order), "label")
        return Target(name, None, chosen)
    import narwhals.stable.v2 as narwhals

    plain = is_number(series) and series.dtype not in (narwhals.Boolean, narwhals.Object)
    if plain and not labels:
        return Target(name)
    found: tuple[Level, ...] = tuple(sorted(set(as_words(owner, series, None)), key=_order))
    if len(found) < 2:
        raise ValueError(f"{owner}: the target {name!r} holds {words_of(found)} alone.")
    if len(found) == 2 and not labels:
        return Target(name, found, found[1:])
    return Target(name, found)


def refuse_absent(
    owner: str, what: str, asked: Sequence[Any], there: Sequence[Any], kind: str = "column"
) -> None:
    """Refuse a name that is not there."""
    for name in asked:
        if name not in there:
            raise ValueError(
                f"{owner}: `{what}` names the {kind} {name!r}; there are {words_of(there)}."
            )


def _order(word: Level) -> tuple[bool, Any]:
    """Numbers by size, then words by letter."""
    return (isinstance(word, str), word)
