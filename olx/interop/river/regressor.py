r"""Regression by an online learner, as an estimator of river.

`learn_one` plays a round: the learner predicts $s_t$ for row $x_t$, pays $\ell(s_t, y_t)$ and
moves. `predict_one` is the prediction after all rounds so far. Features are columns by their names;
one that a row lacks is 0 in it, and one that comes later starts where `init` puts it.

Montiel et al., River: Machine Learning for Streaming Data in Python, 2021.
"""

import math
from typing import Any

import numpy as np
from jaxtyping import PyTree
from river import base
from river.utils import dataframe

from olx._refusal import public_methods
from olx.core import Learner
from olx.interop._estimator import Diverged, parts
from olx.interop.river._game import RiverGame, features, weights
from olx.losses.residual import squared
from olx.losses.score import ScoreLoss


@public_methods
class OnlineRegressor(base.MiniBatchRegressor):
    """A regressor that learns row by row with any predictor of this library.

    learner: a predictor of one score, such as `olx.linear(olx.ogd(0.1))`; None is
        `olx.linear(olx.first_order.adagrad(1.0))`.
    loss: a loss of `olx.losses`; None is `olx.losses.squared`.
    fit_intercept: whether there is a feature before the others that is always 1.

    >>> import olx
    >>> from olx.interop.river import OnlineRegressor
    >>> model = OnlineRegressor(olx.linear(olx.ogd(0.1)))
    >>> for i in range(400):
    ...     x = {"a": i % 3, "b": i % 2} if i > 9 else {"a": i % 3}
    ...     model.learn_one(x, 5.0 + x["a"] - 2.0 * x.get("b", 0))
    >>> round(model.predict_one({"b": 1}), 2)
    3.0
    """

    def __init__(
        self,
        learner: Learner | None = None,
        loss: ScoreLoss | None = None,
        fit_intercept: bool = True,
    ):
        self.learner = learner
        self.loss = loss
        self.fit_intercept = fit_intercept
        self._game: RiverGame | None = None
        self._name: Any = None

    def learn_one(self, x: dict, y: float, w: float = 1.0) -> None:
        """Play a round; `w` is its weight."""
        game = self._game or self._begin()
        game.learn(x, y, w)

    def predict_one(self, x: dict) -> float:
        """The prediction after all rounds so far."""
        game = self._game or self._begin()
        found = game.quick(x)
        if found is None:
            found = float(game.score(x))
        if not math.isfinite(found):
            raise Diverged()
        return found

    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:
        """Play the rows of a frame in their order, as `learn_one` does."""
        game, (matrix, names) = self._game or self._begin(), features(X)
        target = dataframe.into_series(y)
        self._name = target.name
        game.learn_many(matrix, names, target.to_numpy().astype(float), weights(w, matrix))

    def predict_many(self, X: Any) -> Any:
        """One prediction per row of a frame, as a series."""
        game, (matrix, names) = self._game or self._begin(), features(X)
        found = game.scores(matrix, names)
        if not np.isfinite(found).all():
            raise Diverged()
        return dataframe.to_native_series(found, name=self._name, like=dataframe.into_frame(X))

    @property
    def state(self) -> PyTree:
        """The state of the learner after all rounds so far."""
        return (self._game or self._begin()).state()

    def _begin(self) -> RiverGame:
        learner, loss = parts(self, squared)
        self._game = RiverGame(learner, loss, self.fit_intercept)
        self._game.alone = learner, loss, None
        return self._game
