"""Scale features.

none       as they are
rows       each row of length 1
standard   each column of mean 0 and variance 1; uses all rows, makes sparse rows dense
maximum    each column divided by its largest absolute value; uses all rows, keeps zeros
"""

from typing import Any

import numpy as np
import scipy.sparse

SCALES = ("none", "rows", "standard", "maximum")


def scaled(x: Any, scale: str) -> Any:
    """The rows `x`, dense or SciPy sparse, scaled in one of these ways."""
    sparse = scipy.sparse.issparse(x)
    if scale == "rows":
        norms = np.sqrt(np.asarray(x.multiply(x).sum(1) if sparse else (x * x).sum(1)).reshape(-1))
        inverse = 1 / np.where(norms > 0, norms, 1.0)
        return (scipy.sparse.diags_array(inverse) @ x).tocsr() if sparse else x * inverse[:, None]
    if scale == "maximum":
        most = np.asarray(abs(x).max(0).todense() if sparse else abs(x).max(0)).reshape(-1)
        inverse = 1 / np.where(most > 0, most, 1.0)
        return (x @ scipy.sparse.diags_array(inverse)).tocsr() if sparse else x * inverse
    if scale == "standard":
        x = np.asarray(x.toarray() if sparse else x)
        spread = x.std(0)
        return (x - x.mean(0)) / np.where(spread > 0, spread, 1.0)
    return x
