r"""Regression by an online learner, as estimators of scikit-learn.

`fit` plays the rows in the order in which they are given: the learner predicts $s_t$ for row $x_t$,
pays $\ell(s_t, y_t)$ and moves. The prediction for a new row is that of the last state.

`ExpertRegressor` mixes given forecasts: a row $x_t$ holds the forecasts of $N$ experts for one
target. An expert learner plays a distribution $p_t$, the prediction is $\langle p_t, x_t \rangle$,
and the learner is told the slopes of the loss (`olx.experts.linearized`). So it competes with the
best fixed mixture of the experts: by convexity its regret is at most that of the expert learner on
these slopes. Without a learner it is AdaHedge, whose weights do not change if all losses are
multiplied by a number. So the range that it is given here, a million times what the first rows
show, matters to rounding only. All is played in float64 for that.

Pedregosa et al., Scikit-learn: Machine Learning in Python, 2011; Cesa-Bianchi, Lugosi, Prediction,
Learning, and Games, 2006, section 2.5.
"""

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from olx import _check as check
from olx._refusal import RefusedValue, public_methods
from olx.core import Learner, Rounds
from olx.experts.hedge import adahedge
from olx.experts.linearized import linearized
from olx.frameworks.lift import linear
from olx.interop._estimator import parts
from olx.interop.sklearn import _game as game
from olx.losses.residual import squared
from olx.losses.score import ScoreLoss


@public_methods
class OnlineRegressor(RegressorMixin, game.OnlineEstimator):
    """A regressor that learns row by row with any predictor of this library.

    learner: a predictor of one score, such as `olx.linear(olx.ogd(0.1))`. None is one without a
        step size: `olx.second_order.implicit_newton(loss)`, or `normalized_betting()` of
        `olx.first_order` for a loss that is not smooth, for sparse rows and from 1000 features on.
    loss: a loss of `olx.losses`; None is `olx.losses.squared`.
    fit_intercept: whether to add a feature that is always 1 after the others.
    passes: how often `fit` plays the rows; `partial_fit` plays them once.

    If the target has several columns, each has its own copy of the learner.
    If the score is linear in the row, the fitted `coef_` and `intercept_` are its weights.

    >>> import numpy as np, olx
    >>> from olx.interop.sklearn import OnlineRegressor
    >>> rows = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = OnlineRegressor(olx.linear(olx.ogd(0.1))).fit(rows, rows @ [1.0, -2.0] + 5.0)
    >>> model.predict([[0.0, 0.0], [1.0, 1.0]]).round(3).tolist()
    [5.0, 4.0]
    """

    def fit(self, X: object, y: object, sample_weight: object = None) -> "OnlineRegressor":
        """Forget the past, then play the rows in their order."""
        passes = game.check_passes(self)
        game.learn(self, read(self, X, y, sample_weight), passes)
        return self

    def partial_fit(self, X: object, y: object, sample_weight: object = None) -> "OnlineRegressor":
        """Continue with more rows."""
        first = not hasattr(self, "state_")
        game.learn(self, read(self, X, y, sample_weight, first=first), 1)
        return self

    def predict(self, X: object) -> np.ndarray:
        """One number per row; one per output if there are several."""
        check_is_fitted(self, "state_")
        return game.scores(self, X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = game.plays_sparse(self, squared)
        tags.target_tags.multi_output = True
        return tags


_SLACK = 2.0**20


@public_methods
class ExpertRegressor(RegressorMixin, game.PlayedEstimator):
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

    def __init__(
        self, learner: Learner | None = None, loss: ScoreLoss | None = None, *, passes: int = 1
    ):
        self.learner = learner
        self.loss = loss
        self.passes = passes

    def fit(self, X: object, y: object, sample_weight: object = None) -> "ExpertRegressor":
        """Forget the past, then play the rows in their order."""
        passes = game.check_passes(self)
        game.learn(self, _read_forecasts(self, X, y, sample_weight, True), passes)
        return self

    def partial_fit(self, X: object, y: object, sample_weight: object = None) -> "ExpertRegressor":
        """Continue with more rows."""
        first = not hasattr(self, "state_")
        game.learn(self, _read_forecasts(self, X, y, sample_weight, first), 1)
        return self

    def predict(self, X: object) -> np.ndarray:
        """The mixture of the forecasts of each row."""
        check_is_fitted(self, "state_")
        return game.scores(self, X)

    @property
    def weights_(self) -> np.ndarray:
        """The weight of each expert: the mixture of the unit vectors."""
        check_is_fitted(self, "state_")
        return game.actions(self, np.eye(len(self.start_), dtype=self.dtype_))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # features that are no forecasts of the target
        return tags


def read(
    model: OnlineRegressor, X: object, y: object, weight: object, *, first: bool = True
) -> Rounds:
    """The rows with their targets; `first` also decides how the learner is played."""
    rows, target = game.examples(model, X, y, first, y_numeric=True, multi_output=True)
    outputs = None if target.ndim == 1 else target.shape[1]
    if first:
        model.dtype_, model.outputs_ = rows.dtype, outputs
        arrange(model, game.is_wide(rows))
    if outputs != model.outputs_:
        words = [
            "one column" if n is None else f"a matrix of {n}" for n in (outputs, model.outputs_)
        ]
        raise RefusedValue(f"the target is {words[0]}, that of the first call was {words[1]}.")
    return game.weighed(rows, target.astype(rows.dtype), weight)


def arrange(model: OnlineRegressor, wide: bool = False) -> None:
    model.learner_, model.loss_ = parts(model, squared, wide)
    model.start_ = game.zeros(model)


def _read_forecasts(
    model: ExpertRegressor, X: object, y: object, weight: object, first: bool
) -> Rounds:
    rows, target = game.examples(model, X, y, first, sparse=False, y_numeric=True)
    rows, target = rows.astype(np.float64), target.astype(np.float64)
    if first:
        loss = squared if model.loss is None else model.loss
        check.instance("loss", loss, ScoreLoss)
        inner = _usual_learner(rows, target, loss) if model.learner is None else model.learner
        check.instance("learner", inner, Learner)
        model.learner_, model.loss_, model.dtype_ = linear(linearized(inner)), loss, rows.dtype
        model.start_ = np.full(rows.shape[1], 1 / rows.shape[1])
    return game.weighed(rows, target, weight)


def _usual_learner(rows: np.ndarray, target: np.ndarray, loss: ScoreLoss) -> Learner:
    """AdaHedge with a range that is far larger than what the rows show."""
    far = np.abs(rows - target[:, None]).max(1).argmax()  # the slope is large there
    with jax.enable_x64(True):
        slope = jax.vmap(loss.value_and_slope, (0, None))(
            jnp.array([rows[far].min(), rows[far].max()]), target[far]
        )[1]
    spread = (rows.max(1) - rows.min(1)).max()
    bound = _SLACK * (spread or 1.0) * (float(np.abs(slope).max()) or 1.0)
    return adahedge(low=-bound, high=bound)
