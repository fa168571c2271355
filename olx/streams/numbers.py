"""Refuse numbers that no driver takes: not real, masked, not finite, or too large for JAX."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx.streams.sparse_rows import SparseRows


def check_kind(owner: str, name: Any, leaf: Any) -> None:
    """Refuse arrays that are masked or do not hold real numbers. `name` is shown in the message."""
    refuse_masked(owner, name, leaf)
    kind = leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype
    letter = getattr(kind, "kind", "V")
    if letter in "OSUMmc":
        remedy = _LABELS if letter in "OSU" and "outcome" in str(name) else ""
        raise TypeError(f"{owner}: {name} holds {kind}; give real numbers{remedy}.")
    if isinstance(kind, np.dtype) and not _is_of_jax(kind):
        raise TypeError(
            f"{owner}: {name} holds {kind}, which JAX does not have; cast it, as "
            "x.astype(np.float64)."
        )


_LABELS = (
    ": two labels as np.where(labels == 'yes', 1.0, -1.0), classes as np.unique(labels, "
    "return_inverse=True)[1]"
)


@functools.cache
def _is_of_jax(kind: np.dtype) -> bool:
    """Whether JAX has the dtype; it has neither other byte orders nor 128 bits."""
    known = kind.kind in "biu" or (kind.kind == "f" and kind.itemsize <= 8)
    return kind.isnative and (known or (kind.kind == "V" and jnp.issubdtype(kind, jnp.number)))


def refuse_masked(owner: str, name: Any, leaf: Any) -> None:
    if isinstance(leaf, np.ma.MaskedArray):
        raise TypeError(
            f"{owner}: {name} is a masked array, whose mask would be lost; fill it, or drop the "
            "masked rows."
        )


def check_finite(
    owner: str,
    name: Any,
    leaf: Any,
    start: int = 0,
    row: str = "row",
    decision: Any = None,
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

    def legal(numbers: Any) -> Any:
        fits = (numbers >= low) & (numbers <= high) if narrow else np.isfinite(numbers)
        return fits | ~np.isfinite(numbers) if told else fits

    if np.all(legal(numbers)):
        return
    leaf = leaf.toarray() if isinstance(leaf, SparseRows) else leaf
    where, value = first_of(~legal(leaf), leaf, start, row)
    if np.isfinite(value):
        raise ValueError(
            f"{owner}: {name} holds {value}{where}, which does not fit into {kind}; rescale it, or "
            f"{remedy}."
        )
    raise ValueError(f"{owner}: {name} holds {value}{where}; clean it first.")


def widest_float(tree: PyTree) -> Any:
    """The dtype of the widest floats of a tree, such as a decision or a state; None without any."""
    kinds = [dtype_of(leaf) for leaf in jax.tree.leaves(tree)]
    floats = [kind for kind in kinds if _is_float(kind)]
    return max(floats, key=lambda kind: kind.itemsize, default=None)


def _is_float(kind: Any) -> bool:
    letter = getattr(kind, "kind", "")  # a random key has none
    return letter == "f" or (letter == "V" and jnp.issubdtype(kind, jnp.floating))


@functools.cache
def _ends(kind: np.dtype) -> tuple[Any, Any]:
    """The lowest and the highest number of a dtype."""
    info = jnp.finfo(kind) if _is_float(kind) else jnp.iinfo(kind)
    return (float(info.min), float(info.max)) if _is_float(kind) else (int(info.min), int(info.max))


def dtype_of(leaf: Any) -> Any:
    """The dtype that JAX gives an array or a number; `jnp.result_type` takes much longer."""
    if isinstance(leaf, jax.Array):
        return leaf.dtype
    if isinstance(leaf, np.ndarray):
        return jax.dtypes.canonicalize_dtype(leaf.dtype)
    return jnp.result_type(leaf)


def first_of(wrong: Any, leaf: Any, start: int, row: str) -> tuple[str, Any]:
    """The place of the first wrong entry, in words, and the entry."""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    if not at:
        return "", leaf[()]
    columns = f", column {', '.join(map(str, at[1:]))}" if at[1:] else ""
    return f" at {row} {start + at[0]}{columns}", leaf[at]


def _sums_up(numbers: Any, most: Any) -> bool:
    if isinstance(numbers, jax.Array):  # of an accelerator: one number comes to the host
        return most is None and bool(jnp.all(jnp.isfinite(numbers)))
    if numbers.dtype.kind != "f":
        return False  # NumPy adds numbers of half precision one by one
    with np.errstate(over="ignore", invalid="ignore"):
        if numbers.flags.c_contiguous:
            flat = numbers.reshape(-1)
            squares = np.dot(flat, flat)
            return bool(np.isfinite(squares) if most is None else squares <= float(most) ** 2)
        return most is None and bool(np.isfinite(np.sum(numbers)))
