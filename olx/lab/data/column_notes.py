"""How the columns of a table were read, in words: shown when a config is run for the first time.

A table has no types that say what its columns mean. A postcode that is read as a number, or a name
of a customer that becomes a feature per row, is found here before it is found in the losses.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from olx.streams.cells import cells_of, numbers_of
from olx.streams.columns import Column, Values

if TYPE_CHECKING:
    from narwhals.stable.v2 import Series

SHOWN = 12  # columns
_FEW = 20  # rows, among which numbers and words may differ by chance


class Note(NamedTuple):
    """A column, and how it was read."""

    column: str
    read_as: str


def note_of(series: "Series", column: Column, values: Values) -> Note:
    """How a column of features was read. `values` are its numbers or words, with gaps filled."""
    if column.parts:
        return Note(column.name, f"date, as {', '.join(column.parts)}")
    rows, words = len(values), column.levels
    if words is None:
        numbers = np.asarray(values)
        low, high = numbers.min(), numbers.max()
        whole = high - low == rows - 1 and np.array_equal(
            np.sort(numbers), np.arange(low, high + 1)
        )
        constant, alone, parts = low == high, whole, ["number"]
    else:
        constant, alone = len(words) == 1, len(words) == rows
        parts = [f"word with {len(words)} level{'s' * (len(words) > 1)}"]
        parts += ["dates as words"] if series.dtype.is_temporal() else []
    parts += ["constant"] if constant else []
    parts += ["like an id"] if alone and rows > _FEW else []
    if column.fill is not None:
        gone = (
            np.isnan(numbers_of(series)) if words is None else [c is None for c in cells_of(series)]
        )
        count = int(np.sum(gone))
        shown = f"{column.fill:g}" if isinstance(column.fill, float) else column.fill
        parts += [f"{count} missing filled with {shown}"] if count else []
    return Note(column.name, ", ".join(parts))


def as_lines(dataset: str, notes: Sequence[Note]) -> list[str]:
    """The notes of a data set for a terminal: at most `SHOWN` columns, unusual ones first.

    >>> as_lines("mine.csv", [Note("age", "number"), Note("day", "number, constant")])
    ['columns of mine.csv:', '  day: number, constant', '  age: number']
    """
    if not notes:
        return []
    ordered = sorted(notes, key=lambda note: note.read_as == "number")
    lines = [f"  {note.column}: {note.read_as}" for note in ordered[:SHOWN]]
    more = [f"  and {len(notes) - SHOWN} more"] if len(notes) > SHOWN else []
    return [f"columns of {dataset}:", *lines, *more]
