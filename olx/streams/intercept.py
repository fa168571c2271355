"""A constant feature beside the others, for an intercept."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from olx import _check as check
from olx.core import Rounds
from olx.streams.sparse_rows import SparseRows, sparse_rows


def with_intercept(rounds: Rounds) -> Rounds:
    """The rounds with a feature that is always 1 after the others; dense or sparse rows.

    `olx.linear` then plays with an intercept, its last weight. `olx.affine` does the same without a
    change of the rounds.

    >>> import numpy as np, olx
    >>> with_intercept(olx.Rounds(np.array([[5.0, 6.0]]), np.array([1.0]))).context.tolist()
    [[5.0, 6.0, 1.0]]
    """
    check.instance("with_intercept", "rounds", rounds, Rounds)
    return rounds._replace(context=appended("with_intercept", rounds.context))


def appended(owner: str, rows: Any) -> Any:
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
        raise TypeError(
            f"{owner}: the context must be an array with a row of features per round, got "
            f"{type(rows).__name__}."
        )
    library = np if isinstance(rows, np.ndarray) else jnp
    return library.concatenate([rows, library.ones((*rows.shape[:-1], 1), rows.dtype)], axis=-1)
