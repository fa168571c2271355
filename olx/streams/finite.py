"""Numbers that are finite, and fit into the dtype in which they are played.

A fast test goes first: a finite sum of squares has finite terms. Only if it fails is each number
looked at, and the first wrong one is named by row and column.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx._refusal import RefusedValue
from olx.streams.sparse_rows import SparseRows


def check_finite(
    name: object,
    leaf: Any,
    start: int = 0,
    row: str = "row",
    decision: np.dtype | None = None,
    told: bool = False,
) -> None:
    """Refuse a number that is not finite, or that does not fit into the dtype it is played in.

    start, row: the number and the name, for messages, of the first entry of the first axis.
    decision: the dtype of the decision, the result of `widest_float`; None if it is not known.
    told: whether a need has decided about NaN and infinity, so that these are left alone.
    """
    numbers = leaf.values if isinstance(leaf, SparseRows) else leaf
    if not (floats := _is_float(numbers.dtype)) and numbers.dtype.kind not in "iu":
        return
    kind = jax.dtypes.canonicalize_dtype(numbers.dtype)
    remedy = "enable 64 bits in JAX"
    if decision is not None and _ends(decision)[1] < _ends(kind)[1]:
        kind, remedy = decision, "start from a wider dtype"
    narrow = kind != numbers.dtype
    low, high = _ends(kind)
    if not narrow and (told or not floats):
        return
    if floats and _sums_up(numbers, high if narrow else None):
        return  # a fast test: a finite sum of squares has finite terms

    def legal(numbers: PyTree) -> PyTree:
        fits = (numbers >= low) & (numbers <= high) if narrow else np.isfinite(numbers)
        return fits | ~np.isfinite(numbers) if told else fits

    if np.all(legal(numbers)):
        return
    leaf = leaf.toarray() if isinstance(leaf, SparseRows) else leaf
    where, value = first_of(~legal(leaf), leaf, start, row)
    if np.isfinite(value):
        raise RefusedValue(
            f"{name} holds {value}{where}, which does not fit into {kind}; rescale it, or {remedy}."
        )
    raise RefusedValue(f"{name} holds {value}{where}; clean it first.")


def are_surely_finite(leaves: list, decision: np.dtype | None) -> bool:
    """A fast test: a small sum of squares has small terms, and infinity and NaN are not small."""
    most = _square(decision)
    for leaf in leaves:
        if type(leaf) is not np.ndarray or leaf.dtype not in _FLOATS or not leaf.flags.c_contiguous:
            return False  # NumPy adds numbers of half precision one by one
        if not np.vdot(leaf, leaf) <= most:  # `np.dot` warns of large numbers
            return False
    return True


_FLOATS = frozenset((np.dtype(np.float32), np.dtype(np.float64)))


@functools.cache
def _square(decision: np.dtype | None) -> float:
    """The largest sum of squares of numbers that surely fit into this dtype and into float32."""
    kinds = [np.dtype(np.float32), *([] if decision is None else [decision])]
    return min(min(_ends(kind)[1] for kind in kinds) ** 2, float(np.finfo(np.float32).max))


def widest_float(tree: PyTree) -> np.dtype | None:
    """The dtype of the widest floats of a tree, such as a decision or a state; None without any."""
    kinds = [dtype_of(leaf) for leaf in jax.tree.leaves(tree)]
    floats = [kind for kind in kinds if _is_float(kind)]
    return max(floats, key=lambda kind: kind.itemsize, default=None)


def _is_float(kind: object) -> bool:
    letter = getattr(kind, "kind", "")  # a random key has none
    return letter == "f" or (letter == "V" and jnp.issubdtype(kind, jnp.floating))  # pyright: ignore[reportArgumentType]


@functools.cache
def _ends(kind: np.dtype) -> tuple[float, float]:
    """The lowest and the highest number of a dtype."""
    info = jnp.finfo(kind) if _is_float(kind) else jnp.iinfo(kind)
    return (float(info.min), float(info.max)) if _is_float(kind) else (int(info.min), int(info.max))


def dtype_of(leaf: PyTree) -> np.dtype:
    """The dtype that JAX gives an array or a number; `jnp.result_type` takes much longer."""
    if isinstance(leaf, jax.Array):
        return leaf.dtype
    if isinstance(leaf, np.ndarray):
        return jax.dtypes.canonicalize_dtype(leaf.dtype)
    return jnp.result_type(leaf)


def first_of(wrong: PyTree, leaf: PyTree, start: int, row: str) -> tuple[str, PyTree]:
    """The place of the first wrong entry, in words, and the entry."""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    if not at:
        return "", leaf[()]
    columns = f", column {', '.join(map(str, at[1:]))}" if at[1:] else ""
    return f" at {row} {start + at[0]}{columns}", leaf[at]


_DOT = 1 << 13  # numbers; a longer product waits for threads on cores that may be playing


def _sums_up(numbers: Any, most: float | None) -> bool:
    if isinstance(numbers, jax.Array):  # of an accelerator: one number comes to the host
        return most is None and bool(jnp.all(jnp.isfinite(numbers)))
    if numbers.dtype.kind != "f":
        return False  # NumPy adds numbers of half precision one by one
    with np.errstate(over="ignore", invalid="ignore"):
        if numbers.flags.c_contiguous:
            flat = numbers.reshape(-1)
            parts = (flat[i : i + _DOT] for i in range(0, flat.size, _DOT))
            squares = sum(np.dot(part, part) for part in parts)
            return bool(np.isfinite(squares) if most is None else squares <= float(most) ** 2)
        return most is None and bool(np.isfinite(np.sum(numbers)))
