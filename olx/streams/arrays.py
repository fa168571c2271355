"""Your own arrays as a stream; bad data is refused by row and column.

`with_intercept` adds a constant feature after the others.
"""

from collections.abc import Callable
from numbers import Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx import _check as check
from olx._refusal import RefusedType, RefusedValue, public
from olx.core import Rounds
from olx.streams.checks import refuse_masked
from olx.streams.sparse_rows import SparseRows, sparse_rows


@public
def from_arrays(
    context: PyTree, outcome: PyTree, weight: Any = None, *, labels: bool = False
) -> Rounds:
    """Make a stream from arrays with one row per round.

    context, outcome: arrays, nested lists of numbers, or dictionaries and tuples of these; the
        context may be None. All become floats of one dtype: the widest given, or JAX's default if
        all numbers are integers.
    weight: importance of each round, non-negative; None means 1.
    labels: True if the outcomes are classes 0, 1, 2, ...; they stay integers. Labels of -1 and +1
        become floats, so leave it False for them.

    >>> rounds = from_arrays([[0, 1], [2, 3]], [1, -1])
    >>> rounds.context.tolist(), rounds.outcome.tolist()
    ([[0.0, 1.0], [2.0, 3.0]], [1.0, -1.0])
    """
    check.flag("labels", labels)
    context, outcome = _each(_read, "context", context), _each(_read, "outcome", outcome)
    weight = None if weight is None else _read("weight", weight)
    _check_lengths(Rounds(context, outcome, weight))
    if labels:
        outcome = _each(_classes, "outcome", outcome)
    floats = [leaf.dtype for leaf in jax.tree.leaves((context, outcome, weight)) if _real(leaf)]
    kind = jax.dtypes.canonicalize_dtype(np.result_type(*floats) if floats else float)
    as_floats = lambda name, leaf: _floats(name, leaf, kind)
    context = _each(as_floats, "context", context)
    if not labels:
        outcome = _each(as_floats, "outcome", outcome)
    if weight is not None:
        weight = as_floats("weight", weight)
        if weight.ndim != 1:
            raise RefusedType(f"weight has shape {weight.shape}; give one per round.")
        _refuse("weight", weight, weight < 0, "; weights are non-negative")
    return jax.tree.map(jnp.asarray, Rounds(context, outcome, weight))


def _each(function: Callable[[str, Any], np.ndarray], name: str, tree: PyTree) -> PyTree:
    named = lambda path, leaf: function(name + jax.tree_util.keystr(path), leaf)
    return jax.tree_util.tree_map_with_path(named, tree, is_leaf=lambda x: isinstance(x, list))


def _read(name: str, value: Any) -> np.ndarray:
    refuse_masked(name, value)
    try:
        array = np.asarray(value)
    except ValueError:
        _refuse_ragged(name, value)
        raise
    if array.ndim == 0:
        raise RefusedType(
            f"{name} is a {type(value).__name__}; give a dense array with one row per round."
        )
    if np.issubdtype(array.dtype, np.integer) or array.dtype == bool or _real(array):
        return array
    entries = np.asarray(value, dtype=object)
    wrong = np.array([not isinstance(entry, Real) for entry in entries.flat], bool)
    _refuse(name, entries, wrong.reshape(entries.shape), "; encode it as a number")
    return entries.astype(float)


def _floats(name: str, array: np.ndarray, kind: Any) -> np.ndarray:
    with np.errstate(over="ignore"):
        cast = array.astype(kind)
    _refuse(name, array, ~np.isfinite(array), "")
    _refuse(name, array, ~np.isfinite(cast), f"; it is too large for {kind}")
    return cast


def _classes(name: str, array: np.ndarray) -> np.ndarray:
    legal = np.isfinite(array) & (array >= 0) & (np.floor(array) == array)
    _refuse(name, array, ~legal, "; classes are whole numbers from 0 on")
    return array.astype(jax.dtypes.canonicalize_dtype(int))


def _refuse(name: str, array: np.ndarray, wrong: np.ndarray, demand: str) -> None:
    if not np.any(wrong):
        return
    row, *rest = np.argwhere(wrong)[0].tolist()
    place = f"row {row}" + (f", column {', '.join(map(str, rest))}" if rest else "")
    entry = array[(row, *rest)]
    shown = entry if isinstance(entry, Real) else repr(entry)
    raise RefusedValue(f"{name} holds {shown} at {place}{demand}.")


def _refuse_ragged(name: str, rows: list) -> None:
    arrays = [np.asarray(row, dtype=object) for row in rows]
    lengths = [row.size if row.ndim else 0 for row in arrays]
    for row, length in enumerate(lengths):
        if length != lengths[0]:
            raise RefusedType(
                f"{name} is ragged: row {row} has {length} entries, row 0 has {lengths[0]}."
            )


def _check_lengths(rounds: Rounds) -> None:
    if not jax.tree.leaves(rounds.outcome):
        raise RefusedType("outcome holds no array.")
    lengths = {
        jax.tree_util.keystr(path).lstrip("."): len(leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(rounds)
    }
    if len(set(lengths.values())) > 1:
        seen = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise RefusedType(f"numbers of rows differ ({seen}).")
    if 0 in lengths.values():
        raise RefusedValue("there are no rows.")


def _real(array: np.ndarray) -> bool:
    return jnp.issubdtype(array.dtype, jnp.floating)


@public
def with_intercept(rounds: Rounds) -> Rounds:
    """The rounds with a feature that is always 1 after the others; dense or sparse rows.

    `olx.linear` then plays with an intercept, its last weight. `olx.affine` does the same without a
    change of the rounds.

    >>> import numpy as np, olx
    >>> with_intercept(olx.Rounds(np.array([[5.0, 6.0]]), np.array([1.0]))).context.tolist()
    [[5.0, 6.0, 1.0]]
    """
    check.instance("rounds", rounds, Rounds)
    return rounds._replace(context=appended(rounds.context))


def appended(rows: Any) -> Any:
    """The rows with a column of ones after the others."""
    if isinstance(rows, SparseRows):
        import scipy.sparse  # loaded when it is needed: `import olx` stays quick

        there = rows.indices < rows.shape[1]
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.pointers))
        place = np.broadcast_to(row[:, None], there.shape)[there], rows.indices[there]
        shape = rows.shape[0], rows.shape[1] + 1
        ones = np.arange(shape[0]), np.full(shape[0], shape[1] - 1)
        index = tuple(np.concatenate(pair) for pair in zip(place, ones, strict=True))
        values = np.concatenate([rows.values[there], np.ones(shape[0], rows.dtype)])
        return sparse_rows(scipy.sparse.coo_array((values, index), shape=shape))
    if np.ndim(rows) < 2:
        raise RefusedType(
            f"the context must be an array with a row of features per round, got "
            f"{type(rows).__name__}."
        )
    library = np if isinstance(rows, np.ndarray) else jnp
    return library.concatenate([rows, library.ones((*rows.shape[:-1], 1), rows.dtype)], axis=-1)
