"""What the estimators share: how rows are read, and how a learner is played on them.

Rows of float32 are played in float32, all others in float64, as scikit-learn does.
"""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jaxtyping import PyTree
from sklearn.utils.validation import _check_sample_weight, validate_data

from olx import _check as check
from olx.core import Learner, Rounds
from olx.engine.predict import predict
from olx.engine.run import run
from olx.first_order.adagrad import adagrad
from olx.frameworks.affine import as_linear, is_affine
from olx.frameworks.lift import linear
from olx.losses.score import ScoreLoss
from olx.streams.sparse_rows import sparse_rows

_PIECE = 1 << 14  # rows
_KINDS = [np.float64, np.float32]


def parts(estimator: Any, usual: ScoreLoss) -> tuple[Learner, ScoreLoss]:
    """The learner and the loss of an estimator; what was not given is the usual one."""
    owner = type(estimator).__name__
    learner = linear(adagrad(1.0)) if estimator.learner is None else estimator.learner
    loss = usual if estimator.loss is None else estimator.loss
    check.instance(owner, "learner", learner, Learner)
    check.instance(owner, "loss", loss, ScoreLoss)
    if not is_affine(learner):
        return learner, loss
    if not estimator.fit_intercept:
        raise ValueError(
            f"{owner}: `olx.affine` plays an intercept, but fit_intercept=False; take `olx.linear`."
        )
    return as_linear(learner), loss  # the intercept is the weight of a column of ones


def examples(estimator: Any, X: Any, y: Any, first: bool, **options: Any) -> tuple[Any, Any]:
    """The rows and the labels, as scikit-learn reads them; `first` also learns their columns."""
    kinds = _KINDS if first else estimator.dtype_
    read: Any = validate_data(
        estimator, X, y, reset=first, accept_sparse="csr", dtype=kinds, **options
    )
    return read


def weights(sample_weight: Any, rows: Any) -> Any:
    if sample_weight is None:
        return None
    return _check_sample_weight(sample_weight, rows, dtype=rows.dtype, ensure_non_negative=True)


def learn(
    estimator: Any,
    rows: Any,
    outcome: np.ndarray,
    weight: Any,
    first: bool,
    times: int,
) -> None:
    """Play the rows `times` times, from the start or from where the estimator is."""
    state = None if first else estimator.state_
    start = np.zeros((*estimator.scores_, rows.shape[1] + estimator.fit_intercept), rows.dtype)
    learner, loss = estimator.learner_, estimator.loss_
    with jax.enable_x64(rows.dtype == np.float64):
        for _ in range(times):
            rounds = _pieces(estimator, rows, outcome, weight)
            state = run(learner, loss, rounds, start, state=state, progress=False).state
    estimator.state_ = jax.tree.map(_kept, state)


def scores(estimator: Any, X: Any) -> np.ndarray:
    """What the learner plays on each row."""
    rows: Any = validate_data(
        estimator, X, reset=False, accept_sparse="csr", dtype=estimator.dtype_
    )
    with jax.enable_x64(rows.dtype == np.float64):
        found = predict(estimator.learner_, estimator.state_, _context(estimator, rows))
    if not np.isfinite(found).all():
        raise ValueError(
            f"{type(estimator).__name__}: the scores are not finite, since the learner diverged; "
            "scale the features and the target, or take a smaller step size."
        )
    return found


def check_passes(estimator: Any) -> int:
    check.count(type(estimator).__name__, "passes", estimator.passes)
    return estimator.passes


def _kept(leaf: Any) -> Any:
    """A leaf of the state as NumPy holds it: JAX would read float64 from a pickle as float32."""
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return leaf if is_key else np.asarray(leaf)


def _pieces(estimator: Any, rows: Any, outcome: np.ndarray, weight: Any) -> Iterator[Rounds]:
    """The rounds, piece by piece, so that no second copy of all rows is made."""
    size = rows.shape[0] if scipy.sparse.issparse(rows) else _PIECE
    for begin in range(0, rows.shape[0], size):
        here = slice(begin, begin + size)
        own = None if weight is None else weight[here]
        yield Rounds(_context(estimator, rows[here]), outcome[here], own)


def _context(estimator: Any, rows: Any) -> PyTree:
    """The rows for the engine, with a column of ones if there is an intercept."""
    sparse = scipy.sparse.issparse(rows)
    if estimator.fit_intercept:
        ones = np.ones((rows.shape[0], 1), rows.dtype)
        rows = scipy.sparse.hstack([rows, ones], "csr") if sparse else np.hstack([rows, ones])
    return sparse_rows(rows) if sparse else rows
