"""Chunks of sparse rows as arrays of one shape, for any number of non-zeros per row."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from olx import _aligned as aligned
from olx.core import Rounds
from olx.streams.sparse_rows import LANES, SparseRows

_STEP = aligned.LINE // (4 * LANES)  # blocks of four bytes per number that fill a line
_DENSE = 1 << 24  # bytes per piece when sparse rows are made dense


class Blocks(NamedTuple):
    """A chunk of sparse rows as arrays of one shape."""

    first: Any  # [C]: the first block of each row
    last: Any  # [C]: one past its last block
    indices: Any  # [B, 8]
    values: Any  # [B, 8]
    widest: Any  # [W]: its length is the number of blocks of the widest row, or more


class Room(NamedTuple):
    """The sizes that the arrays of a chunk need."""

    blocks: int = 1
    widest: int = 1

    def grown(self, rows: SparseRows, start: int, capacity: int) -> "Room":
        """Large enough also for the chunks of `capacity` rows from row `start` on."""
        ends = rows.pointers[np.r_[np.arange(start, rows.shape[0], capacity), rows.shape[0]]]
        widest = int(np.max(np.diff(rows.pointers), initial=1))
        return Room(
            max(self.blocks, int(np.max(np.diff(ends), initial=1)) + _STEP - 1),
            max(self.widest, 1 << (widest - 1).bit_length()),
        )


def blocks(rows: SparseRows, start: int, capacity: int, room: Room, dtype: Any) -> Blocks:
    """The chunk of rows from `start` on.

    The arrays are slices of the stream, not copies, except at the end of a stream without spare
    blocks. They begin at a multiple of `_STEP` blocks, so JAX does not copy them either if the
    stream is aligned. They may hold blocks before the first row of the chunk and after its last
    row; no program uses these.
    """
    fill = lambda a, size: np.concatenate([a, np.zeros((size - len(a), *a.shape[1:]), a.dtype)])
    pad = lambda a, size: a if len(a) == size else fill(a, size)
    stop = min(start + capacity, rows.shape[0])
    (indices, values), size = rows.longer, room.blocks + room.widest
    low = rows.pointers[start]
    if rows.pointers[stop] + room.widest + _STEP - 1 <= len(indices):
        low = min(low, max(len(indices) - size, 0))
    low = low // _STEP * _STEP
    return Blocks(
        pad(rows.pointers[start:stop] - low, capacity),
        pad(rows.pointers[start + 1 : stop + 1] - low, capacity),
        pad(indices[low : low + size], size),
        pad(values[low : low + size].astype(dtype, copy=False), size),
        np.zeros(room.widest, np.int8),
    )


def dense(rounds: Rounds | Iterable[Rounds]) -> Iterator[Rounds]:
    """Sparse rows as dense rows, in small pieces."""
    for piece in [rounds] if isinstance(rounds, Rounds) else rounds:
        rows = piece.context
        step = max(1, _DENSE // (rows.shape[1] * rows.values.dtype.itemsize))
        for begin in range(0, rows.shape[0], step):
            part = slice(begin, begin + step)
            rest = jax.tree.map(lambda leaf, part=part: np.asarray(leaf)[part], piece[1:])
            yield Rounds(rows[part].toarray(), *rest)
