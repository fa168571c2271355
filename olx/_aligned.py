"""NumPy arrays that begin at a multiple of 64 bytes: JAX reads these without a copy."""

import math
from typing import Any

import numpy as np

LINE = 64  # bytes


def empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array like that of `np.empty`, aligned."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.empty(size + LINE, np.uint8)
    skip = -_address(room) % LINE
    return room[skip : skip + size].view(dtype).reshape(shape)


def full(shape: tuple[int, ...], value: float, dtype: object) -> np.ndarray:
    """An array like that of `np.full`, aligned."""
    array = empty(shape, dtype)
    array[...] = value
    return array


def is_aligned(array: np.ndarray) -> bool:
    return array.flags.c_contiguous and _address(array) % LINE == 0


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]
