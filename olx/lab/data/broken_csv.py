"""Say why a CSV file cannot be read: the encoding, or the row that differs."""

import csv
import io
from pathlib import Path
from typing import Any


def refusal(
    path: Path,
    data: Any,
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
        return not_decoded(path, data, encoding)
    row = -int(named)
    width = None
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


def not_decoded(path: Path, data: Any, encoding: str | None) -> ValueError:
    """The error of a file in another encoding, with the first line that shows it."""
    whole = bytes(data)
    if is_utf16(whole[:1000]):
        return ValueError(f'{path} is not text in UTF-8; give encoding = "utf-16".')
    for row, line in enumerate(whole.splitlines()):
        try:
            line.decode(encoding or "utf-8")
        except UnicodeDecodeError as error:
            piece = line[max(0, error.start - 10) : error.start + 10]
            return ValueError(
                f"{path} is not text in {encoding or 'UTF-8'}: line {row} holds {piece!r}; give "
                f'its encoding, such as encoding = "{_guess(line)}".'
            )
    return ValueError(f"{path} is not text in {encoding or 'UTF-8'}; give its encoding.")


def is_utf16(start: bytes) -> bool:
    """Whether the first bytes of a file look like UTF-16: a mark, or many zeros."""
    return start[:2] in (b"\xff\xfe", b"\xfe\xff") or start.count(0) > len(start) // 4


def _guess(line: bytes) -> str:
    try:
        line.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"
