"""Read the cells of a column, of any table that narwhals reads; missing values are refused."""

from collections.abc import Iterable
from typing import Any

import numpy as np

Level = str | int | float | bool  # a word of a category; JSON keeps all of these
LEVELS = 1000  # the largest number of words of a category


def opened(owner: str, frame: Any) -> Any:
    """The table as a frame of narwhals."""
    try:
        import narwhals.stable.v2 as narwhals
    except ImportError as error:
        raise ImportError(f"{owner} needs narwhals: pip install 'olx[lab]'.") from error
    if isinstance(frame, narwhals.DataFrame):
        return frame
    try:
        return narwhals.from_native(frame, eager_only=True)
    except TypeError:
        lazy = hasattr(frame, "collect")
        remedy = "call its collect() first" if lazy else "arrays go into olx.streams.from_arrays"
        raise TypeError(
            f"{owner}: `frame` is a {type(frame).__name__}; give a table of pandas, polars, "
            f"pyarrow or another that narwhals reads; {remedy}."
        ) from None


def is_number(series: Any) -> bool:
    """Whether a column holds numbers; Booleans are the numbers 0 and 1."""
    import narwhals.stable.v2 as narwhals

    if series.dtype == narwhals.Object:
        there = [cell for cell in series.to_list() if not is_missing(cell)]
        return bool(there) and all(isinstance(cell, bool) for cell in there)
    return series.dtype.is_numeric() or series.dtype == narwhals.Boolean


def refuse_kind(owner: str, series: Any) -> None:
    """Refuse a column that holds neither numbers nor words, such as dates."""
    import narwhals.stable.v2 as narwhals

    if is_number(series):
        return
    cells = series.to_list()
    if all(is_missing(cell) for cell in cells):
        raise ValueError(f"{owner}: column {series.name!r} holds no value; leave it out.")
    words = (narwhals.String, narwhals.Categorical, narwhals.Enum, narwhals.Object)
    if series.dtype not in words:
        raise ValueError(
            f"{owner}: column {series.name!r} holds {series.dtype}; make it a number or a word, "
            "or leave it out."
        )
    if series.dtype == narwhals.Object:
        for row, cell in enumerate(cells):
            if not is_missing(cell) and not isinstance(cell, str):
                raise ValueError(
                    f"{owner}: column {series.name!r} holds words and the "
                    f"{type(cell).__name__} {cell!r} in row {row}; make all of them of one kind."
                )


def is_missing(cell: Any) -> bool:
    """Whether a cell is empty: None, NaN, NA or NaT, all but the first of which differ from
    themselves or cannot be compared."""
    try:
        return cell is None or not bool(cell == cell)
    except TypeError:
        return True


def as_numbers(owner: str, series: Any, fill: Any) -> np.ndarray:
    """The numbers of a column, with `fill` where one is missing; None refuses that."""
    import narwhals.stable.v2 as narwhals

    if is_number(series):
        numbers = np.asarray(series.cast(narwhals.Float64).to_numpy(), float)
    else:
        there = [cell for cell in series.to_list() if not is_missing(cell)]
        if there:
            raise ValueError(
                f"{owner}: column {series.name!r} holds {there[0]!r}; it must hold numbers."
            )
        numbers = np.full(len(series), np.nan)
    missing = np.isnan(numbers)
    if not np.any(missing):
        return numbers
    if fill is None:
        raise missing_values(owner, {series.name: missing})
    return np.where(missing, fill, numbers)


def as_words(owner: str, series: Any, fill: Any) -> list[Level]:
    """The words of a column, with `fill` where one is missing; None refuses that."""
    cells = series.to_list()
    missing = [is_missing(cell) for cell in cells]
    if not any(missing):
        return cells
    if fill is None:
        raise missing_values(owner, {series.name: np.array(missing)})
    return [fill if gone else cell for cell, gone in zip(cells, missing, strict=True)]


def missing_values(owner: str, found: dict[str, np.ndarray]) -> ValueError:
    """The refusal of missing values, by column."""
    told = [
        f"{name!r} ({int(gone.sum())} of {len(gone)} rows, the first is row {int(gone.argmax())})"
        for name, gone in found.items()
    ]
    more = f" and {len(told) - 3} more" if len(told) > 3 else ""
    return ValueError(
        f"{owner}: values are missing in column {', '.join(told[:3])}{more}; drop these rows, or "
        'fill them: fill = "mean" or "median", or a value per column, such as '
        f"{{ {next(iter(found))} = 0 }}."
    )


def words_of(values: Iterable[Any]) -> str:
    values = [str(value) for value in values]
    return ", ".join(values[:8]) + (", ..." if len(values) > 8 else "")
