r"""A grid over the numbers of a learner, by cross-validation, as one sweep per fold.

`GridSearchCV` fits one estimator after the other. Here all learners of the grid see each row of a
fold at the same time (`olx.sweep`): the numbers are leaves of one program. For $K$ folds the mean
score of configuration $i$ is $\frac1K \sum_k \mathrm{score}(f_i^{(k)}, \text{fold } k)$, where
$f_i^{(k)}$ learned from all other folds. The best one learns from all rows at the end.

Stone, Cross-Validatory Choice and Assessment of Statistical Predictions, 1974.
"""

import copy
import dataclasses
import itertools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import Tags, _safe_indexing, column_or_1d, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from olx._check import seen_as
from olx._refusal import RefusedType, RefusedValue, own_name, public_methods
from olx.core import Learner
from olx.engine.batch import batch, grid
from olx.engine.run import sweep
from olx.interop._estimator import Diverged, as_numpy
from olx.interop.sklearn import _game as game
from olx.interop.sklearn import classifiers, regressors
from olx.interop.sklearn.classifiers import OnlineClassifier
from olx.interop.sklearn.regressors import OnlineRegressor
from olx.keep import totals


def _has(name: str) -> Callable[[Any], bool]:
    return lambda search: hasattr(getattr(search, "best_estimator_", search.estimator), name)


@public_methods
class OnlineSearchCV(MetaEstimatorMixin, BaseEstimator):
    """Choose the numbers of a learner by cross-validation; each fold is one sweep.

    estimator: an `OnlineClassifier` or an `OnlineRegressor`; its learner is not used.
    make: a function of the numbers that makes a learner, at module level if it is to be pickled.
    axes: by the name of an argument of `make`, the numbers to try; all combinations are played.
    scoring, cv: as in `sklearn.model_selection.GridSearchCV`.

    A configuration that diverges has the score NaN, and is never the best.

    >>> import numpy as np, olx
    >>> from olx.interop.sklearn import OnlineRegressor, OnlineSearchCV
    >>> rows = np.random.default_rng(0).normal(size=(100, 2))
    >>> make = lambda eta: olx.linear(olx.ogd(eta))
    >>> search = OnlineSearchCV(OnlineRegressor(), make, {"eta": [1e-5, 0.1, 1e5]}, cv=2)
    >>> search.fit(rows, rows @ [1.0, -2.0]).best_params_
    {'eta': 0.1}
    """

    def __init__(
        self,
        estimator: Any,
        make: Callable[..., Learner],
        axes: dict[str, Any],
        *,
        scoring: Any = None,
        cv: Any = None,
    ):
        self.estimator = estimator
        self.make = make
        self.axes = axes
        self.scoring = scoring
        self.cv = cv

    def fit(self, X: object, y: object, sample_weight: object = None) -> "OnlineSearchCV":
        """Score every configuration, then fit the best one to all rows."""
        if not isinstance(self.estimator, OnlineClassifier | OnlineRegressor):
            raise RefusedType(
                "`estimator` must be an OnlineClassifier or an OnlineRegressor, "
                f"got {seen_as(self.estimator)}; `GridSearchCV` takes any estimator."
            )
        tried = [
            dict(zip(self.axes, each, strict=True))
            for each in itertools.product(*self.axes.values())
        ]
        if not tried:
            raise RefusedValue(f"`axes` holds no configuration: {self.axes!r}.")
        with own_name():
            whole = _with(self, self.make(**tried[0]))
        y = y if y is None else column_or_1d(y, warn=True)
        _read(whole, X, y, sample_weight)  # refuses bad rows before the folds
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        X, y = indexable(X, y)
        folds: Any = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        self.scorer_: Any = check_scoring(self.estimator, self.scoring)
        found = [_scores(self, tried, X, y, weight, *fold) for fold in folds.split(X, y)]
        self.cv_results_ = _table(tried, np.array(found))
        self.n_splits_ = len(found)
        mean = self.cv_results_["mean_test_score"]
        if np.isnan(mean).all():
            raise RefusedValue(
                "every configuration diverged; scale the features and the target, "
                "or try smaller step sizes."
            )
        self.best_index_ = int(np.nanargmax(mean))
        self.best_score_, self.best_params_ = mean[self.best_index_], tried[self.best_index_]
        self.best_estimator_ = _with(self, self.make(**self.best_params_))
        self.best_estimator_.fit(X, y, weight)
        return game.shows(self, self.best_estimator_)

    def predict(self, X: object) -> np.ndarray:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    @available_if(_has("decision_function"))
    def decision_function(self, X: object) -> np.ndarray:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.decision_function(X)

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: object) -> np.ndarray:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X)

    def score(self, X: object, y: object) -> float:
        """The score of the best learner, by `scoring`."""
        check_is_fitted(self, "best_estimator_")
        return self.scorer_(self.best_estimator_, X, y)

    def __sklearn_tags__(self) -> Tags:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.target_tags = dataclasses.replace(inner.target_tags, multi_output=False)
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags


def _with(search: OnlineSearchCV, learner: Learner) -> Any:
    model: Any = clone(search.estimator)
    return model.set_params(learner=learner)


def _page(model: Any) -> ModuleType:
    return classifiers if is_classifier(model) else regressors


def _read(model: Any, X: object, y: object, weight: object) -> Any:
    return _page(model).read(model, X, y, weight)


def _scores(
    search: OnlineSearchCV,
    tried: list[dict],
    X: object,
    y: object,
    weight: object,
    train: Any,
    test: Any,
) -> list[float]:
    """The score of each configuration on the rows `test`, after a sweep over the rows `train`."""
    part = lambda thing, rows: None if thing is None else _safe_indexing(thing, rows)
    model = _with(search, search.make(**tried[0]))
    read = _read(model, *(part(thing, train) for thing in (X, y, weight)))
    rounds = game.pieces(model, read, game.check_passes(model))

    def played(**numbers: Any) -> Learner:
        one = copy.copy(model)
        one.learner = search.make(**numbers)
        _page(model).arrange(one)
        return one.learner_

    axes = {name: np.asarray(values, float) for name, values in search.axes.items()}
    with jax.enable_x64(model.dtype_ == np.float64):
        learners = batch(played, **grid(**axes))
        done = sweep(learners, model.loss_, rounds, model.start_, keep=totals, progress=False)
        chosen = [(learners[i], _at(done.state, i)) for i in range(len(tried))]
    held = [part(thing, test) for thing in (X, y, weight)]
    return [_score(search, model, learner, state, *held) for learner, state in chosen]


def _at(states: PyTree, i: int) -> PyTree:
    return jax.tree.map(lambda leaf: as_numpy(leaf[i]), states)


def _score(
    search: OnlineSearchCV,
    model: Any,
    learner: Learner,
    state: PyTree,
    X: object,
    y: object,
    weight: object,
) -> float:
    """The score of one configuration, with the weights of the rows if `scoring` takes them."""
    takes = getattr(search.scorer_, "_accept_sample_weight", lambda: False)()
    weighed = {"sample_weight": weight} if takes and weight is not None else {}
    one = copy.copy(model)
    one.learner_, one.state_ = learner, state
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            found = search.scorer_(one, X, y, **weighed)
        return found if np.isfinite(found) else np.nan
    except Diverged:
        return np.nan


def _table(tried: list[dict], found: np.ndarray) -> dict[str, Any]:
    """The results, under the names that `GridSearchCV` uses; `found` has one row per fold."""
    mean = found.mean(0)
    rank = rankdata(-np.nan_to_num(mean, nan=-np.inf), method="min").astype(np.int32)
    named = {f"param_{name}": np.array([one[name] for one in tried]) for name in tried[0]}
    folds = {f"split{k}_test_score": each for k, each in enumerate(found)}
    scores = {"mean_test_score": mean, "std_test_score": found.std(0), "rank_test_score": rank}
    return {"params": tried, **named, **folds, **scores}
