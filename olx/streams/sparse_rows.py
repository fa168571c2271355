"""Sparse rows as a context: the non-zeros of each row, in blocks of eight.

A row is a whole number of blocks, filled up with a coordinate past the last, so that a round walks
over its own blocks only and costs nothing for the rest.
"""

import os
from typing import Any

import numpy as np

from olx import _check as check
from olx.core import Rounds

LANES = 8


class SparseRows:
    """Rows of a sparse matrix, to be the context of `Rounds` for `olx.run`.

    It is sliced and has a shape like an array of shape (T, d).
    """

    def __init__(self, pointers: np.ndarray, indices: np.ndarray, values: np.ndarray, width: int):
        self.pointers = pointers  # (T + 1,) in blocks
        self.indices = indices  # (B, 8), `width` where there is nothing
        self.values = values  # (B, 8)
        self.shape, self.ndim, self.dtype = (len(pointers) - 1, width), 2, values.dtype

    def __getitem__(self, rows: slice) -> "SparseRows":
        if not isinstance(rows, slice) or rows.step not in (None, 1):
            raise TypeError(
                f"SparseRows: rows are taken in order, as in rows[start:stop], got {rows!r}; only "
                "`olx.run` plays sparse rows, elsewhere pass `rows.toarray()`."
            )
        start, stop, _ = rows.indices(self.shape[0])
        stop = max(start, stop)
        low, high = self.pointers[start], self.pointers[stop]
        return SparseRows(
            self.pointers[start : stop + 1] - low,
            self.indices[low:high],
            self.values[low:high],
            self.shape[1],
        )

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.pointers, self.indices, self.values

    def toarray(self) -> np.ndarray:
        """The rows as a dense array."""
        dense = np.zeros((self.shape[0], self.shape[1] + 1), self.dtype)
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.pointers))
        np.add.at(dense, (rows[:, None], self.indices), self.values)
        return dense[:, :-1]


def sparse_rows(matrix: Any) -> SparseRows:
    """Rows of a SciPy sparse matrix or array, in order.

    >>> import numpy as np, scipy.sparse
    >>> rows = sparse_rows(scipy.sparse.csr_array(np.array([[0.0, 2.0], [3.0, 0.0]])))
    >>> rows.shape, rows.toarray().tolist()
    ((2, 2), [[0.0, 2.0], [3.0, 0.0]])
    """
    if not hasattr(matrix, "tocsr"):
        raise TypeError(
            f"sparse_rows: `matrix` must be a SciPy sparse matrix, got {type(matrix).__name__}; "
            "dense rows go into `Rounds` as they are."
        )
    rows = matrix.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    dtype = np.promote_types(rows.dtype, np.float32)
    if rows.dtype.kind in "iu" and np.array_equal(rows.data.astype(np.float32), rows.data):
        dtype = np.dtype(np.float32)  # whole numbers small enough to keep their digits
    count = np.diff(rows.indptr)
    blocks = np.maximum(-(-count // LANES), 1)  # an empty row still ticks the clock
    pointers = np.r_[0, np.cumsum(blocks)].astype(np.int32)
    indices = np.full((pointers[-1], LANES), rows.shape[1], np.int32)
    values = np.zeros((pointers[-1], LANES), dtype)
    row = np.repeat(np.arange(len(count)), count)
    place = np.arange(rows.nnz) - rows.indptr[row]
    where = pointers[row] + place // LANES, place % LANES
    indices[where], values[where] = rows.indices, rows.data
    return SparseRows(pointers, indices, values, rows.shape[1])


def read_svmlight(path: str | os.PathLike, features: int | None = None) -> Rounds:
    """The rounds of a file in the svmlight (LIBSVM) format; needs scikit-learn.

    features: how many there are, if the file does not show the last of them.
    """
    from sklearn.datasets import load_svmlight_file

    if features is not None:
        check.count("read_svmlight", "features", features)
    single: Any = np.float32
    matrix, labels = load_svmlight_file(os.fspath(path), n_features=features, dtype=single)
    return Rounds(sparse_rows(matrix), labels.astype(np.float32))
