"""Scales of features, so that new rows get the numbers of the first ones.

none       as they are
rows       each row of length 1
standard   each column of mean 0 and variance 1; uses all rows, makes sparse rows dense
maximum    each column divided by its largest absolute value; uses all rows, keeps zeros
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from olx._refusal import RefusedValue

Matrix = Any  # an array of NumPy, or a sparse one of SciPy
SCALES = ("none", "rows", "standard", "maximum")
ROWS = 2048  # that are read at a time, so that they stay in the cache
UNEVEN = 1e3  # a spread so many times another one is worth a warning


@dataclasses.dataclass(frozen=True)
class Scale:
    """One of the scales above, with the numbers of the columns, so that new rows get the same."""

    kind: str = "none"
    shift: tuple[float, ...] = ()  # subtracted from each column; none if empty
    size: tuple[float, ...] = ()  # divides each column after that; none if empty

    def apply(self, x: Matrix) -> Matrix:
        """The rows `x`, scaled."""
        if self.kind == "rows":
            x = _times_rows(x, _powers_of_two(x))  # exact, so that no square leaves the floats
            squares = x.multiply(x).sum(1) if _is_sparse(x) else (x * x).sum(1)
            return _times_rows(x, 1 / _or_one(np.sqrt(np.asarray(squares).reshape(-1))))
        if self.shift:
            return (_dense(x) - np.array(self.shift)) / np.array(self.size)
        if self.size:
            inverse = 1 / np.array(self.size)
            return (x @ _diagonal(inverse)).tocsr() if _is_sparse(x) else x * inverse
        return x


def fit_scale(x: Matrix, kind: str) -> Scale:
    """The scale of this kind for the columns of the rows `x`."""
    if kind == "maximum":
        most = abs(x).max(0)
        most = np.asarray(most.todense() if _is_sparse(most) else most).reshape(-1)
        return Scale(kind, (), tuple(_or_one(most).tolist()))
    if kind == "standard":
        x = _dense(x)
        constant = x.max(0) == x.min(0)  # the mean of such a column is rounded, so `std` is not 0
        with np.errstate(over="ignore", invalid="ignore"):
            shift, size = np.where(constant, x[0], x.mean(0)), np.where(constant, 1.0, x.std(0))
        lost = np.flatnonzero(np.isinf(size) | np.isinf(shift))
        if lost.size:
            raise RefusedValue(
                f"feature {lost[0]} spreads past all floats, up to {abs(x[:, lost[0]]).max():.3g}; "
                "leave it out, or divide it first."
            )
        return Scale(kind, tuple(shift.tolist()), tuple(_or_one(size).tolist()))
    return Scale(kind)


def _powers_of_two(x: Matrix) -> np.ndarray:
    """For each row a number that makes its largest one about 1."""
    most = abs(x).max(1)
    most = np.asarray(most.todense() if _is_sparse(most) else most).reshape(-1)
    return np.ldexp(1.0, -np.clip(np.frexp(most)[1], -1000, 1000))


def _times_rows(x: Matrix, numbers: np.ndarray) -> Matrix:
    return (_diagonal(numbers) @ x).tocsr() if _is_sparse(x) else x * numbers[:, None]


def uneven_spreads(names: Sequence[str], x: np.ndarray, words: Sequence[str] = ()) -> str:
    """Says which column spreads 1000 times as far as another one; empty if none does.

    words: the columns of words, whose features are 0 and 1.

    >>> uneven_spreads(["age", "income"], np.array([[20.0, 30000.0], [40.0, 90000.0]]))
    "the spread of 'income' is 3e+03 times that of 'age'"
    """
    with np.errstate(over="ignore", invalid="ignore"):  # columns past all floats are refused later
        spread = _spreads(x) if len(names) else np.zeros(0)
    if words:  # a rare word spreads less, and does no harm
        names, spread = [*names, words[0]], np.append(spread, 0.5)
    there = np.flatnonzero((spread > 0) & np.isfinite(spread))
    if len(there) < 2:
        return ""
    low, high = there[np.argmin(spread[there])], there[np.argmax(spread[there])]
    ratio = spread[high] / spread[low]
    if ratio < UNEVEN:
        return ""
    return f"the spread of {names[high]!r} is {ratio:.1g} times that of {names[low]!r}"


def _spreads(x: np.ndarray) -> np.ndarray:
    """The standard deviation of each column."""
    middle, total = x.mean(0), np.zeros(x.shape[1])
    for start in range(0, len(x), ROWS):
        apart = x[start : start + ROWS] - middle
        total += np.einsum("ij,ij->j", apart, apart)
    return np.sqrt(total / len(x))


def _is_sparse(x: Matrix) -> bool:
    return hasattr(x, "toarray")


def _diagonal(values: np.ndarray) -> Matrix:
    import scipy.sparse  # dense rows do without

    return scipy.sparse.diags_array(values)


def _dense(x: Matrix) -> np.ndarray:
    return np.asarray(x.toarray() if _is_sparse(x) else x)


def _or_one(size: np.ndarray) -> np.ndarray:
    return np.where(size > 0, size, 1.0)
