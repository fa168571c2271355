"""Sparse rows as a context: the non-zeros of each row, in blocks of eight.

Each row has an integer number of blocks, padded with an index after the last column. So a round
costs only the blocks of its row.
"""

import os
from typing import Any

import numpy as np

from olx import _check as check
from olx import _memory as memory
from olx._refusal import RefusedType, RefusedValue, own_name, public
from olx.core import Rounds

LANES = 8


class SparseRows:
    """Rows of a sparse matrix, as the context of `Rounds` for the engine.

    It has a shape and can be sliced like an array of shape (T, d).
    """

    @own_name("SparseRows")
    def __init__(self, pointers: np.ndarray, indices: np.ndarray, values: np.ndarray, width: int):
        self.pointers = pointers  # (T + 1,) in blocks
        self.indices = indices  # (B, 8), `width` for padding
        self.values = values  # (B, 8)
        self.shape, self.ndim, self.dtype = (len(pointers) - 1, width), 2, values.dtype
        if indices.ndim != 2 or indices.shape[1] != LANES or values.shape != indices.shape:
            raise RefusedType(
                f"`indices` and `values` must have the shape (B, {LANES}), got "
                f"{indices.shape} and {values.shape}; `olx.streams.sparse_rows` makes the blocks."
            )
        self.longer = indices, values  # the same with more blocks at the end, if there are any
        _check_pointers(pointers, len(pointers), len(indices))
        _check_indices(indices, width + 1)

    @own_name("SparseRows")
    def __getitem__(self, rows: slice) -> "SparseRows":
        if not isinstance(rows, slice) or rows.step not in (None, 1):
            raise RefusedType(
                f"rows are taken in order, as in rows[start:stop], got {rows!r}; only "
                "the engine plays sparse rows, elsewhere pass `rows.toarray()`."
            )
        start, stop, _ = rows.indices(self.shape[0])
        stop = max(start, stop)
        low, high = self.pointers[start], self.pointers[stop]
        part = object.__new__(SparseRows)  # without checks: these rows were checked before
        part.pointers = self.pointers[start : stop + 1] - low
        part.indices, part.values = self.indices[low:high], self.values[low:high]
        part.longer = part.indices, part.values
        part.shape, part.ndim, part.dtype = (stop - start, self.shape[1]), 2, self.dtype
        return part

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.pointers, self.indices, self.values

    def toarray(self) -> np.ndarray:
        """The rows as a dense array."""
        dense = np.zeros((self.shape[0], self.shape[1] + 1), self.dtype)
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.pointers))
        np.add.at(dense, (rows[:, None], self.indices), self.values)
        return dense[:, :-1]


@public
def sparse_rows(matrix: Any) -> SparseRows:
    """Make `SparseRows` from a SciPy sparse matrix or array, one row per round.

    >>> import numpy as np, scipy.sparse
    >>> rows = sparse_rows(scipy.sparse.csr_array(np.array([[0.0, 2.0], [3.0, 0.0]])))
    >>> rows.shape, rows.toarray().tolist()
    ((2, 2), [[0.0, 2.0], [3.0, 0.0]])
    """
    if not hasattr(matrix, "tocsr"):
        raise RefusedType(
            f"`matrix` must be a SciPy sparse matrix, got {type(matrix).__name__}; "
            "dense rows go into `Rounds` as they are."
        )
    _check_matrix(matrix)
    rows = matrix.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    dtype = np.promote_types(rows.dtype, np.float32)
    if rows.dtype.kind in "iu" and np.array_equal(rows.data.astype(np.float32), rows.data):
        dtype = np.dtype(np.float32)  # integers that float32 represents exactly
    count = np.diff(rows.indptr)
    blocks = np.maximum(-(-count // LANES), 1)  # an empty row is a round, too
    pointers = np.r_[0, np.cumsum(blocks)].astype(np.int32)
    spare = int(np.max(blocks, initial=1))  # so that the engine need not copy the last rows
    shape = int(pointers[-1]) + 2 * spare, LANES
    indices = memory.aligned_full(shape, rows.shape[1], np.int32)
    values = memory.aligned_full(shape, 0, dtype)
    row = np.repeat(np.arange(len(count)), count)
    place = np.arange(rows.nnz) - rows.indptr[row]
    where = pointers[row] + place // LANES, place % LANES
    indices[where], values[where] = rows.indices[: rows.nnz], rows.data[: rows.nnz]
    made = SparseRows(pointers, indices[: pointers[-1]], values[: pointers[-1]], rows.shape[1])
    made.longer = indices, values
    return made


def _check_matrix(matrix: Any) -> None:
    """Refuse a matrix with bad indices before SciPy reads memory through them."""
    if len(matrix.shape) != 2 or matrix.shape[1] == 0:
        raise RefusedType(f"`matrix` must have rows and columns, got shape {matrix.shape}.")
    if np.dtype(matrix.dtype).kind not in "fiub":
        raise RefusedType(f"`matrix` holds {matrix.dtype}; give real numbers.")
    if matrix.format in ("csr", "csc"):
        along, across = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
        if len(matrix.data) != len(matrix.indices):
            raise RefusedValue(
                f"`matrix` has {len(matrix.data)} values for {len(matrix.indices)} "
                "indices; the numbers must be equal."
            )
        _check_pointers(matrix.indptr, along + 1, len(matrix.indices))
        _check_indices(matrix.indices, across)
    if matrix.format == "coo":
        for index, size in zip((matrix.row, matrix.col), matrix.shape, strict=True):
            _check_indices(index, size)


def _check_pointers(pointers: np.ndarray, count: int, size: int) -> None:
    """Refuse pointers that do not cut `size` entries into `count` - 1 rows."""
    rises = 0 < count == len(pointers) and bool(np.all(np.diff(pointers) >= 0))
    if not rises or pointers[0] != 0 or pointers[-1] > size:
        raise RefusedValue(
            f"the {count} row pointers must rise from 0 to at most {size}, the number of "
            f"entries, got {np.array2string(np.asarray(pointers), threshold=6)}."
        )


def _check_indices(indices: np.ndarray, size: int) -> None:
    """Refuse an index that is not from 0 to `size` - 1."""
    if indices.size and not (indices.min() >= 0 and indices.max() < size):
        flat = indices.reshape(-1)
        at = int(np.argmax((flat < 0) | (flat >= size)))
        raise RefusedValue(f"indices must lie from 0 to {size - 1}, got {flat[at]} in entry {at}.")


@public
def read_svmlight(path: str | os.PathLike, features: int | None = None) -> Rounds:
    """Read rounds from a file in the svmlight (LIBSVM) format; needs scikit-learn.

    features: the number of features, if the last of them do not occur in the file.
    """
    from sklearn.datasets import load_svmlight_file

    if features is not None:
        check.count("features", features)
    if not isinstance(path, str | os.PathLike):
        raise RefusedType(f"`path` must be a path, got {check.quote(path)}.")
    if not os.path.isfile(path):
        raise FileNotFoundError(f"read_svmlight: there is no file {os.fspath(path)}.")
    single: Any = np.float32
    try:
        matrix, labels = load_svmlight_file(os.fspath(path), n_features=features, dtype=single)
    except ValueError as error:
        raise RefusedValue(
            f"{os.fspath(path)} is not in the svmlight format, or has other "
            f"features than asked for: {error}"
        ) from error
    if len(labels) == 0:
        raise RefusedValue(f"{os.fspath(path)} holds no rows.")
    return Rounds(sparse_rows(matrix), labels.astype(np.float32))
