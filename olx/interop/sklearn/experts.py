r"""A mixture of given forecasts, as an estimator of scikit-learn.

A row $x_t$ holds the forecasts of $N$ experts for one target. An expert learner plays a
distribution $p_t$, the prediction is $\langle p_t, x_t \rangle$, and the learner is told the slopes
of the loss (`olx.experts.linearized`). So it competes with the best fixed mixture of the experts:
by convexity its regret is at most that of the expert learner on these slopes.

Without a learner it is AdaHedge, whose weights do not change if all losses are multiplied by a
number. So the range that it is given here, a million times what the first rows show, matters to
rounding only. All is played in float64 for that.

Cesa-Bianchi, Lugosi, Prediction, Learning, and Games, 2006, section 2.5.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from olx import _check as check
from olx._refusal import public_methods
from olx.core import Learner, Rounds
from olx.experts.hedge import adahedge
from olx.experts.linearized import linearized
from olx.frameworks.lift import linear
from olx.interop.sklearn import _game as game
from olx.losses.residual import squared
from olx.losses.score import ScoreLoss

_SLACK = 2.0**20


@public_methods
class ExpertRegressor(RegressorMixin, BaseEstimator):
    """Mix the forecasts in the columns; the weights are never negative and add up to 1.

    learner: an expert learner, whose action is a distribution, with the range of its losses (see
        `olx.experts.linearized`); None is `olx.experts.adahedge`, with a range found in the first
        rows. Rows that break the range are refused by `predict`.
    loss: a convex loss of `olx.losses`; None is `olx.losses.squared`.
    passes: how often `fit` plays the rows; `partial_fit` plays them once.

    The fitted `weights_` has one number per expert.

    >>> import numpy as np
    >>> from olx.interop.sklearn import ExpertRegressor
    >>> draw = np.random.default_rng(0)
    >>> truth = draw.normal(size=500)
    >>> forecasts = truth[:, None] + draw.normal(size=(500, 3)) * [0.1, 1.0, 2.0]
    >>> model = ExpertRegressor().fit(forecasts, truth)
    >>> bool(model.weights_[0] > 0.9), round(float(model.weights_.sum()), 6)
    (True, 1.0)
    """

    learner_: Learner  # as it is played
    loss_: ScoreLoss
    state_: PyTree
    start_: np.ndarray  # the weights before the first row
    dtype_: np.dtype

    def __init__(
        self, learner: Learner | None = None, loss: ScoreLoss | None = None, *, passes: int = 1
    ):
        self.learner = learner
        self.loss = loss
        self.passes = passes

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "ExpertRegressor":
        """Forget the past, then play the rows in their order."""
        passes = game.check_passes(self)
        game.learn(self, _read(self, X, y, sample_weight, True), passes)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> "ExpertRegressor":
        """Continue with more rows."""
        first = not hasattr(self, "state_")
        game.learn(self, _read(self, X, y, sample_weight, first), 1)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The mixture of the forecasts of each row."""
        check_is_fitted(self, "state_")
        return game.scores(self, X)

    @property
    def weights_(self) -> np.ndarray:
        """The weight of each expert: the mixture of the unit vectors."""
        check_is_fitted(self, "state_")
        return game.actions(self, np.eye(len(self.start_), dtype=self.dtype_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # features that are no forecasts of the target
        return tags


def _read(model: ExpertRegressor, X: Any, y: Any, weight: Any, first: bool) -> Rounds:
    rows, target = game.examples(model, X, y, first, sparse=False, y_numeric=True)
    rows, target = rows.astype(np.float64), target.astype(np.float64)
    if first:
        loss = squared if model.loss is None else model.loss
        check.instance("loss", loss, ScoreLoss)
        inner = _usual(rows, target, loss) if model.learner is None else model.learner
        check.instance("learner", inner, Learner)
        model.learner_, model.loss_, model.dtype_ = linear(linearized(inner)), loss, rows.dtype
        model.start_ = np.full(rows.shape[1], 1 / rows.shape[1])
    return game.weighed(rows, target, weight)


def _usual(rows: np.ndarray, target: np.ndarray, loss: ScoreLoss) -> Learner:
    """AdaHedge with a range that is far larger than what the rows show."""
    far = np.abs(rows - target[:, None]).max(1).argmax()  # the slope is large there
    with jax.enable_x64(True):
        slope = jax.vmap(loss.value_and_slope, (0, None))(
            jnp.array([rows[far].min(), rows[far].max()]), target[far]
        )[1]
    spread = (rows.max(1) - rows.min(1)).max()
    bound = _SLACK * (spread or 1.0) * (float(np.abs(slope).max()) or 1.0)
    return adahedge(low=-bound, high=bound)
