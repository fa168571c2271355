"""Arrays and memory: refuse those that cannot fit, and align those that JAX shall not copy.

XLA ends the process, or fails in words of its own, where it cannot allocate. The shapes of a state
and of the arrays of a program are known before they are computed, so these are looked at.

JAX reads NumPy arrays that begin at a multiple of 64 bytes without a copy.
"""

import functools
import math
import mmap
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from olx._cache import cached
from olx._refusal import RefusedValue

_TIMES = 2  # a round computes the next state while it has the last
_REMEDY = (
    "make the sizes of the learner smaller, such as its copies, experts, classes, directions or "
    "window, or start from fewer numbers"
)


class TooLarge(RefusedValue):
    """Arrays that do not fit into memory."""


@functools.cache
def memory() -> int:
    """The bytes of memory of the machine; no limit where the system does not say."""
    if not hasattr(os, "sysconf"):  # Windows
        return sys.maxsize
    return os.sysconf("SC_PHYS_PAGES") * mmap.PAGESIZE


def refuse_large_state(state: object) -> None:
    """Refuse a state, or the shapes of one, that does not fit into memory twice."""
    parts = jax.tree_util.tree_leaves_with_path(state)
    total = sum(_bytes(leaf) for _, leaf in parts)
    if _TIMES * total > memory():
        path, largest = max(parts, key=lambda part: _bytes(part[1]))
        name = f"state{jax.tree_util.keystr(path)}"
        raise TooLarge(
            f"the state takes {_size(total)}, most of it `{name}` of shape "
            f"{largest.shape}, and a round needs it twice; this machine has {_size(memory())}: "
            f"{_REMEDY}."
        )


def refuse_large_arrays(program: object) -> None:
    """Refuse a program, a jaxpr, with an array that does not fit into memory."""
    arrays = (one.aval for equation in equations(program) for one in equation.outvars)
    largest = max(arrays, key=_bytes, default=None)
    if largest is not None and _bytes(largest) > memory():
        raise TooLarge(
            f"a round computes an array of shape {largest.shape}, which takes "
            f"{_size(_bytes(largest))}; this machine has {_size(memory())}: {_REMEDY}"
        )


def check_start(start: Callable, *given: object) -> None:
    """Refuse to compute the state `start(*given)` if it does not fit into memory.

    A start that is traced is looked at by its result; nothing was computed then.
    """
    leaves, structure = jax.tree.flatten(given)
    if not any(isinstance(leaf, Tracer) for leaf in leaves):
        kinds = tuple(map(_kind, leaves))
        _check_start(start, structure, kinds, jax.config.read("jax_enable_x64"))


@cached
def _check_start(start: Callable, structure: object, kinds: tuple, _: bool) -> None:
    shapes = [jax.ShapeDtypeStruct(*kind) for kind in kinds]
    play = lambda leaves: start(*jax.tree.unflatten(structure, leaves))
    try:
        state = jax.eval_shape(play, shapes)
    except TooLarge:  # the state of a learner inside this one
        raise
    except Exception:  # a start may need numbers; its own error is better
        return
    refuse_large_state(state)


def _kind(leaf: object) -> tuple:
    shape, dtype = getattr(leaf, "shape", ()), getattr(leaf, "dtype", None)
    return shape, jax.numpy.result_type(leaf) if dtype is None else dtype


def equations(program: Any) -> Iterator[Any]:
    """The operations of a program, a jaxpr, and of its inner programs."""
    for equation in program.eqns:
        yield equation
        for inner in inner_programs(equation):
            yield from equations(getattr(inner, "jaxpr", inner))


def inner_programs(equation: Any) -> list[Any]:
    """The programs that an operation holds, such as the body of a loop."""
    values = jax.tree.leaves(list(equation.params.values()), is_leaf=_is_program)
    return list(filter(_is_program, values))


def _is_program(value: object) -> bool:
    return hasattr(value, "eqns") or hasattr(getattr(value, "jaxpr", None), "eqns")


def _has_shape(value: object) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _bytes(leaf: Any) -> int:
    if not _has_shape(leaf):
        return 8
    return math.prod(leaf.shape) * getattr(leaf.dtype, "itemsize", 8)


def _size(count: int) -> str:
    return f"{count / 1e9:,.3g} GB"


LINE = 64  # bytes


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array like that of `np.empty`, aligned."""
    return aligned_arrays([(shape, dtype)])[0]


def aligned_arrays(kinds: list[tuple[tuple[int, ...], Any]]) -> list[np.ndarray]:
    """Arrays like those of `np.empty`, of these shapes and dtypes, aligned, in one allocation."""
    sizes = [math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in kinds]
    room = np.empty(sum(sizes) + LINE * len(sizes), np.uint8)
    begin, found = -address(room) % LINE, []
    for (shape, dtype), size in zip(kinds, sizes, strict=True):
        found.append(np.ndarray(shape, dtype, room, begin))
        begin += size + -size % LINE
    return found


def is_aligned(array: np.ndarray) -> bool:
    return array.flags.c_contiguous and address(array) % LINE == 0


def entries_before_line(array: np.ndarray) -> int:
    """The number of entries before the first one that begins at a multiple of 64 bytes."""
    return -address(array) % LINE // array.itemsize


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]
