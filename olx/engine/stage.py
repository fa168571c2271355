"""Aligned buffers for chunks, which a device reads without another copy."""

import jax
import numpy as np

from olx import _aligned as aligned
from olx.core import Rounds
from olx.streams.sparse_rows import SparseRows


class Stage:
    """Two buffers, used in turn, from which a device can read a chunk without another copy.

    An array that is aligned already and does not change is used directly.
    """

    def __init__(self, capacity: int, dtypes: list, owned: bool):
        """owned: whether the arrays do not change until they are played; else they are copied."""
        self._capacity, self._dtypes, self._owned, self._turn = capacity, dtypes, owned, 0
        self._places: dict[tuple[int, int], np.ndarray] = {}

    def put(self, part: Rounds) -> Rounds:
        """The rounds in a buffer, padded with zeros up to the capacity."""
        self._turn ^= 1
        leaves, structure = jax.tree.flatten(part)
        return jax.tree.unflatten(structure, [self._put(*pair) for pair in enumerate(leaves)])

    def _put(self, number: int, leaf: np.ndarray | SparseRows) -> np.ndarray | SparseRows:
        count, dtype = leaf.shape[0], self._dtypes[number]
        if isinstance(leaf, SparseRows):
            return leaf
        ready = leaf.dtype == dtype and count == self._capacity and aligned.is_aligned(leaf)
        if self._owned and ready:
            return leaf
        key = number, self._turn
        if key not in self._places:
            self._places[key] = aligned.empty((self._capacity, *leaf.shape[1:]), dtype)
        place = self._places[key]
        place[:count] = leaf
        if count < self._capacity:
            place[count:] = 0
        return place
