"""Rows of features, by columns: a dense array or a sparse matrix."""

from typing import Any

import numpy as np
import scipy.sparse

from olx.streams.checks import check_finite, check_kind
from olx.streams.sparse_rows import SparseRows


def as_columns(owner: str, rows: Any) -> Any:
    """`rows` as a dense array [N, d] of floats in the order of columns, or as a CSC array."""
    if isinstance(rows, SparseRows):
        return _from_blocks(rows)
    check_kind(owner, "`rows`", rows)
    if scipy.sparse.issparse(rows):
        if rows.format in ("csr", "csc"):
            rows.check_format(full_check=True)  # SciPy reads memory through the indices
        columns = scipy.sparse.csc_array(rows, dtype=float)
        columns.sum_duplicates()
        columns.eliminate_zeros()
        check_finite(owner, "`rows`", columns.data, 0, "entry")
        return columns
    dense = np.asarray(rows)
    if dense.ndim != 2 or 0 in dense.shape or dense.dtype.kind not in "iufb":
        raise TypeError(
            f"{owner}: `rows` must be an array of real numbers with rows and columns, got shape "
            f"{dense.shape} and dtype {dense.dtype}."
        )
    dense = np.asfortranarray(dense, float)
    check_finite(owner, "`rows`", dense, 0)
    return dense


def is_binary(owner: str, columns: Any) -> bool:
    """Whether all features are 0 and 1; refuses other sparse features."""
    if not scipy.sparse.issparse(columns):
        return bool(np.all((columns == 0) | (columns == 1)))
    others = columns.data[columns.data != 1]
    if others.size:
        raise ValueError(
            f"{owner}: sparse rows must hold 0 and 1, got {others[0]:g}; pass real features as a "
            "dense array, `rows.toarray()`."
        )
    return True


def above(columns: Any, feature: int, threshold: float) -> np.ndarray:
    """For each row, whether a feature is above a threshold."""
    if not scipy.sparse.issparse(columns):
        return columns[:, feature] > threshold
    part = slice(*columns.indptr[feature : feature + 2])
    is_above = np.full(columns.shape[0], threshold < 0)
    is_above[columns.indices[part]] = columns.data[part] > threshold
    return is_above


def _from_blocks(rows: SparseRows) -> Any:
    used = rows.indices < rows.shape[1]
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.pointers))
    row = np.broadcast_to(row[:, None], used.shape)
    entries = rows.values[used].astype(float), (row[used], rows.indices[used])
    columns = scipy.sparse.csc_array(entries, shape=rows.shape)
    columns.eliminate_zeros()
    return columns
