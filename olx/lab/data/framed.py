"""Files whose columns have names or numbers: CSV, TSV, Parquet and Arrow."""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from olx._refusal import RefusedValue
from olx.lab.config import nearest
from olx.lab.data.csv_table import Named, read_csv
from olx.lab.data.unpacking import COMPRESSED, check_size
from olx.streams.tables import (
    Columns,
    Fill,
    as_numbers,
    fitted,
    is_missing,
    is_number,
    opened,
    refuse_kind,
)

TEXT = (".csv", ".tsv")
ARROW = (".arrow", ".feather", ".ipc")
PARQUET = (".parquet", ".pq")


class Reading(NamedTuple):
    """How the columns of a file are read; the fields are arguments of `olx.lab.data.load`."""

    target: str | int | None = None
    without: Sequence[int | str] = ()
    categories: Sequence[str] = ()
    fill: Fill = None
    encoding: str | None = None
    separator: str | None = None
    header: bool | None = None
    unpack: float | None = None


def kind(path: Path) -> str:
    """The suffix that says the format, without that of the compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED and len(suffixes) > 1:
        return suffixes[-2]
    return suffixes[-1] if suffixes else ""


def is_framed(path: Path) -> bool:
    return kind(path) in TEXT + ARROW + PARQUET


def read_frame(path: Path, reading: Reading, words: Collection[str] = ()) -> Named:
    """The table of a file, as it is there.

    words: columns of a CSV file that are read as words even if they hold numbers.
    """
    if kind(path) in TEXT:
        return read_csv(
            path,
            encoding=reading.encoding,
            separator=reading.separator,
            header=reading.header,
            words=words,
            labels=-1 if reading.target is None else reading.target,
            unpack=reading.unpack,
        )
    try:
        table = _parquet(path, reading.unpack) if kind(path) in PARQUET else _arrow(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path} cannot be read: {str(error).rstrip('.')}.") from error
    index = [name for name in table.column_names if re.fullmatch(r"__index_level_\d+__", name)]
    for name in table.column_names:
        if table.column_names.count(name) > 1:
            raise ValueError(f"{path} has two columns {name!r}; rename one of them.")
    if len(table) == 0:
        raise ValueError(f"{path} holds no rows.")
    return Named(table.drop_columns(index))


def features_and_labels(
    place: str, found: Named, reading: Reading, labelled: bool
) -> tuple[np.ndarray, np.ndarray | None, Columns, str]:
    """The features of a table, its labels, how its columns became features, and the name of the
    column of labels.

    labelled: whether the last column holds the labels if `reading` names none.
    """
    table = opened(found.frame)
    names = list(table.columns)
    target = None
    if labelled or reading.target is not None:
        target = names[_column(place, reading.target, names, found.named)]
        names.remove(target)
    if not names:
        raise ValueError(f"{place} has one column, the labels; there must be a feature.")
    for each in reading.without:
        if isinstance(each, int) and not 0 <= each < len(names):
            raise ValueError(f"{place} has the columns 0 to {len(names) - 1}; {each} is none.")
        if isinstance(each, str) and each not in names:
            raise ValueError(f"{place} has no column {each!r} to leave out; {nearest(each, names)}")
    left = {names[each] if isinstance(each, int) else each for each in reading.without}
    names = [name for name in names if name not in left]
    _refuse_counter(place, table, names)
    columns = Columns(fitted(table, names, reading.categories, reading.fill), None, found.named)
    y = None if target is None else labels_of(table[target])
    return columns.apply(table), y, columns, target or ""


def labels_of(series: Any) -> np.ndarray:
    """The labels of a column: numbers, Booleans or words."""
    import narwhals.stable.v2 as narwhals

    refuse_kind(series)
    numbers = as_numbers(series, np.nan) if is_number(series) else None
    words = [] if numbers is not None else series.to_list()
    missing = (
        np.array([is_missing(word) for word in words]) if numbers is None else np.isnan(numbers)
    )
    if np.any(missing):
        raise RefusedValue(
            f"the label in column {series.name!r} is missing in {int(missing.sum())} of "
            f"{len(missing)} rows, the first is row {int(missing.argmax())}; drop these rows."
        )
    if numbers is None:
        return np.array(words)
    return numbers == 1 if series.dtype in (narwhals.Boolean, narwhals.Object) else numbers


def _parquet(path: Path, unpack: float | None) -> pa.Table:
    import pyarrow.parquet

    about = pyarrow.parquet.read_metadata(path)
    pages = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    check_size(path, max(pages, 8 * about.num_rows * about.num_columns), unpack)
    return pyarrow.parquet.read_table(path)


def _arrow(path: Path) -> pa.Table:
    """The table of an Arrow file, or of an Arrow stream."""
    import pyarrow.feather

    with path.open("rb") as file:
        start = file.read(6)
    if start in (b"ARROW1", b"FEA1\0\0") or start[:4] == b"FEA1":
        return pyarrow.feather.read_table(path)
    with pa.input_stream(str(path)) as stream:
        return pa.ipc.open_stream(stream).read_all()


def _column(place: str, target: str | int | None, names: list[str], named: bool) -> int:
    width = len(names)
    if target is None:
        return width - 1
    if isinstance(target, int):
        if not -width <= target < width:
            raise ValueError(f"{place} has {width} columns; there is no column {target}.")
        return target % width
    if not named:
        raise ValueError(f"{place} has no column {target!r}, for it has no header.")
    if target not in names:
        hint = nearest(target, names, f"it has {', '.join(names)}.")
        raise ValueError(f"{place} has no column {target!r}; {hint}")
    return names.index(target)


def _refuse_counter(place: str, table: Any, names: list[str]) -> None:
    """Refuse a first column without a name that counts the rows: the index of pandas."""
    if names and names[0] in ("", "Unnamed: 0") and is_number(table[names[0]]):
        numbers = as_numbers(table[names[0]], np.nan)
        if np.array_equal(numbers, np.arange(len(numbers))):
            raise ValueError(
                f"{place}: its first column has no name and counts the rows; leave it out: without "
                "= [0], or save the table without its index."
            )
