r"""Decision stumps: the threshold on one feature with the largest edge, by exhaustive search.

$$h(x) = s \text{ if } x_j > c, \text{ else } -s, \qquad s = \pm 1 .$$

With signed weights $a_i = p_i y_i$ the edge of a stump is half of $s (\sum_{i : x_{ij} > c} a_i -
\sum_{i : x_{ij} \le c} a_i)$. For features 0 and 1 the first sums are one product with the matrix
of rows. For real features the rows are sorted once, and a running sum gives all thresholds of a
feature; a threshold is the middle between two neighbour values. The first of several best stumps
is taken. Rows are kept by columns, as a dense array or as a sparse matrix.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.2.1.
"""

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from olx._refusal import RefusedType, RefusedValue, own_name, public
from olx.boosting.weak import WeakLearner
from olx.streams.checks import check_kind
from olx.streams.finite import check_finite
from olx.streams.sparse_rows import SparseRows


class Stump(NamedTuple):
    feature: int
    threshold: float
    sign: float  # the value above the threshold


@public
def stumps(rows: Any) -> WeakLearner:
    """All decision stumps on the features of `rows`.

    rows: the training rows: an array [N, d], a SciPy sparse matrix, or `olx.streams.sparse_rows`.
        Sparse rows hold 0 and 1. A constant column makes no stump, unless all features are 0 and 1.

    >>> import numpy as np
    >>> weak = stumps(np.array([[0.1], [0.4], [0.7], [0.9]]))
    >>> weak.fit(np.ones(4) / 4, np.array([1.0, 1.0, -1.0, -1.0]))
    Stump(feature=0, threshold=0.55, sign=-1.0)
    """
    columns = as_columns(rows)
    searches = (_Binary(np.arange(columns.shape[1]), _by_feature(columns)),)
    if not is_binary(columns):
        searches = _searches_of(columns)
    count, width = columns.shape
    return WeakLearner(partial(_fit, searches, count), values, columns, partial(_prepare, width))


def values(stump: Stump, columns: Any) -> np.ndarray:
    """The values of a stump on prepared rows."""
    return np.where(above(columns, stump.feature, stump.threshold), stump.sign, -stump.sign)


@own_name("stumps")
def _fit(searches: tuple, count: int, weights: np.ndarray, labels: np.ndarray) -> Stump:
    if len(labels) != count:
        raise RefusedType(f"there are {count} rows and {len(labels)} labels; give one per row.")
    signed = np.asarray(weights, float) * labels
    slack = 64 * np.finfo(float).eps * np.abs(signed).sum()
    found = [search.best(signed, slack) for search in searches]
    top = max(size for size, _ in found)
    return min(stump for size, stump in found if size >= top - slack)


@own_name("Ensemble")
def _prepare(width: int, rows: Any) -> Any:
    columns = as_columns(rows)
    if columns.shape[1] != width:
        raise RefusedType(
            f"rows must have {width} features, as the training rows have, got {columns.shape[1]}."
        )
    return columns


@dataclasses.dataclass(frozen=True, eq=False)
class _Binary:
    """Features 0 and 1."""

    features: np.ndarray
    columns: Any  # CSR: one row per feature

    def best(self, signed: np.ndarray, slack: float) -> tuple[float, Stump]:
        edges = 2 * (self.columns @ signed) - signed.sum()
        k = _first(np.abs(edges), slack)
        return abs(edges[k]), Stump(int(self.features[k]), 0.5, 1.0 if edges[k] >= 0 else -1.0)


@dataclasses.dataclass(frozen=True, eq=False)
class _Sorted:
    """A real feature: the rows in the order of their values, and the thresholds."""

    feature: int
    order: np.ndarray
    last: np.ndarray  # for each threshold, the place of the last row below it
    thresholds: np.ndarray

    def best(self, signed: np.ndarray, slack: float) -> tuple[float, Stump]:
        edges = signed.sum() - 2 * np.cumsum(signed[self.order])[self.last]
        k = _first(np.abs(edges), slack)
        sign = 1.0 if edges[k] >= 0 else -1.0
        return abs(edges[k]), Stump(self.feature, float(self.thresholds[k]), sign)


@own_name("stumps")
def _searches_of(columns: np.ndarray) -> tuple:
    """The searches of a dense array; a column of 0 and 1 needs no order."""
    low, high = columns.min(axis=0), columns.max(axis=0)
    signs = np.all((columns == 0) | (columns == 1), axis=0)
    binary = np.flatnonzero(signs & (low < high))
    real = [_sorted_feature(int(j), columns[:, j]) for j in np.flatnonzero(~signs & (low < high))]
    if not (binary.size or real):
        raise RefusedValue("every column of `rows` is constant; no stump tells rows apart.")
    first = (_Binary(binary, _by_feature(columns[:, binary])),) if binary.size else ()
    return *first, *real


def _by_feature(columns: Any) -> Any:
    return scipy.sparse.csc_array(columns, dtype=float).T


def _sorted_feature(feature: int, column: np.ndarray) -> _Sorted:
    order = np.argsort(column, kind="stable")
    value = column[order]
    last = np.flatnonzero(value[:-1] < value[1:])
    low, high = value[last], value[last + 1]
    middle = low / 2 + high / 2
    thresholds = np.where((middle > low) & (middle < high), middle, low)
    return _Sorted(feature, order, last, thresholds)


def _first(sizes: np.ndarray, slack: float) -> int:
    """The first of the largest entries, up to rounding."""
    return int(np.argmax(sizes >= sizes.max() - slack))


def as_columns(rows: Any) -> Any:
    """`rows` as a dense array [N, d] of floats in the order of columns, or as a CSC array."""
    if isinstance(rows, SparseRows):
        arrays = rows.values.astype(float), rows.indices, rows.pointers
        columns = scipy.sparse.csr_array(arrays, shape=rows.shape).tocsc()
        columns.eliminate_zeros()
        return columns
    check_kind("`rows`", rows)
    if scipy.sparse.issparse(rows):
        if rows.format in ("csr", "csc"):
            rows.check_format(full_check=True)  # SciPy reads memory through the indices
        columns = scipy.sparse.csc_array(rows, dtype=float)
        columns.sum_duplicates()
        columns.eliminate_zeros()
        check_finite("`rows`", columns.data, 0, "entry")
        return columns
    dense = np.asarray(rows)
    if dense.ndim != 2 or 0 in dense.shape or dense.dtype.kind not in "iufb":
        raise RefusedType(
            f"`rows` must be an array of real numbers with rows and columns, got shape "
            f"{dense.shape} and dtype {dense.dtype}."
        )
    dense = np.asfortranarray(dense, float)
    check_finite("`rows`", dense, 0)
    return dense


def is_binary(columns: Any) -> bool:
    """Whether all features are 0 and 1; refuses other sparse features."""
    if not scipy.sparse.issparse(columns):
        return bool(np.all((columns == 0) | (columns == 1)))
    others = columns.data[columns.data != 1]
    if others.size:
        raise RefusedValue(
            f"sparse rows must hold 0 and 1, got {others[0]:g}; pass real features as a "
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
