"""Aligned buffers for chunks, which a device reads without another copy."""

import math
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from olx import _aligned as aligned
from olx.core import Rounds
from olx.engine import place
from olx.streams.sparse_rows import SparseRows

ZEROS = 64  # rows after the last one; programs that play blocks of rows may read them


class Stage:
    """Two buffers, used in turn, from which a device can read a chunk without another copy.

    An array that is aligned already and does not change is used directly.
    """

    def __init__(self, capacity: int, dtypes: list, owned: bool):
        """owned: whether the arrays do not change until they are played; else they are copied."""
        self._capacity, self._dtypes, self._owned, self._turn = capacity, dtypes, owned, 0
        self._places: dict[tuple[int, int], np.ndarray] = {}

    def windows(self, piece: Rounds, low: int) -> Iterator[tuple[int, int, int]]:
        """Where the chunks of a piece begin, and the first row and one past the last to play.

        A long rest at the end of the piece is played in a window that begins before it, so that it
        need not be copied. A few rows may then be left.

        low: the first row to play.
        """
        length, capacity, step = jax.tree.leaves(piece)[0].shape[0], self._capacity, 0
        while length - low >= capacity:
            yield low, low, low + capacity
            low += capacity
        if length >= capacity and length - low >= capacity // 16:
            step = self._step(piece)
        if step:
            begin = (length - capacity) // step * step
            if begin + capacity > low:
                yield begin, low, begin + capacity
                low = begin + capacity
        if low < length:
            yield low, low, length

    def _step(self, piece: Rounds) -> int:
        """A full window that begins at a multiple of it is used directly; 0 if none is."""
        leaves = jax.tree.leaves(piece)
        sparse = any(isinstance(leaf, SparseRows) for leaf in leaves)
        if sparse or not self._owned or place.accelerated():
            return 0
        fit = map(self._fits, range(len(leaves)), leaves)
        rows = [aligned.LINE // math.gcd(aligned.LINE, leaf.strides[0]) for leaf in leaves]
        return max(rows) if all(fit) else 0

    def _fits(self, number: int, leaf: np.ndarray) -> bool:
        near = place.accelerated() or aligned.is_aligned(leaf)  # else it is copied in any case
        return leaf.dtype == self._dtypes[number] and near

    def put(self, part: Rounds) -> Rounds:
        """The rounds in a buffer of the capacity, with some rows of zeros after them.

        No program reads further rows: to fill new memory would take longer than a short run.
        """
        self._turn ^= 1
        leaves, structure = jax.tree.flatten(part)
        return jax.tree.unflatten(structure, [self._put(*pair) for pair in enumerate(leaves)])

    def _put(self, number: int, leaf: Any) -> Any:
        count, dtype = leaf.shape[0], self._dtypes[number]
        if isinstance(leaf, SparseRows):
            return leaf
        if place.kept(leaf):
            return place.filled(leaf, self._capacity, dtype)
        if self._owned and count == self._capacity and self._fits(number, leaf):
            return leaf
        key = number, self._turn
        if key not in self._places:
            self._places[key] = aligned.empty((self._capacity, *leaf.shape[1:]), dtype)
        buffer = self._places[key]
        buffer[:count] = leaf
        buffer[count : count + ZEROS] = 0
        return buffer
