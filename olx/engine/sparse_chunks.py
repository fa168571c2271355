"""Chunks of sparse rows: arrays of one shape, for any number of non-zeros per row.

A chunk is a window of the arrays of a CSR matrix, which a program reads where they are, some
entries at a time from the first entry of a row on. JAX reads an array in place only if it begins
at a multiple of 64 bytes, and all windows have one length. So the first rows of a matrix, before
such a place, and its last rows, of which a program would read past the end, are copied. So are all
rows of a matrix that may change while it is played, of another dtype than the state, of few
entries, or for a device with a memory of its own.
"""

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Int

from olx import _memory as memory
from olx.engine import device, tuning
from olx.streams.sparse_rows import SparseRows

LANES = 8  # entries per block of a row
_LINE = 16  # entries: a multiple of this is a multiple of 64 bytes


class Entries(NamedTuple):
    """A chunk of sparse rows as arrays of one shape."""

    pointers: Any  # [C + 1]: where each row begins in `values`
    indices: Any  # [E]
    values: Any  # [E]
    shift: Any  # [S + 1]: an entry is S places later in `indices`; to add a number takes time
    widest: Any  # [W]: its length is the number of blocks of the widest row, or more

    def part(self, start: Int[Array, ""], count: int) -> tuple[Array, Array]:
        """The indices and values of `count` entries.

        The indices are unsigned: JAX counts a signed one from the end if it is negative, and XLA
        compares it with 0.
        """
        index = _slice(self.indices, start + (self.shift.size - 1), count)
        return index.astype(jnp.uint32), _slice(self.values, start, count)

    def row(self, start: Int[Array, ""], stop: Int[Array, ""], nothing: int) -> tuple[Array, Array]:
        """The indices and values of a row, padded to the widest one by `nothing` and 0."""
        count = self.widest.size * LANES
        index, x = self.part(start, count)
        own = jnp.arange(count, dtype=start.dtype) < stop - start
        return jnp.where(own, index, jnp.uint32(nothing)), jnp.where(own, x, 0.0)


def _slice(leaf: Array, start: Int[Array, ""], count: int) -> Array:
    return lax.dynamic_slice(leaf, (start.astype(jnp.uint32),), (count,))


class _Places(NamedTuple):
    """Where a matrix can be read without a copy."""

    first: int  # the first entry of `values` at a multiple of 64 bytes
    count: int  # the number of entries from there on
    shift: int  # from an entry of `indices` at a multiple of 64 bytes to one of `values`
    rows: range  # the rows that lie in there


_NOWHERE = _Places(0, 0, 0, range(0))


class SparseChunks:
    """Cuts the pieces of a stream of sparse rows into chunks."""

    def __init__(self, capacity: int, dtype: Any, owned: bool):
        """owned: whether the rows do not change until they are played."""
        self._capacity, self._dtype, self._owned = capacity, dtype, owned
        self._size = self._widest = self._turn = 0
        self._buffers: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def windows(self, rows: SparseRows, start: int) -> list[tuple[int, int]]:
        """The first row of each chunk of a piece from row `start` on, and one past its last."""
        blocks = -(-int(np.max(np.diff(rows.pointers), initial=1)) // LANES)
        self._widest = max(self._widest, 2, 1 << (blocks - 1).bit_length())
        self._rows, self._places = rows, _NOWHERE
        self._dtype = jax.dtypes.canonicalize_dtype(self._dtype)
        if self._owned and not device.accelerated() and rows.dtype == self._dtype:
            self._places = _places_of(rows, start, self._reach)
        edges = self._edges(start)
        most = int(np.max(np.diff(rows.pointers[edges]), initial=0))
        most += self._reach + self._places.shift
        self._size = max(self._size, -(-most // _LINE) * _LINE)
        if self._places.rows:
            self._size = min(self._size + _LINE, self._places.count)
        return list(itertools.pairwise(edges))

    @property
    def _reach(self) -> int:
        """How many entries a program may read from the first entry of a row on."""
        return self._widest * LANES

    def _edges(self, start: int) -> list[int]:
        """The rows at which chunks begin, and the number of rows."""
        inner, count = self._places.rows, self._rows.shape[0]
        ends = [start, inner.start, inner.stop, count] if inner else [start, count]
        ranges = (range(a, b, self._capacity) for a, b in itertools.pairwise(ends))
        return [*itertools.chain(*ranges), count]

    def chunk(self, low: int, high: int) -> Entries:
        """The chunk of the rows from `low` up to `high`.

        Its memory may be used again for the next chunk but one. It may hold entries before the
        first row and after the last row; no program uses these.
        """
        (begin, count, shift, inner), rows = self._places, self._rows
        first, last = rows.pointers[[low, high]]
        if low in inner:
            first = begin + min((first - begin) // _LINE * _LINE, count - self._size)
            whole = zip((rows.indices, rows.values), (first - shift, first), strict=True)
            windows = [leaf[at : at + self._size] for leaf, at in whole]
        else:
            windows = self._copy(slice(first, last))
        pointers = np.full(self._capacity + 1, last - first, np.int32)
        pointers[: high - low + 1] = rows.pointers[low : high + 1] - first
        return Entries(pointers, *windows, *_sizes(shift + 1, self._widest))

    def _copy(self, part: slice) -> tuple[np.ndarray, np.ndarray]:
        """Some entries in a buffer, with zeros after them as far as a program may read."""
        self._turn ^= 1
        if self._turn not in self._buffers or self._buffers[self._turn][0].size != self._size:
            empty = lambda dtype: memory.aligned_empty((self._size,), dtype)
            self._buffers[self._turn] = empty(np.int32), empty(self._dtype)
        count, whole = part.stop - part.start, (self._rows.indices, self._rows.values)
        places = zip(self._buffers[self._turn], whole, (self._places.shift, 0), strict=True)
        for buffer, leaf, at in places:
            buffer[at : at + count] = leaf[part]
            buffer[at + count : at + count + self._reach] = 0
        return self._buffers[self._turn]


def _sizes(*sizes: int) -> list[np.ndarray]:
    """Arrays that tell a program their lengths, which are then known to the compiler."""
    return [np.zeros(size, np.int8) for size in sizes]


def _places_of(rows: SparseRows, start: int, reach: int) -> _Places:
    """Where the rows from `start` on can be read without a copy; nowhere if too few can."""
    if rows.values.nbytes < tuning.SPARSE_COPY_BYTES:
        return _NOWHERE
    before = [memory.entries_before_line(leaf) for leaf in (rows.indices, rows.values)]
    shift = (before[1] - before[0]) % _LINE
    first = before[1] + (_LINE if before[1] < shift else 0)
    count = (len(rows.values) - first) // _LINE * _LINE
    begin = int(np.searchsorted(rows.pointers, first))
    end = int(np.searchsorted(rows.pointers, first + count - shift - reach, "right"))
    inner = range(max(start, begin), min(end, rows.shape[0]))
    enough = count >= 2 * (reach + 2 * _LINE) and rows.values.flags.c_contiguous
    return _Places(first, count, shift, inner) if enough and len(inner) > 0 else _NOWHERE
