"""Read a CSV file as a table of pyarrow; errors name the row and the column, from 0 on.

The separator is the one of `,`, `;`, tab and `|` that cuts the first row into most columns. The
first row names the columns if it holds no number, or if its numbers count the columns, from 0 on.
Cells such as `NA`, `?`, `nan` and empty ones are missing values.
"""

import csv
import functools
import io
import mmap
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv as arrow_csv

from olx.lab.data.broken_csv import is_utf16, not_decoded, refusal
from olx.lab.data.csv_guesses import MISSING, is_header, number, separator_of
from olx.lab.data.csv_guesses import floats as floats_in
from olx.lab.data.unpacking import COMPRESSED, pieces

pc: Any = pyarrow.compute  # its functions are made when it is imported
_SAMPLE, _BLOCK = 1 << 16, 1 << 18  # bytes


class Named(NamedTuple):
    """A table, and whether its columns have names; else they are called 0, 1, 2, ..."""

    frame: pa.Table
    named: bool = True


def read_csv(
    path: Path,
    *,
    encoding: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    words: Collection[str] = (),
    labels: str | int | None = None,
    unpack: float | None = None,
) -> Named:
    """The table in a CSV file, plain or compressed (.gz, .bz2, .zst).

    encoding: of the text; UTF-8 if None.
    header: whether the first row names the columns; None decides as above.
    words: names of columns that are read as words even if they hold numbers.
    labels: the column, by name or number, that may hold both numbers and words.
    unpack: the most megabytes that a compressed file may become; `unpacking` says the usual limit.
    """
    data = _bytes(path, unpack)
    sample = _sample(path, data, encoding)
    separator = separator or separator_of(path, sample)
    quoted = data.find(b'"') >= 0
    try:
        if quoted and encoding is None and bytes(data).count(b'"') % 2:
            for _ in csv.reader(
                io.StringIO(bytes(data).decode(errors="replace"), newline=""),
                delimiter=separator,
                strict=True,
            ):
                pass  # a quote that never ends is an error
        reader = csv.reader(io.StringIO(sample, newline=""), delimiter=separator)
        rows = [row for row in reader if row]
    except csv.Error as error:
        raise refusal(path, data, encoding, separator, bool(header), error) from None
    named = bool(rows) and (is_header(rows) if header is None else header)
    if len(rows) == int(named):
        raise ValueError(f"{path} holds no rows.")
    names = [cell.strip() for cell in rows[0]] if named else list(map(str, range(len(rows[0]))))
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{path} has two columns {name!r}; rename one of them.")
    kinds = {name: pa.string() for name in words if name in names}
    floats = {name: pa.float64() for name in floats_in(names, rows[int(named) :])}
    read = functools.partial(
        arrow_csv.ReadOptions,
        column_names=names,
        skip_rows=int(named),
        encoding=encoding or "utf8",
    )
    options = {
        "parse_options": arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=quoted),
    }
    try:
        try:  # small blocks stay in the cache; to know the kinds is faster than to infer them
            table = arrow_csv.read_csv(
                pa.py_buffer(data),
                read_options=read(block_size=_BLOCK),
                convert_options=_convert(floats | kinds, known=len(floats | kinds) == len(names)),
                **options,
            )
        except pa.ArrowInvalid:
            table = arrow_csv.read_csv(
                pa.py_buffer(data),
                read_options=read(block_size=min(max(len(data), 1), 2**31 - 1)),
                convert_options=_convert(kinds),
                **options,
            )
    except (pa.ArrowInvalid, UnicodeDecodeError, LookupError) as error:
        raise refusal(path, data, encoding, separator, named, error) from None
    if any(pa.types.is_binary(kind) for kind in table.schema.types):
        raise not_decoded(path, data, encoding)
    if isinstance(labels, int) and -len(names) <= labels < len(names):
        labels = names[labels]
    columns = [
        _told(path, name, column, separator, name in words, name == labels)
        for name, column in zip(names, table.columns, strict=True)
    ]
    return Named(pa.table(columns, names=names), named)


def _convert(kinds: dict[str, Any], known: bool = False) -> arrow_csv.ConvertOptions:
    """known: whether all kinds are known; then a missing number is an error, and `_told` finds
    missing words. This is faster."""
    return arrow_csv.ConvertOptions(
        null_values=[] if known else MISSING,
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        column_types=kinds,
    )


def _told(path: Path, name: str, column: Any, separator: str, words: bool, label: bool) -> Any:
    """A column of words without spaces around them, as numbers if all are numbers."""
    if not pa.types.is_string(column.type):
        return column
    column = pc.utf8_trim_whitespace(column)
    column = pc.if_else(pc.is_in(column, pa.array(MISSING)), pa.scalar(None, pa.string()), column)
    if words:
        return column
    cells = [cell for cell in pc.unique(column).to_pylist() if cell is not None]
    for decimal in [each for each in ".," if each != separator]:
        if cells and all(number(cell.replace(decimal, ".")) is not None for cell in cells):
            return pc.cast(pc.replace_substring(column, decimal, "."), pa.float64())
    odd = [cell for cell in cells if number(cell) is None]
    if len(odd) == len(cells):
        return column
    row = column.to_pylist().index(odd[0])
    where = f"{path} holds {odd[0]!r} at row {row}, column {name}, where other rows hold numbers"
    if label and row == 0 and len(odd) == 1:
        raise ValueError(f"{where}; give header = true if row 0 names the columns.")
    if label:
        return column
    raise ValueError(
        f'{where}; encode it as a number, or give categories = ["{name}"] to take all as words.'
    )


def _bytes(path: Path, unpack: float | None) -> Any:
    """The bytes of a file, decompressed; a plain file is mapped into memory."""
    try:
        if path.suffix.lower() in COMPRESSED:
            return b"".join(pieces(path, unpack))
        with path.open("rb") as plain:
            return mmap.mmap(plain.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, pa.ArrowInvalid) as error:
        raise ValueError(f"{path} cannot be read: {str(error).rstrip('.')}.") from error
    except ValueError:  # there is no map of an empty file
        return b""


def _sample(path: Path, data: Any, encoding: str | None) -> str:
    """The first lines of the text, without the last one, which may be cut."""
    start = data[:_SAMPLE]
    if encoding is None and is_utf16(start):
        raise not_decoded(path, data, encoding)
    try:
        text = start.decode(encoding or "utf-8-sig", errors="replace")
    except LookupError:
        raise ValueError(f"{path}: there is no encoding {encoding!r}.") from None
    return text if len(start) < _SAMPLE else text[: text.rfind("\n") + 1] or text
