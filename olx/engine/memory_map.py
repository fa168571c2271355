"""Memory maps: read the next rows in time, and give back the rows that were played.

The system counts the pages of a file that a process has read as its memory, and a map of 20 GB
would fill the machine. So pages of played rows are given back, and those of the next chunks are
read while the device plays. The system may keep a copy for the next reader, but not of a file so
large that it would push out all other files. All this is advice, which is given to Linux only: the
numbers do not depend on it.
"""

import contextlib
import ctypes
import functools
import mmap
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np

from olx._memory import memory
from olx.core import Rounds
from olx.engine import tuning

_LINUX = sys.platform == "linux"
_READ, _FREE = 22, 4  # of Linux: MADV_POPULATE_READ, since 5.14, and MADV_DONTNEED


class Map(NamedTuple):
    """The rows of an array in a file."""

    start: int  # the address of the first row
    row: int  # bytes per row
    size: int  # bytes of the map
    file: str | os.PathLike | None
    place: int  # where the first row begins in the file

    def advise(self, what: int, low: int, high: int) -> None:
        """Advice about the rows from `low` up to `high`; a system that takes none is left alone."""
        first, size = self._pages(self.start, low, high)
        if size > 0:
            _madvise()(first, size, what)  # unlike that of `mmap`, it lets other threads go on

    def forget(self, low: int, high: int) -> None:
        """Let the system forget these rows of the file, too."""
        if self.file is not None:
            with contextlib.suppress(OSError), open(self.file, "rb") as file:
                where = self._pages(self.place, low, high)
                os.posix_fadvise(file.fileno(), *where, os.POSIX_FADV_DONTNEED)

    def _pages(self, start: int, low: int, high: int) -> tuple[int, int]:
        """Where the page of row `low` begins, and the number of bytes from there to `high`."""
        first = (start + low * self.row) // mmap.PAGESIZE * mmap.PAGESIZE
        return first, start + high * self.row - first


class Readahead:
    """The rows of a piece that are in memory; nothing to do unless the piece is in a file.

    A thread reads and gives back, so that the caller does not wait for the file.
    """

    def __init__(self, piece: Rounds):
        leaves = jax.tree.leaves(piece)
        self.maps = [found for leaf in leaves if (found := map_of(leaf))]
        self._length, self._held, self._asked = leaves[0].shape[0], 0, 0
        self._pool = ThreadPoolExecutor(1, "rows of a file") if self.maps else None

    def __enter__(self) -> "Readahead":
        return self

    def __exit__(self, *error: object) -> None:
        """Give back all rows. If the device still reads some, they come again."""
        if self._pool is not None:
            self._pool.submit(self._give_back, self._held, self._asked)
            self._pool.shutdown()

    def move(self, played: int, low: int, high: int) -> None:
        """Read the rows from `low` up to `high`, and more after them, while the caller goes on.

        Rows before `played` are not needed any more.
        """
        if self._pool is None:
            return
        row = max(1, sum(one.row for one in self.maps))
        ahead = min(high + max(high - low, tuning.MAP_BYTES_AHEAD // row), self._length)
        self._pool.submit(self._read, self._asked, ahead)
        self._asked = ahead
        if row * (played - self._held) >= tuning.MAP_BYTES_PLAYED:
            self._pool.submit(self._give_back, self._held, played)
            self._held = played

    def _read(self, low: int, high: int) -> None:
        for one in self.maps:
            one.advise(_READ, low, high)

    def _give_back(self, low: int, high: int) -> None:
        for one in self.maps:
            one.advise(_FREE, low, high)
            if one.size > memory() // 2:
                one.forget(low, high)


def map_of(leaf: object) -> Map | None:
    """Where an array is in a file; None for other arrays and for maps with changes of their own."""
    root = leaf
    while isinstance(root, np.ndarray) and isinstance(root.base, np.ndarray):
        root = root.base
    if not isinstance(leaf, np.ndarray) or not isinstance(root, np.memmap) or not _LINUX:
        return None
    pages = root.base
    if not isinstance(pages, mmap.mmap) or root.mode == "c" or not leaf.flags.c_contiguous:
        return None
    start = leaf.ctypes.data
    place = root.offset + start - root.ctypes.data
    return Map(start, leaf.nbytes // max(len(leaf), 1), len(pages), root.filename, place)


@functools.cache
def _madvise() -> Any:
    call = ctypes.CDLL(None).madvise
    call.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    return call
