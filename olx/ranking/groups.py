"""Groups of rows of unequal size as rounds: padded to the largest group."""

from typing import Any

import numpy as np

from olx import _check as check
from olx._refusal import RefusedType, RefusedValue, public
from olx.core import Rounds
from olx.losses.ranks import PADDING


@public
def group_rows(rows: Any, relevance: Any, sizes: Any) -> Rounds:
    """One round per group: its rows, padded with rows of 0, and their relevance, padded with -1.

    rows: (n, d), the rows of all groups one after another.
    relevance: (n,), degrees of at least 0.
    sizes: the number of rows of each group; they sum to n.

    >>> import numpy as np
    >>> play = group_rows(np.eye(3), np.array([1.0, 0.0, 2.0]), [2, 1])
    >>> play.context.shape, play.outcome.tolist()
    ((2, 2, 3), [[1.0, 0.0], [2.0, -1.0]])
    """
    rows, relevance, sizes = np.asarray(rows), np.asarray(relevance), np.asarray(sizes)
    if rows.ndim != 2:
        raise RefusedType(f"`rows` must have the shape (n, d), got {rows.shape}.")
    if rows.dtype.kind not in "fiub":
        raise RefusedType(f"`rows` holds {rows.dtype}; give real numbers.")
    check.numbers("relevance", relevance)
    check.finite("rows", rows.astype(float), each=True)
    if relevance.shape != rows.shape[:1]:
        raise RefusedType(
            f"`relevance` has shape {relevance.shape} for {len(rows)} rows; give one "
            "degree per row."
        )
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or not np.all(sizes > 0):
        raise RefusedValue(
            "`sizes` must be integers of at least 1, one per group, got "
            f"{np.array2string(sizes, threshold=6)}; drop empty groups."
        )
    if sizes.sum() != len(rows):
        raise RefusedValue(
            f"`sizes` sums to {sizes.sum()}, there are {len(rows)} rows; rows of a "
            "group are adjacent, so np.unique(group, return_counts=True)[1] counts sorted groups."
        )
    legal = np.isfinite(relevance) & (relevance >= 0)
    if not np.all(legal):
        at = int(np.argmin(legal))
        raise RefusedValue(
            f"`relevance` must be finite and not negative, got {relevance[at]} in row "
            f"{at}; add a number to all degrees of a group: only differences count."
        )
    dtype = rows.dtype if rows.dtype.kind == "f" else np.dtype(np.float32)
    place = np.repeat(np.arange(len(sizes)), sizes)
    column = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    context = np.zeros((len(sizes), int(sizes.max()), rows.shape[1]), dtype)
    outcome = np.full(context.shape[:2], PADDING, dtype)
    context[place, column], outcome[place, column] = rows, relevance
    return Rounds(context, outcome)
