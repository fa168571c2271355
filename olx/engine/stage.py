"""Aligned buffers for chunks, which a device reads without another copy."""

import math
from typing import Any

import jax
import numpy as np

from olx.core import Rounds
from olx.engine import place
from olx.streams.sparse_rows import SparseRows

_LINE = 64  # bytes: JAX does not copy an array that begins at a multiple of it


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

    def _put(self, number: int, leaf: Any) -> Any:
        count, dtype = leaf.shape[0], self._dtypes[number]
        if isinstance(leaf, SparseRows):
            return leaf
        if place.kept(leaf):
            return place.filled(leaf, self._capacity, dtype)
        fits = leaf.dtype == dtype and count == self._capacity
        ready = fits and (_is_aligned(leaf) or place.accelerated())
        if self._owned and ready:
            return leaf
        key = number, self._turn
        if key not in self._places:
            self._places[key] = _aligned((self._capacity, *leaf.shape[1:]), dtype)
        buffer = self._places[key]
        buffer[:count] = leaf
        if count < self._capacity:
            buffer[count:] = 0
        return buffer


def _is_aligned(leaf: np.ndarray) -> bool:
    return leaf.flags.c_contiguous and _address(leaf) % _LINE == 0


def _aligned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    size = math.prod(shape) * dtype.itemsize
    room = np.empty(size + _LINE, np.uint8)
    skip = -_address(room) % _LINE
    return room[skip : skip + size].view(dtype).reshape(shape)


def _address(leaf: np.ndarray) -> int:
    return leaf.__array_interface__["data"][0]
