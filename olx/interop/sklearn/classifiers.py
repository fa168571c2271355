r"""Classification by an online learner, as estimators of scikit-learn.

`fit` plays the rows in the order in which they are given: with score $s_t$ for row $x_t$ the
learner pays $\ell(s_t, y_t)$ and moves. The prediction is that of the last state.

- Two classes and a loss of one score: the label is $-1$ for the first class and $+1$ for the other.
- More classes and a loss of one score: one copy of the learner per class (`one_vs_rest`).
- A loss of a vector of scores: one row of weights per class.

Probabilities are the inverse link of the loss: $1 / (1 + e^{-s})$ for the logistic loss, shared out
so that they add up to 1 if there are several copies, and $e^{s_r} / \sum_j e^{s_j}$ for
cross-entropy.

In `BoostedClassifier` `n` copies of a weak learner vote (`olx.boosting.boost`). A rule passes each
row from copy to copy with a weight, which is small if the copies before are right. The score is the
vote, and the label is its sign.

Pedregosa et al., Scikit-learn: Machine Learning in Python, 2011; Beygelzimer, Kale, Luo, Optimal
and Adaptive Algorithms for Online Boosting, 2015.
"""

import numpy as np
import scipy.special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted

from olx import _check as check
from olx._refusal import RefusedType, RefusedValue, public_methods
from olx.boosting.adaboost_ol import adaboost_ol
from olx.boosting.boost import BoostingRule, boost
from olx.core import Learner, Rounds
from olx.interop import _estimator as shared
from olx.interop.sklearn import _game as game
from olx.losses.class_hinges import multiclass_zero_one
from olx.losses.entropic import logistic
from olx.losses.score import ScoreLoss
from olx.multiclass.reductions import one_vs_rest


def _has_link(estimator: "OnlineClassifier") -> bool:
    if shared.has_link(estimator.loss):
        return True
    raise AttributeError(shared.no_probabilities(estimator.loss, "decision_function"))


@public_methods
class OnlineClassifier(ClassifierMixin, game.OnlineEstimator):
    """A classifier that learns row by row with any predictor of this library.

    learner: a predictor of one score, such as `olx.linear(olx.ogd(0.1))`, or with a loss of classes
        one of `olx.multiclass`. None is one without a step size, as in `OnlineRegressor`; for
        losses of classes it is `olx.linear(olx.first_order.adagrad(1.0))`.
    loss: a loss of `olx.losses`; None is `olx.losses.logistic`.
    fit_intercept: whether to add a feature that is always 1 after the others.
    passes: how often `fit` plays the rows; `partial_fit` plays them once.
    class_weight: factors of the weights of rows by label, 1 for labels without one; "balanced" for
        the number of rows over the number of classes and over that of the rows of the class.

    If the score is linear in the row, the fitted `coef_` and `intercept_` are its weights, one row
    per score.

    >>> import numpy as np, olx
    >>> from olx.interop.sklearn import OnlineClassifier
    >>> rows = np.random.default_rng(0).normal(size=(200, 3))
    >>> labels = np.where(rows[:, 0] > rows[:, 1], "left", "right")
    >>> model = OnlineClassifier(olx.linear(olx.ogd(0.5)), loss=olx.losses.logistic)
    >>> bool(model.fit(rows, labels).score(rows, labels) > 0.9)
    True
    """

    classes_: np.ndarray

    def __init__(
        self,
        learner: Learner | None = None,
        loss: ScoreLoss | None = None,
        *,
        fit_intercept: bool = True,
        passes: int = 1,
        class_weight: dict | str | None = None,
    ):
        super().__init__(learner, loss, fit_intercept=fit_intercept, passes=passes)
        self.class_weight = class_weight

    def fit(self, X: object, y: object, sample_weight: object = None) -> "OnlineClassifier":
        """Forget the past, then play the rows in their order."""
        passes = game.check_passes(self)
        game.learn(self, read(self, X, y, sample_weight), passes)
        return self

    def partial_fit(
        self, X: object, y: object, classes: object = None, sample_weight: object = None
    ) -> "OnlineClassifier":
        """Continue with more rows.

        classes: all labels that will ever come; needed in the first call only.
        """
        first = not hasattr(self, "state_")
        if isinstance(self.class_weight, str):
            raise RefusedValue(
                f"class_weight={self.class_weight!r} counts the rows of all classes, which "
                "partial_fit does not have; give the weights as a dictionary."
            )
        if first and classes is None:
            raise RefusedValue(
                "classes must be given in the first call of partial_fit, since "
                "later rows may have labels that the first ones lack."
            )
        if not first and classes is not None:
            _check_same(self.classes_, unique_labels(classes))
        game.learn(self, read(self, X, y, sample_weight, first=first, classes=classes), 1)
        return self

    def decision_function(self, X: object) -> np.ndarray:
        """One score per row, positive for the larger label; one per class if there are several."""
        check_is_fitted(self, "state_")
        return _difference(self, game.scores(self, X).T).T

    @property
    def coef_(self) -> np.ndarray:
        return np.atleast_2d(_difference(self, super().coef_))

    @property
    def intercept_(self) -> np.ndarray:
        return np.atleast_1d(_difference(self, np.atleast_1d(super().intercept_)))

    def predict(self, X: object) -> np.ndarray:
        """The label with the largest score."""
        found = self.decision_function(X)
        return self.classes_[(found > 0).astype(int) if found.ndim == 1 else found.argmax(1)]

    @available_if(_has_link)
    def predict_proba(self, X: object) -> np.ndarray:
        """The probability of each class."""
        found = self.decision_function(X)
        if found.ndim == 1:
            share = scipy.special.expit(found)
            return np.stack([scipy.special.expit(-found), share], 1)
        return shared.probabilities(found, self.loss is not None and self.loss.of_classes)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = game.plays_sparse(self, logistic)
        return tags


@public_methods
class BoostedClassifier(ClassifierMixin, BaseEstimator):
    """A vote of copies of a weak classifier.

    learner: the weak one, a predictor of one score; None is
        `olx.first_order.normalized_betting()`.
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

    def fit(self, X: object, y: object, sample_weight: object = None) -> "BoostedClassifier":
        """Forget the past, then play the rows in their order."""
        self.model_ = _voters(self).fit(X, y, sample_weight)
        return game.shows(self, self.model_)

    def partial_fit(
        self, X: object, y: object, classes: object = None, sample_weight: object = None
    ) -> "BoostedClassifier":
        """Continue with more rows; the first call names all `classes`."""
        model = getattr(self, "model_", None) or _voters(self)
        self.model_ = model.partial_fit(X, y, classes, sample_weight)
        return game.shows(self, self.model_)

    def decision_function(self, X: object) -> np.ndarray:
        """The vote for the larger label; one per class if there are several."""
        check_is_fitted(self, "model_")
        return self.model_.decision_function(X)

    def predict(self, X: object) -> np.ndarray:
        """The label with the largest vote."""
        check_is_fitted(self, "model_")
        return self.model_.predict(X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = game.plays_sparse(self, logistic)
        return tags


def _difference(model: OnlineClassifier, scores: np.ndarray) -> np.ndarray:
    """One entry per class as it is; if there are two classes, what the second one is ahead."""
    several = len(scores) == 2 == len(model.classes_) and model.loss_.of_classes
    return scores[1] - scores[0] if several else scores


def read(
    model: OnlineClassifier,
    X: object,
    y: object,
    weight: object,
    *,
    first: bool = True,
    classes: object = None,
) -> Rounds:
    """The rows with their outcomes; `first` also decides how the learner is played."""
    rows, labels = game.examples(model, X, y, first)
    check_classification_targets(labels)
    if first:
        _start(model, rows, np.unique(labels) if classes is None else unique_labels(classes))
    read = game.weighed(rows, _outcome(model, labels, rows.dtype), weight)
    if model.class_weight is None:
        return read
    factors = compute_class_weight(_class_weight(model), classes=model.classes_, y=labels)
    own = factors[np.searchsorted(model.classes_, labels)].astype(rows.dtype)
    return read._replace(weight=own if read.weight is None else own * read.weight)


def _start(model: OnlineClassifier, rows: game.Matrix, known: np.ndarray) -> None:
    if len(known) < 2:
        raise RefusedValue(f"needs labels of at least 2 classes, got one class {known.tolist()}.")
    model.classes_, model.dtype_ = known, rows.dtype
    arrange(model, game.is_wide(rows, len(known)))


def _class_weight(model: OnlineClassifier) -> dict | str:
    """The weights of the classes, as scikit-learn takes them; refuses what are no weights."""
    given = model.class_weight
    if isinstance(given, dict):
        strange = [label for label in given if label not in model.classes_.tolist()]
        if strange:
            raise RefusedValue(
                f"class_weight has the label {strange[0]!r}, the classes are "
                f"{model.classes_.tolist()}."
            )
        for label, weight in given.items():
            check.non_negative(f"class_weight[{label!r}]", weight)
    elif given != "balanced":
        raise RefusedValue(f'class_weight must be a dictionary, "balanced" or None, got {given!r}.')
    return given


def arrange(model: OnlineClassifier, wide: bool = False) -> None:
    """Choose how the learner is played, from the number of classes."""
    learner, loss = shared.parts(model, logistic, wide)
    k = len(model.classes_)
    if k > 2 and not loss.of_classes:
        learner, loss = one_vs_rest(learner, k, loss=loss), multiclass_zero_one
    shared.check_classes(learner, model.classes_.tolist())
    model.learner_, model.loss_ = learner, loss
    rows = (k,) if loss.of_classes and not shared.is_reduction(learner) else ()
    model.start_ = game.zeros(model, *rows)


def _outcome(model: OnlineClassifier, labels: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Each label as the loss takes it; a label that is not known is refused."""
    known = model.classes_
    if model.loss_.of_classes:
        outcome = np.searchsorted(known, labels).clip(max=len(known) - 1).astype(np.int32)
        strange = known[outcome] != labels
    else:
        larger = labels == known[1]
        outcome = np.where(larger, kind.type(1), kind.type(-1))
        strange = ~larger & (labels != known[0])
    if strange.any():
        raise RefusedValue(
            f"the label {labels[strange].tolist()[0]!r} is none of the classes "
            f"{known.tolist()}; name all of them in the first call of partial_fit."
        )
    return outcome


def _check_same(known: np.ndarray, given: np.ndarray) -> None:
    if not np.array_equal(known, given):
        raise RefusedValue(
            f"classes {given.tolist()} are not those of the first call, "
            f"{known.tolist()}; call `fit` to start again."
        )


def _voters(model: BoostedClassifier) -> OnlineClassifier:
    weak, loss = shared.parts(model, logistic, wide=True)
    if loss.of_classes:
        raise RefusedType(
            "`loss` must be a loss of one score, by which each copy learns, got "
            f"{loss!r}; take `olx.losses.logistic` or `olx.losses.hinge`."
        )
    rule = adaboost_ol() if model.rule is None else model.rule
    voters = boost(weak, model.n, rule, loss=loss)
    return OnlineClassifier(voters, loss, fit_intercept=model.fit_intercept, passes=model.passes)
