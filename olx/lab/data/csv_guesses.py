"""Guess the form of a CSV file from its first rows: separator, header and columns of numbers."""

import csv
from pathlib import Path

SEPARATORS = (",", ";", "\t", "|")
MISSING = ["", "?", "NA", "N/A", "#N/A", "n/a", "NaN", "nan", "NAN", "-NaN", "-nan", "NULL", "null"]


def number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def floats(names: list[str], rows: list[list[str]]) -> list[str]:
    """The names of columns that hold numbers in the first rows."""
    found = []
    for i, name in enumerate(names):
        cells = [row[i].strip() for row in rows[:100] if len(row) > i]
        there = [number(cell) for cell in cells if cell not in MISSING]
        found += [name] if there and None not in there else []
    return found


def separator_of(path: Path, sample: str) -> str:
    """The separator that cuts the first row into most columns."""
    first = next((line for line in sample.splitlines() if line.strip()), "")
    count = {each: len(next(csv.reader([first], delimiter=each))) for each in SEPARATORS}
    return "\t" if ".tsv" in path.suffixes else max(count, key=lambda each: count[each])


def is_header(rows: list[list[str]]) -> bool:
    first = rows[0]
    numbers = [number(cell) for cell in first]
    if all(value is None for value in numbers):
        return True
    counts = [value in (None, i) for i, value in enumerate(numbers)]
    return len(first) > 2 and all(counts)
