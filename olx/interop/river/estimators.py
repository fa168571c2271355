r"""Regression and classification by an online learner, as estimators of river.

`learn_one` plays a round: with score $s_t$ for row $x_t$ the learner pays $\ell(s_t, y_t)$ and
moves. `predict_one` is the prediction after all rounds so far. Features are columns by their names;
one that a row lacks is 0 in it, and one that comes later starts where `init` puts it.

Classes are met one by one:

- A loss of one score: there is a copy of the learner per class (`one_vs_rest`), and one for the
  classes that are still to come, whose label was always $-1$. A new class goes on from that copy,
  so the result is that of a run in which all classes were known. While there are two classes, the
  score is that of the copy whose label is $+1$ for the second class, or for `True` or 1.
- A loss of a vector of scores: one row of weights per class. A new row starts where `init` puts it.

Probabilities are the inverse link of the loss: $1 / (1 + e^{-s})$ for the logistic loss, shared out
so that they add up to 1 if there are more than two classes, and $e^{s_r} / \sum_j e^{s_j}$ for
cross-entropy.

Montiel et al., River: Machine Learning for Streaming Data in Python, 2021.
"""

import math
from collections.abc import Hashable
from typing import Any, NoReturn

import numpy as np
import scipy.special
from jaxtyping import PyTree
from river import base
from river.utils import dataframe

from olx._refusal import RefusedValue, public_methods
from olx.core import Learner
from olx.interop import _estimator as shared
from olx.interop.river._game import RiverGame, features, weights
from olx.losses.class_hinges import multiclass_zero_one
from olx.losses.entropic import logistic
from olx.losses.residual import squared
from olx.losses.score import ScoreLoss
from olx.multiclass.reductions import one_vs_rest


@public_methods
class OnlineRegressor(base.MiniBatchRegressor):
    """A regressor that learns row by row with any predictor of this library.

    learner: a predictor of one score, such as `olx.linear(olx.ogd(0.1))`. None is one without a
        step size: `olx.second_order.implicit_newton(loss)`, which keeps a matrix, or
        `olx.first_order.normalized_betting()` for a loss that is not smooth.
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
            raise shared.Diverged()
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
            raise shared.Diverged()
        return dataframe.to_native_series(found, name=self._name, like=dataframe.into_frame(X))

    @property
    def state(self) -> PyTree:
        """The state of the learner after all rounds so far."""
        return (self._game or self._begin()).state()

    def _begin(self) -> RiverGame:
        learner, loss = shared.parts(self, squared)
        self._game = RiverGame(learner, loss, self.fit_intercept)
        self._game.alone = learner, loss, None
        return self._game


@public_methods
class OnlineClassifier(base.MiniBatchClassifier):
    """A classifier that learns row by row with any predictor of this library.

    learner: a predictor of one score, such as `olx.linear(olx.ogd(0.1))`, or with a loss of classes
        one of `olx.multiclass`. None is one without a step size, as in `OnlineRegressor`; for
        losses of classes it is `olx.linear(olx.first_order.adagrad(1.0))`.
    loss: a loss of `olx.losses`; None is `olx.losses.logistic`.
    fit_intercept: whether there is a feature before the others that is always 1.
    classes: labels that are known beforehand. With a loss of classes a new label means a new
        program to compile, so name them if they are many.

    >>> import olx
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from olx.interop.river import OnlineClassifier
    >>> model = preprocessing.StandardScaler() | OnlineClassifier(olx.linear(olx.ogd(0.1)))
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 89.91%
    """

    def __init__(
        self,
        learner: Learner | None = None,
        loss: ScoreLoss | None = None,
        fit_intercept: bool = True,
        classes: tuple | None = None,
    ):
        self.learner = learner
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.classes = classes
        self._game: Any = None  # a RiverGame, from the first label on
        self._inner: Learner | None = None  # what is copied per class
        self._numbers: dict[Hashable, int] = {}  # of the classes, by label
        self._labels: list = []
        self._positive = 1  # the class of label +1, while there are two
        self._linked = shared.has_link(loss)  # whether there are probabilities
        self._two = False  # whether there are two classes and one score
        self._name: Any = None

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: dict, y: Hashable, w: float = 1.0) -> None:
        """Play a round; `w` is its weight."""
        try:
            number = self._numbers.get(y)
        except TypeError:  # it cannot be hashed
            raise _label_error(y) from None
        if number is None:
            number = self._meet(y)
        self._game.learn(x, number, w)

    def predict_one(self, x: dict) -> Hashable:
        """The label with the largest score; None before the first label."""
        labels = self._labels
        if len(labels) < 2:
            return labels[0] if labels else None
        if self._two:
            return labels[self._positive if self._margin(x) > 0 else 1 - self._positive]
        return labels[int(self._scores(x).argmax())]

    def predict_proba_one(self, x: dict) -> dict:
        """The probability of each class, by label; empty before the first label."""
        if not self._linked:
            self._refuse()
        labels = self._labels
        if len(labels) < 2:
            return dict.fromkeys(labels, 1.0)
        if self._two:
            score = self._margin(x)
            small = math.exp(-abs(score))
            share, other = 1 / (1 + small), small / (1 + small)
            first = (score > 0) == (self._positive == 0)  # whether the first label is the likelier
            return {labels[0]: share if first else other, labels[1]: other if first else share}
        return dict(zip(labels, self._shares(self._scores(x)[None])[0].tolist(), strict=True))

    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:
        """Play the rows of a frame in their order, as `learn_one` does."""
        matrix, names = features(X)
        labels = dataframe.into_series(y)
        self._name = labels.name
        own, given, begin = weights(w, matrix), labels.to_list(), 0
        for label in given:
            _check_label(label)
        while begin < len(given):
            self._meet(given[begin]) if given[begin] not in self._numbers else None
            numbers = [*map(self._numbers.get, given[begin:])]
            end = begin + (numbers.index(None) if None in numbers else len(numbers))
            outcomes = np.array(numbers[: end - begin], float)
            self._game.learn_many(matrix[begin:end], names, outcomes, own[begin:end])
            begin = end

    def predict_many(self, X: Any) -> Any:
        """One label per row of a frame, as a series."""
        matrix, names = features(X)
        found = [self.predict_one({})] * len(matrix)
        if len(self._labels) > 1:
            scores = self._many(matrix, names)
            sign = scores[:, self._positive] > 0
            best = np.where(sign, self._positive, 1 - self._positive)
            found = [self._labels[i] for i in (best if self._two else scores.argmax(1))]
        return dataframe.to_native_series(found, name=self._name, like=dataframe.into_frame(X))

    def predict_proba_many(self, X: Any) -> Any:
        """The probability of each class, one column per label."""
        if not self._linked:
            self._refuse()
        matrix, names = features(X)
        shares = np.ones((len(matrix), len(self._labels)))
        if len(self._labels) > 1:
            shares = self._shares(self._many(matrix, names))
        columns = dict(zip(self._labels, shares.T, strict=True))
        return dataframe.to_native_frame(columns, like=dataframe.into_frame(X))

    @property
    def state(self) -> PyTree:
        """The state of the learner after all rounds so far; None before the first."""
        return None if self._game is None else self._game.state()

    def _margin(self, x: dict) -> float:
        found = self._game.quick(x)
        return float(self._scores(x)[self._positive]) if found is None else found

    def _scores(self, x: dict) -> np.ndarray:
        return _finite(self._game.score(x)[: len(self._labels)])

    def _many(self, matrix: np.ndarray, names: list) -> np.ndarray:
        return _finite(self._game.scores(matrix, names)[:, : len(self._labels)])

    def _shares(self, scores: np.ndarray) -> np.ndarray:
        if self._two:
            sign = np.where(np.arange(2) == self._positive, 1.0, -1.0)
            return scipy.special.expit(sign * scores[:, [self._positive]])
        return shared.probabilities(scores, of_classes=self._inner is None)

    def _refuse(self) -> NoReturn:
        # as river's own classifiers without probabilities do
        raise NotImplementedError(shared.no_probabilities(self.loss, "predict_one"))

    def _meet(self, label: Hashable) -> int:
        """The number of a class that comes for the first time."""
        _check_label(label)
        known = () if self._labels else self.classes or ()
        met = [*self._labels, *known, *_known_with(label)]
        before = self._labels, self._numbers, self._positive
        self._labels = list(dict.fromkeys(met))
        self._numbers = {one: number for number, one in enumerate(self._labels)}
        self._positive = self._numbers.get(True, 1)  # 1 is True
        try:
            _make_room(self)
        except ValueError:  # a label that is refused is not known
            self._labels, self._numbers, self._positive = before
            raise
        self._two = self._inner is not None and len(self._labels) == 2
        return self._numbers[label]


_COPIES = 3  # at first: two classes, and those that are still to come


def _known_with(label: Hashable) -> tuple:
    """The labels that are known with this one: False and True come together."""
    return (False, True) if isinstance(label, bool | np.bool_) else (label,)


def _check_label(label: Hashable) -> None:
    """Refuse None and NaN: a label that is missing is no class."""
    if label is None or label != label:
        raise _label_error(label)


def _label_error(label: object) -> ValueError:
    return RefusedValue(
        f"`y` must be a label, such as 1, True or a word, got {label!r:.60}; "
        "leave out rows without a label."
    )


def _finite(scores: np.ndarray) -> np.ndarray:
    if not np.isfinite(scores).all():
        raise shared.Diverged()
    return scores


def _make_room(model: OnlineClassifier) -> None:
    """Make room in the game for the classes of a model; refuses more than the learner can have."""
    k = len(model._labels)
    if model._game is None:
        model._game = _open_game(model, k)
    game = model._game
    device, own = game.device, game.device.learner.hparams
    if model._inner is not None and k + 1 > own.code.classes:
        game.reseat(one_vs_rest(model._inner, 2 * k, loss=own.loss), None)
    elif device.rows is not None and k > device.rows:
        game.reseat(device.learner, k)
    else:
        shared.check_classes(device.learner, model._labels, exact=False)
    two = model._inner is not None and k == 2
    game.alone = (model._inner, own.loss, model._positive) if two else None


def _open_game(model: OnlineClassifier, k: int) -> RiverGame:
    intercept = model.fit_intercept
    learner, loss = shared.parts(model, logistic)
    if loss.of_classes:
        rows = None if shared.is_reduction(learner) else max(2, k)
        return RiverGame(learner, loss, intercept, rows, labels=True)
    model._inner = learner
    learner = one_vs_rest(learner, max(_COPIES, k + 1), loss=loss)
    return RiverGame(learner, multiclass_zero_one, intercept, labels=True)
