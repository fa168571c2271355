"""Data that is not yet rounds: what it is, and what to do with it."""

import os
from typing import Any, NoReturn

import jax
import numpy as np

from olx.core import Learner
from olx.streams.sparse_rows import SparseRows
from olx.streams.stream import Stream

_FRAME = "`olx.streams.from_frame(frame, target=...)` makes rounds of a table"
_ORDER = "The order is (learner, loss, rounds, params)"
_ARRAYS = "put arrays into `olx.Rounds(contexts, outcomes)`, one row per round"


def refuse(owner: str, given: Any) -> NoReturn:
    """Refuse what is given in place of `rounds`."""
    seen = type(given).__name__
    raise TypeError(f"{owner}: `rounds` must be a Rounds, got {seen}; {_remedy(given)}.")


def refuse_piece(owner: str, piece: Any) -> NoReturn:
    """Refuse what an iterable gives in place of `Rounds`."""
    if isinstance(piece, tuple) and len(piece) == 2 and is_array(piece[0]):
        remedy = (
            "stack the pairs, as `olx.Rounds(np.stack(rows), np.array(outcomes))`, or play one "
            "round at a time with `olx.step`"
        )
    else:
        remedy = _remedy(piece)
    seen = type(piece).__name__
    raise TypeError(f"{owner}: `rounds` must be a Rounds, got {seen} in an iterable; {remedy}.")


_SPARSE = "`olx.streams.sparse_rows(matrix)` makes sparse rows of it"


def refuse_stranger(owner: str, name: object, leaf: Any, remedy: str = _SPARSE) -> None:
    """Refuse a part of the rounds that is a table or a SciPy matrix, which no driver can cut.

    remedy: what to do with a SciPy matrix.
    """
    if isinstance(leaf, np.ndarray | jax.Array | SparseRows):
        return
    if is_frame(leaf):
        raise TypeError(
            f"{owner}: {name} is a {type(leaf).__name__}; give its numbers, as `frame.to_numpy()`, "
            f"or the whole table: {_FRAME}."
        )
    if hasattr(leaf, "tocsr"):
        raise TypeError(f"{owner}: {name} is a SciPy {type(leaf).__name__}; {remedy}.")


def is_array(thing: Any) -> bool:
    return hasattr(thing, "shape") and hasattr(thing, "dtype")


def is_frame(thing: Any) -> bool:
    """Whether it is a table, of pandas, polars, pyarrow or of another library with a protocol."""
    spoken = any(hasattr(thing, protocol) for protocol in _PROTOCOLS)
    return hasattr(thing, "__dataframe__") or (spoken and not is_array(thing))


_PROTOCOLS = ("__arrow_c_stream__", "__narwhals_dataframe__", "collect_schema")


def _remedy(given: Any) -> str:
    if is_frame(given):
        return _FRAME
    if isinstance(given, Stream):
        return "give its rounds alone, as in `rounds, truth = olx.streams.linear_regression(...)`"
    if hasattr(given, "tocsr"):
        return "give `olx.Rounds(olx.streams.sparse_rows(matrix), outcomes)`"
    if isinstance(given, str | os.PathLike):
        return f"read the file first; {_FRAME}, `olx.streams.read_svmlight` reads svmlight"
    if isinstance(given, Learner) or callable(given):
        return f"are `loss` and `rounds` swapped? {_ORDER}"
    return _ARRAYS
