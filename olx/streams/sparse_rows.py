"""Sparse rows as a context: the non-zeros of each row, one row after the other (CSR)."""

import os
from typing import Any

import numpy as np

from olx import _check as check
from olx._refusal import RefusedType, RefusedValue, own_name, public
from olx.core import Rounds


class SparseRows:
    """Rows of a sparse matrix, as the context of `Rounds` for the engine.

    It has a shape and can be sliced like an array of shape (T, d). It holds the given arrays, not
    copies, so these must not change. The columns of a row rise.
    """

    pointers: np.ndarray  # (T + 1,): where the entries of each row begin
    indices: np.ndarray  # (E,): the column of each entry
    values: np.ndarray  # (E,)
    shape: tuple[int, int]
    dtype: np.dtype
    ndim = 2

    @own_name("SparseRows")
    def __init__(self, pointers: np.ndarray, indices: np.ndarray, values: np.ndarray, width: int):
        if indices.ndim != 1 or values.shape != indices.shape:
            raise RefusedType(
                "`indices` and `values` must be vectors of one length, got shapes "
                f"{indices.shape} and {values.shape}; `olx.streams.sparse_rows` makes them."
            )
        _check_pointers(pointers, len(pointers), len(indices))
        _check_indices(indices, width)
        size = pointers[-1]
        _check_order(pointers, indices[:size])
        _fill(self, pointers, indices[:size], values[:size], width)

    @own_name("SparseRows")
    def __getitem__(self, rows: slice) -> "SparseRows":
        if not isinstance(rows, slice) or rows.step not in (None, 1):
            raise RefusedType(
                f"rows are taken in order, as in rows[start:stop], got {rows!r}; only "
                "the engine plays sparse rows, elsewhere pass `rows.toarray()`."
            )
        start, stop, _ = rows.indices(self.shape[0])
        pointers = self.pointers[start : max(start, stop) + 1]
        own = slice(pointers[0], pointers[-1])
        arrays = pointers - own.start, self.indices[own], self.values[own]
        return _fill(object.__new__(SparseRows), *arrays, self.shape[1])

    @property
    def numbers(self) -> np.ndarray:
        """The number of the row of each entry."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.pointers))

    def toarray(self) -> np.ndarray:
        """The rows as a dense array."""
        dense = np.zeros(self.shape, self.dtype)
        dense[self.numbers, self.indices] = self.values
        return dense


def _fill(
    rows: SparseRows, pointers: np.ndarray, indices: np.ndarray, values: np.ndarray, width: int
) -> SparseRows:
    """The same object with arrays that were checked before."""
    rows.pointers, rows.indices, rows.values = pointers, indices, values
    rows.shape, rows.dtype = (len(pointers) - 1, width), values.dtype
    return rows


@public
def sparse_rows(matrix: Any) -> SparseRows:
    """Make `SparseRows` from a SciPy sparse matrix or array, one row per round.

    A CSR matrix of floats with 32-bit indices is used as it is: it is checked and not copied, so do
    not change it afterwards.

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
    entries = rows.indices[: rows.nnz], rows.data[: rows.nnz]
    indices, values = map(np.ascontiguousarray, entries)
    indices, values = indices.astype(np.int32, copy=False), values.astype(dtype, copy=False)
    return _fill(object.__new__(SparseRows), rows.indptr, indices, values, rows.shape[1])


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
    signed = indices.dtype.newbyteorder("=").kind == "i"
    seen = indices.view(f"u{indices.itemsize}") if signed else indices  # negative ones are large
    if indices.size and seen.max() >= size:
        flat = indices.reshape(-1)
        at = int(np.argmax((flat < 0) | (flat >= size)))
        raise RefusedValue(f"indices must lie from 0 to {size - 1}, got {flat[at]} in entry {at}.")


def _check_order(pointers: np.ndarray, indices: np.ndarray) -> None:
    """Refuse a row whose columns do not rise; one of them could occur twice."""
    falls = np.diff(indices) <= 0
    inner = pointers[(pointers > 0) & (pointers < len(indices))]
    falls[inner - 1] = False  # from the last entry of a row to the first of the next one
    if np.any(falls):
        at = int(np.argmax(falls)) + 1
        row = int(np.searchsorted(pointers, at, "right")) - 1
        raise RefusedValue(
            f"the columns of a row must rise, got {indices[at]} after {indices[at - 1]} in row "
            f"{row}; `olx.streams.sparse_rows` sorts them and adds up equal ones."
        )


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
