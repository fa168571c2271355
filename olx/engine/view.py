"""Rows that a program reads where they lie, without a copy.

JAX reads memory in place only if it begins at a multiple of 64 bytes, a line of the cache; NumPy
begins its arrays at multiples of 16. So a program gets a flat view of the lines that hold the rows
of a chunk, and the place of the first row in it. All views of an array have one length. A line lies
in one page of memory, so its bytes before and after the array can be read; no program uses them.

If 64 bits are off in JAX, JAX would copy an array of 64 bits to cast it. A view keeps the 64 bits,
and each row is cast when it is read, to the bits of NumPy's `astype`. Only numbers too small for a
normal float of 32 bits become zeros at once, which they are to every operation of XLA.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Int, PyTree

from olx._memory import LINE, address
from olx._pytree import pytree, static
from olx.engine import tuning
from olx.engine.device import accelerated

_MOST = (1 << 31) - 1  # bytes: places in a view are integers of 32 bits


@pytree
class View:
    """The rows of one leaf of a chunk."""

    data: Any  # [numbers of some lines]
    first: Any  # []: where the first row begins in `data`
    shape: tuple[int, ...] = static()  # the number of rows of a chunk, and the shape of a row
    dtype: Any = static()  # of a row that was read

    def row(self, i: Int[Array, ""]) -> Array:
        return self._numbers(self.first + i * self._size, self._size).reshape(self.shape[1:])

    def block(self, start: Any, count: int, stop: Any) -> Array:
        """The rows from `start` on, [count, ...]; those from `stop` on are zeros.

        There may be no memory after the row before `stop`.
        """
        numbers, begin = count * self._size, self.first + start * self._size
        low = jnp.minimum(begin, self.data.size - numbers)
        longer = jnp.pad(self._numbers(low, numbers), (0, numbers))
        rows = lax.dynamic_slice(longer, (begin - low,), (numbers,)).reshape(count, -1)
        real = jnp.arange(count, dtype=jnp.int32)[:, None] < stop - start
        rows = jnp.where(real, rows, 0)
        return rows.reshape(count, *self.shape[1:])

    @property
    def _size(self) -> int:
        return math.prod(self.shape[1:])

    def _numbers(self, begin: Array, count: int) -> Array:
        return lax.dynamic_slice(self.data, (begin,), (count,)).astype(self.dtype)


def arrays_map(function: Callable, tree: PyTree) -> PyTree:
    """`function` of every array of a tree; a `View` counts as one."""
    return jax.tree.map(function, tree, is_leaf=_is_view)


def capacity_of(rounds: PyTree) -> int:
    """The number of rows of a chunk."""
    return jax.tree.leaves(rounds, is_leaf=_is_view)[0].shape[0]


def as_arrays(rounds: PyTree, stop: Any) -> PyTree:
    """The rounds with each view copied to an array; rows from `stop` on are zeros."""
    copied = lambda leaf: leaf.block(0, leaf.shape[0], stop) if _is_view(leaf) else leaf
    return arrays_map(copied, rounds)


def _is_view(leaf: object) -> bool:
    return isinstance(leaf, View)


def can_view(leaf: Any, capacity: int) -> bool:
    """Whether the chunks of `capacity` rows of an array are read where they lie.

    A single small chunk is not: its program serves arrays of any length, as a copy.
    """
    if not isinstance(leaf, np.ndarray) or not leaf.flags.c_contiguous or accelerated():
        return False
    few = len(leaf) <= capacity and leaf.nbytes <= tuning.CHUNK_BYTES
    if few or leaf.size == 0 or address(leaf) % leaf.itemsize:
        return False
    low, high = _lines(leaf)
    return _bytes(leaf, capacity) <= min(high - low, _MOST)


def view_of(leaf: np.ndarray, start: int, capacity: int) -> View:
    """The rows of an array from `start` on, at most `capacity` of them."""
    size, row = _bytes(leaf, capacity), address(leaf) + start * (leaf.nbytes // len(leaf))
    begin = min(row // LINE * LINE, _lines(leaf)[1] - size)
    data = np.asarray(_Memory(leaf, begin, size)).view(leaf.dtype)
    return _view(data, (row - begin) // leaf.itemsize, (capacity, *leaf.shape[1:]))


def view_of_buffer(buffer: np.ndarray) -> View:
    """The rows of an aligned array."""
    return _view(buffer.reshape(-1), 0, buffer.shape)


def _view(data: np.ndarray, first: int, shape: tuple[int, ...]) -> View:
    return View(data, np.int32(first), shape, jax.dtypes.canonicalize_dtype(data.dtype))


def is_cast(dtype: np.dtype) -> bool:
    """Whether JAX casts arrays of this dtype."""
    return jax.dtypes.canonicalize_dtype(dtype) != dtype


def keep_wide(tree: PyTree) -> PyTree:
    """The tree with the arrays that JAX would cast as arrays of JAX, of 64 bits."""
    wide = lambda leaf: isinstance(leaf, np.ndarray) and is_cast(leaf.dtype)
    return jax.tree.map(lambda leaf: _put(leaf) if wide(leaf) else leaf, tree)


def _put(leaf: np.ndarray) -> jax.Array:
    with jax.enable_x64(True):
        return jax.device_put(leaf, may_alias=True)


class _Memory:
    """Memory around an array, for NumPy."""

    def __init__(self, owner: np.ndarray, begin: int, size: int):
        self._owner = owner  # alive as long as the memory is used
        where, numbers = {"data": (begin, True), "shape": (size,)}, {"typestr": "|u1"}
        self.__array_interface__ = {**where, **numbers, "version": 3}


def _lines(leaf: np.ndarray) -> tuple[int, int]:
    """Where the lines that hold an array begin and end."""
    begin = address(leaf)
    return begin // LINE * LINE, _up(begin + leaf.nbytes)


def _bytes(leaf: np.ndarray, capacity: int) -> int:
    """The bytes of a view: whole lines that hold `capacity` rows, wherever the first one begins."""
    return _up(capacity * (leaf.nbytes // len(leaf))) + LINE


def _up(size: int) -> int:
    return -(-size // LINE) * LINE
