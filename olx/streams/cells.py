"""What a cell of a table means: a number, a word, a date, or a missing value.

Frames, CSV files, Parquet files and predictions for new rows ask here, so a table means the same
in each of them. Spaces around words are dropped. None, NaN and the words in `MISSING`, such as the
empty one, are missing values. Booleans are the numbers 0 and 1. Dates are neither numbers nor
words.
"""

import datetime
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from olx._refusal import RefusedValue

if TYPE_CHECKING:
    from narwhals.stable.v2 import Series

Level = str | int | float | bool  # a label, or a word of a category; JSON keeps all of these
PROBLEMS = 10  # of columns that one message says
MISSING = ["", "?", "NA", "N/A", "#N/A", "n/a", "NaN", "nan", "NAN", "-NaN", "-nan", "NULL", "null"]
_PLAIN, _GROUPS = r"\d+([.,]\d+)?", r"\d{1,3}([,.' \u00a0]\d{3})+([.,]\d+)?"
_SIGNED = re.compile(rf"[-+]?\s*[$€£¥]?\s*[-+]?({_PLAIN}|{_GROUPS})\s*[%$€£¥]?")
_TIME = r"\d\d:\d\d(:\d\d(\.\d+)?)?"
_DATE = re.compile(rf"\d{{4}}-\d\d-\d\d([ T]{_TIME}(Z|[+-]\d\d(:?\d\d)?)?)?|{_TIME}")
_DAY = r"\d{1,2}([/.-])\d{1,2}\1\d{4}|\d{1,2}/\d{1,2}/\d\d|\d{4}([/.])\d{1,2}\2\d{1,2}"
_CLOCK = r"[ T,]+\d{1,2}:\d\d(:\d\d)?( ?[AaPp][Mm])?"
_OTHER_DATE = re.compile(rf"(?:{_DAY})({_CLOCK})?")


def is_number(series: "Series") -> bool:
    """Whether a column holds numbers; Booleans are the numbers 0 and 1."""
    import narwhals.stable.v2 as narwhals

    if series.dtype == narwhals.Object:
        there = [cell for cell in cells_of(series) if cell is not None]
        return bool(there) and all(isinstance(cell, bool) for cell in there)
    return series.dtype.is_numeric() or series.dtype == narwhals.Boolean


def holds_dates(series: "Series") -> bool:
    """Whether all cells of a column are dates or times, at least one."""
    if is_number(series):
        return False
    there = [cell for cell in cells_of(series) if cell is not None]
    return bool(there) and all(map(_is_date, there))


def refuse_kind(series: "Series", category: bool = False) -> None:
    """Refuse a column that holds neither numbers nor words, such as dates, or `$5`.

    category: whether dates count as words.
    """
    import narwhals.stable.v2 as narwhals

    if is_number(series):
        return
    words = (narwhals.String, narwhals.Categorical, narwhals.Enum, narwhals.Object)
    dates = (narwhals.Date, narwhals.Datetime, narwhals.Time)
    cells = cells_of(series)
    there = [cell for cell in cells if cell is not None]
    if not there:
        raise RefusedValue(f"column {series.name!r} holds no value; leave it out.")
    if series.dtype not in words and not (category and series.dtype in dates):
        raise RefusedValue(
            f"column {series.name!r} holds {series.dtype}; make it a number or a word, or leave it "
            + ('out; dates = "parts" makes numbers of it.' if series.dtype in dates else "out.")
        )
    if all(_is_date(cell) for cell in there):
        if category:
            return
        raise RefusedValue(
            f"column {series.name!r} holds dates, such as {str(there[0])!r}; make it a number, "
            f"leave it out, take all as words: categories = [{series.name!r}], or make numbers of "
            'them: dates = "parts".'
        )
    if not category and series.dtype in (narwhals.String, narwhals.Object):
        found = {cell for cell in there if isinstance(cell, str)}
        _refuse_signs(series.name, found)
        _refuse_other_dates(series.name, found)
    for row, cell in enumerate(cells if series.dtype == narwhals.Object else ()):
        if cell is not None and not isinstance(cell, str):
            raise RefusedValue(
                f"column {series.name!r} holds words and the "
                f"{type(cell).__name__} {cell!r} in row {row}; make all of them of one kind."
            )


def _refuse_signs(name: str, words: set[str]) -> None:
    """Refuse a column of words of which most are numbers with other signs, such as 1,000 or $5.

    What they mean is not always clear: 1,000 is 1 or 1000, and 12% is 12 or 0.12.
    """
    odd = set(filter(has_other_signs, words))
    alike = [word for word in words if word in odd or _is_float(word)]
    if odd and 2 * len(alike) > len(words):
        raise RefusedValue(
            f"column {name!r} holds numbers with other signs, such as {min(odd)!r}; write them "
            "with digits and a decimal point alone, as 1234.5, leave the column out, or take all "
            f"as words: categories = [{name!r}]."
        )


def _refuse_other_dates(name: str, words: set[str]) -> None:
    """Refuse a column of dates such as 31/12/2024: 1/2/2024 may be in January or in February."""
    if words and all(map(_OTHER_DATE.fullmatch, words)):
        raise RefusedValue(
            f"column {name!r} holds dates such as {max(words)!r}; write them as 2024-12-31, leave "
            f"the column out, or take all as words: categories = [{name!r}]."
        )


def has_other_signs(word: str) -> bool:
    """Whether a word is a number with other signs than those of a float, such as 1,000 or $5."""
    return _SIGNED.fullmatch(word) is not None and not _is_float(word)


def _is_float(word: str) -> bool:
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False


def cells_of(series: "Series") -> list[Any]:
    """The cells of a column, None if one is missing; words without the spaces around them."""
    return [_clean(cell) for cell in series.to_list()]


def _clean(cell: Any) -> Any:
    if isinstance(cell, str):
        cell = cell.strip()
        return None if cell in MISSING else cell
    try:
        return cell if cell is None or cell == cell else None  # NaN and NaT differ from themselves
    except TypeError:  # pandas.NA
        return None


def _is_date(cell: object) -> bool:
    if isinstance(cell, str):
        return _DATE.fullmatch(cell) is not None
    return isinstance(cell, datetime.date | datetime.time)


def word_of(cell: object) -> str:
    """A cell of a category as text: 3, 3.0 and "3.0" are the word 3, midnight is its date."""
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        cell = cell.date()
    word = str(cell)
    return word[:-2] if word.endswith(".0") and word[:-2].lstrip("-").isdigit() else word


def as_numbers(series: "Series", fill: Level | None) -> np.ndarray:
    """The numbers of a column, with `fill` where one is missing; None refuses that."""
    numbers = numbers_of(series)
    missing = np.isnan(numbers)
    if not np.any(missing):
        return numbers
    if fill is None:
        raise missing_values({series.name: missing})
    return np.where(missing, fill, numbers)


def numbers_of(series: "Series") -> np.ndarray:
    """The numbers of a column, NaN where one is missing."""
    import narwhals.stable.v2 as narwhals

    if is_number(series):
        return np.asarray(series.cast(narwhals.Float64).to_numpy(), float)
    for cell in cells_of(series):
        if cell is not None:
            raise RefusedValue(f"column {series.name!r} holds {cell!r}; it must hold numbers.")
    return np.full(len(series), np.nan)


def as_words(series: "Series", fill: Level | None) -> list[str]:
    """The words of a category, with `fill` where one is missing; None refuses that."""
    return [word_of(cell) for cell in complete_cells(series, fill)]


def complete_cells(series: "Series", fill: Level | None = None) -> list[Any]:
    """The cells of a column, with `fill` where one is missing; None refuses that."""
    cells = [fill if cell is None else cell for cell in cells_of(series)]
    if None in cells:
        raise missing_values({series.name: np.array([cell is None for cell in cells])})
    return cells


def missing_values(found: dict[str, np.ndarray]) -> ValueError:
    """The refusal of missing values, by column."""
    columns = [
        f"{name!r} ({int(gone.sum())} of {len(gone)} rows, the first is row {int(gone.argmax())})"
        for name, gone in found.items()
    ]
    more = f" and {len(columns) - 3} more" if len(columns) > 3 else ""
    return RefusedValue(
        f"values are missing in column {', '.join(columns[:3])}{more}; drop these rows, or "
        'fill them: fill = "mean" or "median", or a value per column, such as '
        f"{{ {next(iter(found))} = 0 }}."
    )


def in_one_message(problems: Sequence[str]) -> str:
    """The problems of all columns, ten at most.

    >>> in_one_message(["Column a is empty.", "Column b is empty."])
    'Column a is empty. Also: Column b is empty.'
    """
    more = f" And {len(problems) - PROBLEMS} more." if len(problems) > PROBLEMS else ""
    return " Also: ".join(problems[:PROBLEMS]) + more


def short_list(values: Sequence[Level]) -> str:
    return ", ".join(map(str, values[:8])) + (", ..." if len(values) > 8 else "")
