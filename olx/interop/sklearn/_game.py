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
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from olx import _check as check
from olx._refusal import RefusedType
from olx.core import Learner, Rounds
from olx.engine.decision import decision
from olx.engine.run import run
from olx.engine.serve import predict
from olx.engine.sparse_layout import takes_sparse
from olx.interop._estimator import Diverged, as_numpy, parts
from olx.interop.sklearn._numbers import numbers, remade
from olx.keep import totals
from olx.losses.score import ScoreLoss
from olx.streams.sparse_rows import sparse_rows

_PIECE = 1 << 14  # rows
_LARGE = 1 << 20  # numbers in the matrices of the usual learner
_KINDS = [np.float64, np.float32]
Matrix = Any  # a dense array, or a CSR matrix: SciPy has no type for both
_validate_data: Callable[..., Any] = validate_data  # scikit-learn types it more narrowly


class PlayedEstimator(BaseEstimator):
    """What an estimator that plays a learner knows once it is fitted."""

    passes: int
    n_features_in_: int
    learner_: Learner  # as it is played
    loss_: ScoreLoss
    state_: PyTree  # one, or a list with one per output
    outputs_: int | None = None  # how many, if the target is a matrix
    start_: np.ndarray  # the weights before the first row
    dtype_: np.dtype


class OnlineEstimator(PlayedEstimator):
    """The arguments of an estimator that plays a linear learner, and its weights.

    The numbers of its learner and of its loss are parameters too, such as `learner__eta`.
    """

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

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        found = super().get_params(deep)
        for part in _PARTS if deep else ():
            if isinstance(found[part], _PARTS[part]):
                own = numbers(found[part])
                found |= {f"{part}__{name}": value for name, value in own.items()}
        return found

    def set_params(self, **params: Any) -> Any:
        inner: dict[str, dict[str, Any]] = {part: {} for part in _PARTS}
        for name in list(params):
            part, found, own = name.partition("__")
            if found and part in inner:
                inner[part][own] = params.pop(name)
        super().set_params(**params)
        for part, own in inner.items():
            if own:
                check.instance(part, getattr(self, part), _PARTS[part])
                setattr(self, part, remade(getattr(self, part), own))
        return self

    @property
    def coef_(self) -> np.ndarray:
        """The weights of the features, shaped as those of the linear models of scikit-learn."""
        check_is_fitted(self, "state_")
        return linear_part(self)[0]

    @property
    def intercept_(self) -> np.ndarray:
        """The score of a row of zeros; 0 without an intercept."""
        check_is_fitted(self, "state_")
        return linear_part(self)[1]


_PARTS: dict[str, type] = {"learner": Learner, "loss": ScoreLoss}


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
    """Play the rows `times` times, from the start or from where the estimator is.

    Each column of a matrix of outcomes has its own copy of the learner.
    """
    state = getattr(estimator, "state_", None)
    if read.outcome.ndim == 1:
        estimator.state_ = _played(estimator, read, times, state)
        return
    columns = [read._replace(outcome=column) for column in read.outcome.T]
    before = [None] * len(columns) if state is None else state
    pairs = zip(columns, before, strict=True)
    estimator.state_ = [_played(estimator, one, times, own) for one, own in pairs]


def _played(estimator: PlayedEstimator, read: Rounds, times: int, state: PyTree) -> PyTree:
    learner, loss, start = estimator.learner_, estimator.loss_, estimator.start_
    with jax.enable_x64(estimator.dtype_ == np.float64):
        rounds = pieces(estimator, read, times)
        done = run(learner, loss, rounds, start, state=state, keep=totals, progress=False)
    return jax.tree.map(as_numpy, done.state)


def zeros(estimator: PlayedEstimator, *scores: int) -> np.ndarray:
    """Where a linear learner starts: one row of weights, or one per score."""
    width = estimator.n_features_in_ + _has_intercept(estimator)
    return np.zeros((*scores, width), estimator.dtype_)


def plays_sparse(estimator: Any, usual: ScoreLoss) -> bool:
    """Whether the learner of an estimator takes sparse rows; not if it has no learner."""
    try:
        learner, loss = parts(estimator, usual, wide=True)
    except (TypeError, ValueError):  # `fit` refuses them by name
        return False
    return takes_sparse(learner, *([3] if loss.of_classes else []))


def scores(estimator: PlayedEstimator, X: object) -> np.ndarray:
    """What the learner plays on each row."""
    rows = _validate_data(estimator, X, reset=False, accept_sparse="csr", dtype=estimator.dtype_)
    return actions(estimator, _context(estimator, rows))


def actions(estimator: PlayedEstimator, context: PyTree) -> np.ndarray:
    play = lambda state: predict(estimator.learner_, state, context)
    with jax.enable_x64(estimator.dtype_ == np.float64):
        if estimator.outputs_ is None:
            found = play(estimator.state_)
        else:
            found = np.stack([play(state) for state in estimator.state_], 1)
    if not np.isfinite(found).all():
        raise Diverged()
    return found


def linear_part(estimator: PlayedEstimator) -> tuple[np.ndarray, np.ndarray]:
    """The weights of the features, one row per score, and the intercepts; for a linear score."""
    row, several = zeros(estimator), estimator.outputs_ is not None
    learner, width = estimator.learner_, estimator.n_features_in_
    try:
        with jax.enable_x64(estimator.dtype_ == np.float64):
            states = estimator.state_ if several else [estimator.state_]
            found = np.stack([np.asarray(decision(learner, state, row)) for state in states])
    except RefusedType as error:
        raise AttributeError(f"no weights: {error.args[0]}") from None
    found = found if several else found[0]
    weights, intercept = found[..., :width], found[..., width:].sum(-1)
    drawn = np.random.default_rng(0).normal(size=(2, width)) * [[1e6], [1e-6]]
    rows = drawn.astype(estimator.dtype_)
    wanted, size = rows @ weights.T + intercept, abs(rows) @ abs(weights.T) + abs(intercept)
    if (abs(actions(estimator, _context(estimator, rows)) - wanted) > 1e-3 * size).any():
        raise AttributeError("no weights: the score is a linear function of small rows only.")
    return weights, intercept


def is_wide(rows: Matrix, copies: int = 1) -> bool:
    """Whether the usual learner should keep no matrix of all pairs of features."""
    return scipy.sparse.issparse(rows) or copies * rows.shape[1] ** 2 > _LARGE


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
