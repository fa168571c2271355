r"""Decision stumps: the threshold on one feature with the largest edge, by exhaustive search.

$$h(x) = s \text{ if } x_j > c, \text{ else } -s, \qquad s = \pm 1 .$$

With signed weights $a_i = p_i y_i$ the edge of a stump is half of $s (\sum_{i : x_{ij} > c} a_i -
\sum_{i : x_{ij} \le c} a_i)$. For features 0 and 1 the first sums are one product with the matrix
of rows. For real features the rows are sorted once, and a running sum gives all thresholds of a
feature; a threshold is the middle between two neighbour values. The first of several best stumps
is taken.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.2.1.
"""

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from olx.boosting._columns import above, as_columns, is_binary
from olx.boosting.weak import WeakLearner


class Stump(NamedTuple):
    feature: int
    threshold: float
    sign: float  # the value above the threshold


def stumps(rows: Any) -> WeakLearner:
    """All decision stumps on the features of `rows`.

    rows: the training rows: an array [N, d], a SciPy sparse matrix, or `olx.streams.sparse_rows`.
        Sparse rows hold 0 and 1. A column that is constant is no stump unless all features are 0
        and 1.

    >>> import numpy as np
    >>> weak = stumps(np.array([[0.1], [0.4], [0.7], [0.9]]))
    >>> weak.fit(np.ones(4) / 4, np.array([1.0, 1.0, -1.0, -1.0]))
    Stump(feature=0, threshold=0.55, sign=-1.0)
    """
    columns = as_columns("stumps", rows)
    search = _binary(columns) if is_binary("stumps", columns) else _sorted(columns)
    width = columns.shape[1]
    return WeakLearner(partial(_fit, search), values, columns, partial(_prepare, width))


def values(stump: Stump, columns: Any) -> np.ndarray:
    """The values of a stump on prepared rows."""
    return np.where(above(columns, stump.feature, stump.threshold), stump.sign, -stump.sign)


def _fit(search: Any, weights: np.ndarray, labels: np.ndarray) -> Stump:
    signed = np.asarray(weights, float) * labels
    slack = 64 * np.finfo(float).eps * np.abs(signed).sum()
    return search.best(signed, slack)


def _prepare(width: int, rows: Any) -> Any:
    columns = as_columns("Ensemble", rows)
    if columns.shape[1] != width:
        raise TypeError(
            f"Ensemble: rows must have {width} features, as the training rows have, got "
            f"{columns.shape[1]}."
        )
    return columns


@dataclasses.dataclass(frozen=True)
class _Binary:
    """Features 0 and 1, one row of the sparse matrix per feature."""

    features: Any  # CSR, [d, N]

    def best(self, signed: np.ndarray, slack: float) -> Stump:
        edges = 2 * (self.features @ signed) - signed.sum()
        j = _first(np.abs(edges), slack)
        return Stump(j, 0.5, 1.0 if edges[j] >= 0 else -1.0)


@dataclasses.dataclass(frozen=True)
class _Sorted:
    """Real features: for each, the rows in the order of their values, and the thresholds."""

    features: tuple[int, ...]
    orders: tuple[np.ndarray, ...]
    lasts: tuple[np.ndarray, ...]  # the places of the last row below each threshold
    thresholds: tuple[np.ndarray, ...]

    def best(self, signed: np.ndarray, slack: float) -> Stump:
        total, top, found = signed.sum(), -np.inf, Stump(0, 0.0, 1.0)
        for j, order, last, cut in zip(
            self.features, self.orders, self.lasts, self.thresholds, strict=True
        ):
            edges = total - 2 * np.cumsum(signed[order])[last]
            size = np.abs(edges)
            if size.max() > top + slack:
                k = _first(size, slack)
                top, found = size[k], Stump(j, float(cut[k]), 1.0 if edges[k] >= 0 else -1.0)
        return found


def _binary(columns: Any) -> _Binary:
    return _Binary(scipy.sparse.csc_array(columns, dtype=float).T)


def _sorted(columns: np.ndarray) -> _Sorted:
    features, orders, lasts, thresholds = [], [], [], []
    for j in range(columns.shape[1]):
        order = np.argsort(columns[:, j], kind="stable")
        value = columns[order, j]
        last = np.flatnonzero(value[:-1] < value[1:])
        if last.size:
            low, high = value[last], value[last + 1]
            middle = low / 2 + high / 2
            features.append(j)
            orders.append(order)
            lasts.append(last)
            thresholds.append(np.where((middle > low) & (middle < high), middle, low))
    if not features:
        raise ValueError("stumps: every column of `rows` is constant; no stump tells rows apart.")
    return _Sorted(tuple(features), tuple(orders), tuple(lasts), tuple(thresholds))


def _first(sizes: np.ndarray, slack: float) -> int:
    """The first of the largest entries, up to rounding."""
    return int(np.argmax(sizes >= sizes.max() - slack))
