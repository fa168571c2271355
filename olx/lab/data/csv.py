"""Read a CSV file as a table of pyarrow; errors name the row and the column, from 0 on.

The separator is the one of `,`, `;`, tab and `|` that cuts the first row into most columns. The
first row names the columns if it holds no number, or if its numbers count the columns, from 0 on.
Cells such as `NA`, `?`, `nan` and empty ones are missing values.
"""

import codecs
import csv
import io
import itertools
import mmap
import re
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv as arrow_csv

from olx.lab.data.unpacking import COMPRESSED, pieces
from olx.streams.cells import MISSING, has_other_signs

pc: Any = pyarrow.compute  # its functions are made when it is imported
_SAMPLE, _BLOCK = 1 << 16, 1 << 20  # bytes; a block stays in the cache
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")
_SEPARATORS = (",", ";", "\t", "|")

Bytes = bytes | mmap.mmap


class Frame(NamedTuple):
    """The columns of a file.

    named: whether they have names; else they are called 0, 1, 2, ...
    problems: what is wrong with a column, by its name. Who uses such a column must refuse it.
    """

    table: Any  # of pyarrow; or any that narwhals reads
    named: bool
    problems: dict[str, str]


def read_csv(
    path: Path,
    *,
    encoding: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    words: Collection[str] = (),
    labels: str | int | None = None,
    unpack: float | None = None,
) -> Frame:
    """The table in a CSV file, plain or compressed (.gz, .bz2, .zst).

    encoding: of the text; UTF-8 if None.
    header: whether the first row names the columns; None decides as above.
    words: names of columns that are read as words even if they hold numbers.
    labels: the column, by name or number, that may hold both numbers and words.
    unpack: the most megabytes that a compressed file may become; `unpacking` says the usual limit.
    """
    data = _bytes(path, unpack)
    sample = _sample(path, data, encoding)
    separator = separator or _separator(path, sample)
    try:
        quoted = '"' in sample and _has_quotes(data, encoding, separator)
        reader = csv.reader(io.StringIO(sample, newline=""), delimiter=separator)
        rows = [row for row in reader if row]
    except csv.Error as error:
        raise _refusal(path, data, encoding, separator, bool(header), error) from None
    named = bool(rows) and (_is_header(rows[0]) if header is None else header)
    if len(rows) == int(named):
        raise ValueError(f"{path} holds no rows.")
    names = [cell.strip() for cell in rows[0]] if named else list(map(str, range(len(rows[0]))))
    refuse_twins(path, names)
    kinds = {name: pa.string() for name in words if name in names}
    floats = {name: pa.float64() for name in _float_columns(names, rows[int(named) :])}
    numbers = len(floats) == len(names) and not (kinds or quoted or encoding)
    form = _Form(names, int(named), separator, encoding or "utf8")
    try:
        table = _read_numbers(data, form) if numbers else None
        if table is None:
            quoted = quoted or _has_quotes(data, encoding, separator)
            table = _read_cells(data, form, quoted, floats | kinds, kinds)
    except (csv.Error, pa.ArrowInvalid, UnicodeDecodeError, LookupError) as error:
        raise _refusal(path, data, encoding, separator, named, error) from None
    if any(pa.types.is_binary(kind) for kind in table.schema.types):
        raise _not_decoded(path, data, encoding)
    if isinstance(labels, int) and -len(names) <= labels < len(names):
        labels = names[labels]
    texts = list(map(_stripped, table.columns))
    others = {n: c for n, c in zip(names, texts, strict=True) if n not in words}
    problems = {} if separator == "," else _unclear_commas(others)
    columns = []
    for name, column in zip(names, texts, strict=True):
        typed = column
        if name in others and name not in problems:
            try:
                typed = _typed(name, column, separator, name == labels)
            except ValueError as error:
                problems[name] = str(error)
        columns.append(typed)
    return Frame(pa.table(columns, names=names), named, problems)


def number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def refuse_twins(path: Path, names: list[str]) -> None:
    """Refuse a table with two columns of the same name."""
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{path} has two columns {name!r}; rename one of them.")


class _Form(NamedTuple):
    """How the lines of a file are read."""

    names: list[str]
    skipped: int  # the number of first lines that hold no cells
    separator: str
    encoding: str

    def read(
        self,
        lines: pa.Buffer,
        convert: arrow_csv.ConvertOptions,
        *,
        block: int = _BLOCK,
        quoted: bool = False,
        threads: bool = True,
    ) -> pa.Table:
        options = arrow_csv.ReadOptions(
            column_names=self.names,
            skip_rows=self.skipped,
            block_size=block,
            encoding=self.encoding,
            use_threads=threads,
        )
        parse = arrow_csv.ParseOptions(delimiter=self.separator, newlines_in_values=quoted)
        return arrow_csv.read_csv(lines, options, parse, convert)


def _read_numbers(data: Bytes, form: _Form) -> pa.Table | None:
    """The table if all cells are numbers, without a gap; else None.

    Each processor reads a part of the lines by itself. This takes less time than the threads of
    pyarrow, which pass blocks from one to another. If a cut is inside quotes, a cell is no number.
    """
    convert = arrow_csv.ConvertOptions(
        null_values=[], column_types=dict.fromkeys(form.names, pa.float64())
    )

    def read(lines: pa.Buffer, skipped: int) -> pa.Table:
        return form._replace(skipped=skipped).read(lines, convert, threads=False)

    parts = _parts(data)
    try:
        with ThreadPoolExecutor(len(parts)) as pool:
            tables = pool.map(read, parts, [form.skipped, *[0] * len(parts)])
            columns = pa.concat_tables(tables).columns
            columns = list(pool.map(pa.ChunkedArray.combine_chunks, columns))
    except pa.ArrowInvalid:
        return None
    return pa.table(columns, names=form.names)


def _parts(data: Bytes) -> list[pa.Buffer]:
    """The lines of a file in one part per processor."""
    whole, count = pa.py_buffer(data), min(pa.cpu_count(), len(data) // _BLOCK)
    starts = {data.find(b"\n", len(data) * i // count) + 1 for i in range(1, count)}
    starts = {start for start in starts if data[start : start + 3] != codecs.BOM_UTF8}
    cuts = sorted({0, *starts, len(data)})
    return [whole[start:end] for start, end in itertools.pairwise(cuts)]


def _read_cells(
    data: Bytes,
    form: _Form,
    quoted: bool,
    guess: dict[str, pa.DataType],
    kinds: dict[str, pa.DataType],
) -> pa.Table:
    """The table of any cells; the first rows let `guess` the types, `kinds` are given."""
    convert = lambda types: arrow_csv.ConvertOptions(
        null_values=MISSING,
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        column_types=types,
    )
    lines = pa.py_buffer(data)
    try:  # to know the types is faster than to infer them
        return form.read(lines, convert(guess), quoted=quoted)
    except pa.ArrowInvalid:
        whole = min(max(len(data), 1), 2**31 - 1)
        return form.read(lines, convert(kinds), quoted=quoted, block=whole)


def _has_quotes(data: Bytes, encoding: str | None, separator: str) -> bool:
    """Whether a file holds quotes. A quote that never ends is an error."""
    quoted = data.find(b'"') >= 0
    if quoted and encoding is None and bytes(data).count(b'"') % 2:
        text = io.StringIO(bytes(data).decode(errors="replace"), newline="")
        for _ in csv.reader(text, delimiter=separator, strict=True):
            pass
    return quoted


def _stripped(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column without the spaces around its words, and without words that mean a gap."""
    if not pa.types.is_string(column.type):
        return column
    column = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.is_in(column, pa.array(MISSING)), pa.scalar(None, pa.string()), column)


def _typed(name: str, column: pa.ChunkedArray, separator: str, label: bool) -> pa.ChunkedArray:
    """A column of words as numbers if all are numbers."""
    if not pa.types.is_string(column.type):
        return column
    cells = [cell for cell in pc.unique(column).to_pylist() if cell is not None]
    for decimal in [each for each in ".," if each != separator]:
        if cells and all(number(cell.replace(decimal, ".")) is not None for cell in cells):
            return pc.cast(pc.replace_substring(column, decimal, "."), pa.float64())
    odd = [cell for cell in cells if number(cell) is None]
    if len(odd) == len(cells):
        return column
    row = column.to_pylist().index(odd[0])
    where = f"column {name!r} holds {odd[0]!r} in row {row}, where other rows hold numbers"
    if label and row == 0 and len(odd) == 1:
        raise ValueError(f"{where}; give header = true if row 0 names the columns.")
    if label or all(map(has_other_signs, odd)):  # who reads the words refuses such numbers
        return column
    raise ValueError(
        f'{where}; encode it as a number, or give categories = ["{name}"] to take all as words.'
    )


def _unclear_commas(columns: dict[str, pa.ChunkedArray]) -> dict[str, str]:
    """The columns whose commas may be decimal ones or group thousands, if no column says."""
    unclear: dict[str, str] = {}
    for name, column in columns.items():
        if not pa.types.is_string(column.type):
            continue
        cells = [cell for cell in pc.unique(column).to_pylist() if cell is not None]
        commas = [cell for cell in cells if "," in cell]
        if not commas or any(number(cell.replace(",", ".")) is None for cell in cells):
            continue
        if not all(_THOUSANDS.fullmatch(cell) for cell in commas):
            return {}  # one decimal comma says what the others are
        unclear[name] = (
            f"column {name!r} holds {commas[0]!r}, which may be "
            f"{commas[0].replace(',', '.')} or {commas[0].replace(',', '')}; write all with a "
            f'decimal point, or give categories = ["{name}"] to take all as words.'
        )
    return unclear


def _bytes(path: Path, unpack: float | None) -> Bytes:
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


def _sample(path: Path, data: Bytes, encoding: str | None) -> str:
    """The first lines of the text, without the last one, which may be cut."""
    start = data[:_SAMPLE]
    if encoding is None and _is_utf16(start):
        raise _not_decoded(path, data, encoding)
    try:
        text = start.decode(encoding or "utf-8-sig", errors="replace")
    except LookupError:
        raise ValueError(f"{path}: there is no encoding {encoding!r}.") from None
    return text if len(start) < _SAMPLE else text[: text.rfind("\n") + 1] or text


def _float_columns(names: list[str], rows: list[list[str]]) -> list[str]:
    """The names of columns that hold numbers in the first rows."""
    found = []
    for i, name in enumerate(names):
        cells = [row[i].strip() for row in rows[:100] if len(row) > i]
        there = [number(cell) for cell in cells if cell not in MISSING]
        found += [name] if there and None not in there else []
    return found


def _separator(path: Path, sample: str) -> str:
    """The separator that cuts the first row into most columns."""
    first = next((line for line in sample.splitlines() if line.strip()), "")
    count = {each: len(next(csv.reader([first], delimiter=each))) for each in _SEPARATORS}
    return "\t" if ".tsv" in path.suffixes else max(count, key=lambda each: count[each])


def _is_header(first: list[str]) -> bool:
    numbers = [number(cell) for cell in first]
    if all(value is None for value in numbers):
        return True
    return len(first) > 2 and all(value in (None, i) for i, value in enumerate(numbers))


def _refusal(
    path: Path,
    data: Bytes,
    encoding: str | None,
    separator: str,
    named: bool,
    error: Exception,
) -> ValueError:
    """The error of a file that pyarrow could not read because of `error`."""
    if isinstance(error, LookupError):
        return ValueError(f"{path}: there is no encoding {encoding!r}.")
    try:
        text = bytes(data).decode(encoding or "utf-8-sig")
    except UnicodeDecodeError:
        return _not_decoded(path, data, encoding)
    row, width = -int(named), None
    try:
        for line in csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True):
            if not line:
                continue
            width = width or len(line)
            if len(line) != width:
                return ValueError(
                    f"{path}: row {row} has {len(line)} columns, "
                    f"{'the header' if named else 'row 0'} has {width}."
                )
            row += 1
    except csv.Error as odd:
        return ValueError(f"{path} cannot be read at row {row}: {odd}.")
    return ValueError(f"{path} cannot be read as CSV: {str(error).rstrip('.')}.")


def _not_decoded(path: Path, data: Bytes, encoding: str | None) -> ValueError:
    """The error of a file in another encoding, with the first line that shows it."""
    whole = bytes(data)
    if _is_utf16(whole[:1000]):
        return ValueError(f'{path} is not text in UTF-8; give encoding = "utf-16".')
    for row, line in enumerate(whole.splitlines()):
        try:
            line.decode(encoding or "utf-8")
        except UnicodeDecodeError as error:
            piece = line[max(0, error.start - 10) : error.start + 10]
            try:
                line.decode(guess := "cp1252")
            except UnicodeDecodeError:
                guess = "latin-1"
            return ValueError(
                f"{path} is not text in {encoding or 'UTF-8'}: line {row} holds {piece!r}; give "
                f'its encoding, such as encoding = "{guess}".'
            )
    return ValueError(f"{path} is not text in {encoding or 'UTF-8'}; give its encoding.")


def _is_utf16(start: bytes) -> bool:
    """Whether the first bytes of a file look like UTF-16: a mark, or many zeros."""
    return start[:2] in (b"\xff\xfe", b"\xfe\xff") or start.count(0) > len(start) // 4
