"""Scale features.

none       as they are
rows       each row of length 1
standard   each column of mean 0 and variance 1; uses all rows, makes sparse rows dense
maximum    each column divided by its largest absolute value; uses all rows, keeps zeros
"""

import dataclasses
from typing import Any

import numpy as np
import scipy.sparse

SCALES = ("none", "rows", "standard", "maximum")


@dataclasses.dataclass(frozen=True)
class Scale:
    """One of the scales above, with the numbers of the columns, so that new rows get the same."""

    kind: str = "none"
    shift: tuple[float, ...] = ()  # subtracted from each column; none if empty
    size: tuple[float, ...] = ()  # divides each column after that; none if empty

    def apply(self, x: Any) -> Any:
        """The rows `x`, dense or SciPy sparse, scaled."""
        sparse = scipy.sparse.issparse(x)
        if self.kind == "rows":
            squares = x.multiply(x).sum(1) if sparse else (x * x).sum(1)
            inverse = 1 / _positive(np.sqrt(np.asarray(squares).reshape(-1)))
            if sparse:
                return (scipy.sparse.diags_array(inverse) @ x).tocsr()
            return x * inverse[:, None]
        if self.shift:
            x = np.asarray(x.toarray() if sparse else x) - np.array(self.shift)
            return x / np.array(self.size)
        if self.size:
            inverse = 1 / np.array(self.size)
            return (x @ scipy.sparse.diags_array(inverse)).tocsr() if sparse else x * inverse
        return x


def fit_scale(x: Any, kind: str) -> Scale:
    """The scale of this kind for the columns of the rows `x`."""
    sparse = scipy.sparse.issparse(x)
    if kind == "maximum":
        most = np.asarray(abs(x).max(0).todense() if sparse else abs(x).max(0)).reshape(-1)
        return Scale(kind, (), tuple(_positive(most).tolist()))
    if kind == "standard":
        x = np.asarray(x.toarray() if sparse else x)
        return Scale(kind, tuple(x.mean(0).tolist()), tuple(_positive(x.std(0)).tolist()))
    return Scale(kind)


def _positive(size: np.ndarray) -> np.ndarray:
    return np.where(size > 0, size, 1.0)
