"""Read features and labels from a CSV file; errors name the row and the column, from 0 on."""

import csv
from pathlib import Path

import numpy as np

from olx.lab.refusals import nearest

SEPARATORS = {";": "';'", "\t": "a tab", "|": "'|'"}


def read_csv(path: Path, target: str | int | None) -> tuple[np.ndarray, np.ndarray]:
    """Read numbers separated by commas; a first row without numbers names the columns.

    target: the column of the labels, by name or number; the last one if None.
    """
    lines = _lines(path)
    header = lines.pop(0) if lines and all(number(cell) is None for cell in lines[0]) else None
    if not lines:
        raise ValueError(f"{path} holds no rows.")
    width = len(header or lines[0])
    _refuse_ragged(path, lines, header, width)
    column = _column(path, target, header, width)
    labels = [line.pop(column) for line in lines]
    try:
        x = np.array(lines, dtype=float)
    except ValueError:
        raise _not_a_number(path, lines, column) from None
    for row, label in enumerate(labels):
        if not label.strip():
            raise _empty(path, row, column)
    numbers = [number(label) for label in labels]
    return x, np.array(labels if None in numbers else numbers)


def number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _lines(path: Path) -> list[list[str]]:
    lines: list[list[str]] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            for line in csv.reader(file, strict=True):
                lines += [line] if line else []
        return lines
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not text in UTF-8 (row {len(lines)}: {error.reason}); save it as such."
        ) from None
    except csv.Error as error:
        raise ValueError(f"{path} cannot be read at row {len(lines)}: {error}.") from None


def _refuse_ragged(
    path: Path, lines: list[list[str]], header: list[str] | None, width: int
) -> None:
    for row, line in enumerate(lines):
        if len(line) != width:
            raise ValueError(
                f"{path}: row {row} has {len(line)} columns, "
                f"{'the header' if header else 'row 0'} has {width}."
            )
    if width > 1:
        return
    for separator, word in SEPARATORS.items():
        if separator in lines[0][0]:
            raise ValueError(f"{path} is separated by {word}; separate its columns by commas.")
    raise ValueError(f"{path} has one column, the labels; there must be a feature.")


def _column(path: Path, target: str | int | None, header: list[str] | None, width: int) -> int:
    if target is None:
        return width - 1
    if isinstance(target, int):
        if not -width <= target < width:
            raise ValueError(f"{path} has {width} columns; there is no column {target}.")
        return target % width
    if header is None:
        raise ValueError(f"{path} has no column {target!r}, for it has no header.")
    if target not in header:
        hint = nearest(target, header, f"it has {', '.join(header)}.")
        raise ValueError(f"{path} has no column {target!r}; {hint}")
    if header.count(target) > 1:
        raise ValueError(f"{path} has two columns {target!r}; give its number as target.")
    return header.index(target)


def _not_a_number(path: Path, lines: list[list[str]], target: int) -> ValueError:
    row, column = next(
        (row, column)
        for row, line in enumerate(lines)
        for column, cell in enumerate(line)
        if number(cell) is None
    )
    cell, column = lines[row][column], column + (column >= target)
    if not cell.strip():
        return _empty(path, row, column)
    return ValueError(
        f"{path} holds {cell!r} at row {row}, column {column}; encode it as a number."
    )


def _empty(path: Path, row: int, column: int) -> ValueError:
    return ValueError(
        f"{path} has an empty cell at row {row}, column {column}; fill it in or drop the row."
    )
