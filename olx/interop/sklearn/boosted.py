r"""Boosting of a weak online learner, as an estimator of scikit-learn.

`n` copies of the weak learner vote (`olx.boosting.boost`). A rule passes each row from copy to copy
with a weight, which is small if the copies before are right. The score is the vote, and the label
is its sign. With more than two classes there is one such vote per class (`one_vs_rest`).

Beygelzimer, Kale, Luo, Optimal and Adaptive Algorithms for Online Boosting, 2015.
"""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from olx._refusal import RefusedType, public_methods
from olx.boosting.adaboost_ol import adaboost_ol
from olx.boosting.boost import BoostingRule, boost
from olx.core import Learner
from olx.interop._estimator import parts
from olx.interop.sklearn import _game as game
from olx.interop.sklearn.classifier import OnlineClassifier
from olx.losses.entropic import logistic
from olx.losses.score import ScoreLoss


@public_methods
class BoostedClassifier(ClassifierMixin, BaseEstimator):
    """A vote of copies of a weak classifier.

    learner: the weak one, a predictor of one score; None is that of `OnlineClassifier`.
    n: the number of copies.
    rule: a rule of `olx.boosting`, such as `online_bbm(0.1)`; None is `adaboost_ol()`.
    loss: what the copies learn from, a loss of one score; None is `olx.losses.logistic`.
    fit_intercept, passes: as in `OnlineClassifier`.

    >>> import numpy as np, olx
    >>> from olx.interop.sklearn import BoostedClassifier
    >>> rows = np.random.default_rng(0).normal(size=(200, 3))
    >>> labels = np.where(rows[:, 0] > rows[:, 1], "left", "right")
    >>> model = BoostedClassifier(olx.linear(olx.ogd(0.1)), n=5).fit(rows, labels)
    >>> bool(model.score(rows, labels) > 0.9)
    True
    """

    def __init__(
        self,
        learner: Learner | None = None,
        n: int = 10,
        rule: BoostingRule | None = None,
        loss: ScoreLoss | None = None,
        *,
        fit_intercept: bool = True,
        passes: int = 1,
    ):
        self.learner = learner
        self.n = n
        self.rule = rule
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.passes = passes

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "BoostedClassifier":
        """Forget the past, then play the rows in their order."""
        self.model_ = _voters(self).fit(X, y, sample_weight)
        return game.shows(self, self.model_)

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> "BoostedClassifier":
        """Continue with more rows; the first call names all `classes`."""
        model = getattr(self, "model_", None) or _voters(self)
        self.model_ = model.partial_fit(X, y, classes, sample_weight)
        return game.shows(self, self.model_)

    def decision_function(self, X: Any) -> np.ndarray:
        """The vote for the larger label; one per class if there are several."""
        check_is_fitted(self, "model_")
        return self.model_.decision_function(X)

    def predict(self, X: Any) -> np.ndarray:
        """The label with the largest vote."""
        check_is_fitted(self, "model_")
        return self.model_.predict(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = game.plays_sparse(self, logistic)
        return tags


def _voters(model: BoostedClassifier) -> OnlineClassifier:
    weak, loss = parts(model, logistic)
    if loss.of_classes:
        raise RefusedType(
            "`loss` must be a loss of one score, by which each copy learns, got "
            f"{loss!r}; take `olx.losses.logistic` or `olx.losses.hinge`."
        )
    rule = adaboost_ol() if model.rule is None else model.rule
    voters = boost(weak, model.n, rule, loss=loss)
    return OnlineClassifier(voters, loss, fit_intercept=model.fit_intercept, passes=model.passes)
