"""Refuse numbers that no driver takes: not real, masked, not finite, or too large for JAX."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from olx.streams.sparse_rows import SparseRows


def check_kind(owner: str, name: Any, leaf: Any) -> None:
    """Refuse arrays that are masked or do not hold real numbers. `name` is shown in the message."""
    refuse_masked(owner, name, leaf)
    kind = leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype
    letter = getattr(kind, "kind", "V")
    if letter in "OSUMmc":
        remedy = _LABELS if letter in "OSU" and "outcome" in str(name) else ""
        raise TypeError(f"{owner}: {name} holds {kind}; give real numbers{remedy}.")


_LABELS = (
    ": two labels as np.where(labels == 'yes', 1.0, -1.0), classes as np.unique(labels, "
    "return_inverse=True)[1]"
)


def refuse_masked(owner: str, name: Any, leaf: Any) -> None:
    if isinstance(leaf, np.ma.MaskedArray):
        raise TypeError(
            f"{owner}: {name} is a masked array, whose mask would be lost; fill it, or drop the "
            "masked rows."
        )


def check_finite(owner: str, name: Any, leaf: Any, start: int = 0, row: str = "row") -> None:
    """Refuse a number that is not finite, or that does not fit into the dtype that JAX gives it.

    start, row: the number and the name, for messages, of the first entry of the first axis.
    """
    numbers = leaf.values if isinstance(leaf, SparseRows) else leaf
    kind = jax.dtypes.canonicalize_dtype(numbers.dtype)
    narrow = kind != numbers.dtype
    if numbers.dtype.kind == "f":
        low, high = (np.finfo(kind).min, np.finfo(kind).max) if narrow else (None, None)
        if _sums_up(numbers, high):
            return  # a fast test: a finite sum of squares has finite terms
    elif numbers.dtype.kind in "iu" and narrow:
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
    else:
        return
    legal = np.isfinite(numbers) if low is None else (numbers >= low) & (numbers <= high)
    if np.all(legal):
        return
    if isinstance(leaf, SparseRows):
        leaf = leaf.toarray()
        legal = np.isfinite(leaf) if low is None else (leaf >= low) & (leaf <= high)
    where, value = first_of(~legal, leaf, start, row)
    if np.isfinite(value):
        raise ValueError(
            f"{owner}: {name} holds {value}{where}, which does not fit into {kind}; rescale it, or "
            "enable 64 bits in JAX."
        )
    raise ValueError(f"{owner}: {name} holds {value}{where}; clean it first.")


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
    with np.errstate(over="ignore", invalid="ignore"):
        if numbers.flags.c_contiguous:
            flat = numbers.reshape(-1)
            squares = np.dot(flat, flat)
            return bool(np.isfinite(squares) if most is None else squares <= float(most) ** 2)
        return most is None and bool(np.isfinite(np.sum(numbers)))
