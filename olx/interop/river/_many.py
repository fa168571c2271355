"""Frames of rows: what `learn_many` and `predict_many` read."""

from typing import Any

import numpy as np
from river.utils import dataframe


def features(estimator: Any, X: Any) -> tuple[np.ndarray, list]:
    """The numbers of a frame, and the names of its columns; refuses what is not a finite number."""
    frame = dataframe.into_frame(X)
    names, owner = list(frame.columns), type(estimator).__name__
    if len(set(names)) < len(names):
        raise ValueError(f"{owner}: the columns must have different names, got {names}.")
    try:
        matrix = dataframe.to_numpy(frame)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{owner}: the columns must hold numbers: {error}.") from None
    bad = ~np.isfinite(matrix)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"{owner}: the feature {names[column]!r} must be a finite number, got "
            f"{matrix[row, column]} in row {row}; fill gaps first."
        )
    return matrix, names


def weights(estimator: Any, w: Any, matrix: np.ndarray) -> np.ndarray:
    """One weight per row."""
    plain = isinstance(w, int | float)
    given = np.full(len(matrix), float(w)) if plain else dataframe.into_series(w).to_numpy()
    if given.shape != (len(matrix),) or not ((given >= 0) & np.isfinite(given)).all():
        raise ValueError(
            f"{type(estimator).__name__}: `w` must be a finite number of at least 0 per row, got "
            f"{w!r:.60}."
        )
    return given.astype(float)
