"""What the estimators share: how rows are read, and how a learner is played on them.

Rows of float32 are played in float32, all others in float64, as scikit-learn does.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import scipy.sparse
from jaxtyping import PyTree
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, validate_data

from olx import _check as check
from olx.core import Learner, Rounds
from olx.engine.run import run
from olx.engine.serve import predict
from olx.engine.sparse_layout import takes_sparse
from olx.interop._estimator import Diverged, as_numpy, parts
from olx.keep import totals
from olx.losses.score import ScoreLoss
from olx.streams.sparse_rows import sparse_rows

_PIECE = 1 << 14  # rows
_KINDS = [np.float64, np.float32]
Matrix = Any  # a dense array, or a CSR matrix: SciPy has no type for both
_validate_data: Callable[..., Any] = validate_data  # scikit-learn types it more narrowly


class PlayedEstimator(BaseEstimator):
    """What an estimator that plays a learner knows once it is fitted."""

    passes: int
    n_features_in_: int
    learner_: Learner  # as it is played
    loss_: ScoreLoss
    state_: PyTree
    start_: np.ndarray  # the weights before the first row
    dtype_: np.dtype


class OnlineEstimator(PlayedEstimator):
    """The arguments of an estimator that plays a linear learner."""

    def __init__(
        self,
        learner: Learner | None = None,
        loss: ScoreLoss | None = None,
        *,
        fit_intercept: bool = True,
        passes: int = 1,
    ):
        self.learner = learner
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.passes = passes


def examples(
    estimator: PlayedEstimator,
    X: object,
    y: object,
    first: bool,
    sparse: bool = True,
    **options: bool,
) -> tuple[Matrix, np.ndarray]:
    """The rows and the labels, as scikit-learn reads them; `first` forgets what was learned."""
    if first:
        vars(estimator).pop("state_", None)  # it would not fit to what is read now
    kinds = _KINDS if first else estimator.dtype_
    accept = {"accept_sparse": "csr" if sparse else False, "dtype": kinds}
    return _validate_data(estimator, X, y, reset=first, **accept, **options)


def weighed(rows: Matrix, outcome: np.ndarray, sample_weight: object) -> Rounds:
    if sample_weight is None:
        return Rounds(rows, outcome)
    weight: Any = _check_sample_weight(
        sample_weight, rows, dtype=rows.dtype, ensure_non_negative=True
    )
    return Rounds(rows, outcome, weight)


def learn(estimator: PlayedEstimator, read: Rounds, times: int) -> None:
    """Play the rows `times` times, from the start or from where the estimator is."""
    state = getattr(estimator, "state_", None)
    learner, loss, start = estimator.learner_, estimator.loss_, estimator.start_
    with jax.enable_x64(estimator.dtype_ == np.float64):
        rounds = pieces(estimator, read, times)
        done = run(learner, loss, rounds, start, state=state, keep=totals, progress=False)
    estimator.state_ = jax.tree.map(as_numpy, done.state)


def zeros(estimator: PlayedEstimator, *scores: int) -> np.ndarray:
    """Where a linear learner starts: one row of weights, or one per score."""
    width = estimator.n_features_in_ + _has_intercept(estimator)
    return np.zeros((*scores, width), estimator.dtype_)


def plays_sparse(estimator: Any, usual: ScoreLoss) -> bool:
    """Whether the learner of an estimator takes sparse rows; not if it has no learner."""
    try:
        learner, loss = parts(estimator, usual)
    except (TypeError, ValueError):  # `fit` refuses them by name
        return False
    return takes_sparse(learner, *([3] if loss.of_classes else []))


def scores(estimator: PlayedEstimator, X: object) -> np.ndarray:
    """What the learner plays on each row."""
    rows = _validate_data(estimator, X, reset=False, accept_sparse="csr", dtype=estimator.dtype_)
    return actions(estimator, _context(estimator, rows))


def actions(estimator: PlayedEstimator, context: PyTree) -> np.ndarray:
    with jax.enable_x64(estimator.dtype_ == np.float64):
        found = predict(estimator.learner_, estimator.state_, context)
    if not np.isfinite(found).all():
        raise Diverged()
    return found


def shows(estimator: Any, inner: Any) -> Any:
    """The estimator, with what it tells about the rows that its inner one was fitted to."""
    for name in ("n_features_in_", "feature_names_in_", "classes_"):
        if hasattr(inner, name):
            setattr(estimator, name, getattr(inner, name))
        else:
            vars(estimator).pop(name, None)
    return estimator


def check_passes(estimator: PlayedEstimator) -> int:
    check.count("passes", estimator.passes)
    return estimator.passes


def pieces(estimator: PlayedEstimator, read: Rounds, times: int) -> Iterator[Rounds]:
    """The rounds, piece by piece, so that no second copy of all rows is made."""
    rows, outcome, weight = read
    size = rows.shape[0] if scipy.sparse.issparse(rows) else _PIECE
    for begin in itertools.chain(*[range(0, rows.shape[0], size)] * times):
        here = slice(begin, begin + size)
        own = None if weight is None else weight[here]
        yield Rounds(_context(estimator, rows[here]), outcome[here], own)


def _has_intercept(estimator: PlayedEstimator) -> bool:
    return bool(getattr(estimator, "fit_intercept", False))


def _context(estimator: PlayedEstimator, rows: Matrix) -> PyTree:
    """The rows for the engine, with a column of ones if there is an intercept."""
    sparse = scipy.sparse.issparse(rows)
    if _has_intercept(estimator):
        ones = np.ones((rows.shape[0], 1), rows.dtype)
        rows = scipy.sparse.hstack([rows, ones], "csr") if sparse else np.hstack([rows, ones])
    return sparse_rows(rows) if sparse else rows
