r"""Regression by an online learner, as an estimator of scikit-learn.

`fit` plays the rows in the order in which they are given: the learner predicts $s_t$ for row $x_t$,
pays $\ell(s_t, y_t)$ and moves. The prediction for a new row is that of the last state.

Pedregosa et al., Scikit-learn: Machine Learning in Python, 2011.
"""

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from olx.core import Rounds
from olx.interop._estimator import parts
from olx.interop.sklearn import _game as game
from olx.losses.residual import squared


class OnlineRegressor(RegressorMixin, game.OnlineEstimator):
    """A regressor that learns row by row with any predictor of this library.

    learner: a predictor of one score, such as `olx.linear(olx.ogd(0.1))`; None is
        `olx.linear(olx.first_order.adagrad(1.0))`.
    loss: a loss of `olx.losses`; None is `olx.losses.squared`.
    fit_intercept: whether to add a feature that is always 1 after the others.
    passes: how often `fit` plays the rows; `partial_fit` plays them once.

    >>> import numpy as np, olx
    >>> from olx.interop.sklearn import OnlineRegressor
    >>> rows = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = OnlineRegressor(olx.linear(olx.ogd(0.1))).fit(rows, rows @ [1.0, -2.0] + 5.0)
    >>> model.predict([[0.0, 0.0], [1.0, 1.0]]).round(3).tolist()
    [5.0, 4.0]
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "OnlineRegressor":
        """Forget the past, then play the rows in their order."""
        passes = game.check_passes(self)
        game.learn(self, read(self, X, y, sample_weight), passes)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> "OnlineRegressor":
        """Continue with more rows."""
        first = not hasattr(self, "state_")
        game.learn(self, read(self, X, y, sample_weight, first=first), 1)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """One number per row."""
        check_is_fitted(self, "state_")
        return game.scores(self, X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = game.plays_sparse(self, squared)
        return tags


def read(model: OnlineRegressor, X: Any, y: Any, weight: Any, *, first: bool = True) -> Rounds:
    """The rows with their targets; `first` also decides how the learner is played."""
    rows, target = game.examples(model, X, y, first, y_numeric=True)
    if first:
        model.dtype_ = rows.dtype
        arrange(model)
    return game.weighed(rows, target.astype(rows.dtype), weight)


def arrange(model: OnlineRegressor) -> None:
    model.learner_, model.loss_ = parts(model, squared)
    model.start_ = game.zeros(model)
