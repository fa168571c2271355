r"""Weak learners: from weights of the examples to a hypothesis in $[-1, 1]$.

A weak learner answers the weights $p$ of a booster with a hypothesis $h$. Its edge is $\frac12
\sum_i p_i y_i h(x_i)$. A plain function from weights to predictions is a weak learner too; its
hypotheses are known on the training rows only.

As the adversary of `olx.play` a weak learner makes the game of boosting one of the library: it is
recorded, replayed and certified like any other.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.2.
"""

import dataclasses
from collections.abc import Callable, Sized
from functools import partial
from typing import NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import RefusedType, RefusedValue, own_name, public
from olx.core import Adversary
from olx.losses.points import linear_loss


@dataclasses.dataclass(frozen=True, eq=False)
class WeakLearner:
    """How to fit a hypothesis, and how to predict with it; make one with `weak_learner`."""

    fit: Callable[
        [np.ndarray, np.ndarray], object
    ]  # (weights, labels) -> hypothesis, on the training rows
    predict: Callable[..., ArrayLike]  # (hypothesis, prepared rows) -> values in [-1, 1]
    rows: object  # the training rows, prepared
    prepare: Callable[[object], object]  # rows -> what `predict` takes

    def answer(self, weights: np.ndarray, labels: np.ndarray) -> tuple[object, np.ndarray]:
        """A hypothesis and its values on the training rows; refuses values that are not legal."""
        hypothesis = self.fit(weights, labels)
        return hypothesis, legal(self.predict(hypothesis, self.rows), len(weights))


Weak = WeakLearner | Callable[[np.ndarray], ArrayLike]


@public
def weak_learner(
    fit: Callable[[np.ndarray, np.ndarray], object],
    predict: Callable[..., ArrayLike],
    rows: Sized,
) -> WeakLearner:
    """A weak learner from two functions.

    fit: `(weights, labels)` -> hypothesis. Both are NumPy vectors, with one entry per training row;
        the weights add up to 1, and many may be 0.
    predict: `(hypothesis, rows)` -> values in [-1, 1], one per row.
    rows: the training rows, as `predict` takes them.

    >>> import numpy as np, olx
    >>> rows = np.random.default_rng(0).normal(size=(60, 3))
    >>> labels = np.where(rows @ np.array([1.0, 0.5, 0.2]) > 0, 1.0, -1.0)
    >>> project = lambda mean, rows: np.tanh(rows @ mean)
    >>> weak = weak_learner(lambda weights, labels: (weights * labels) @ rows, project, rows)
    >>> boosted = olx.boosting.boost_with(olx.boosting.gentleboost(), weak, labels, 20)
    >>> bool(boosted.errors[-1] < 0.1)
    True
    """
    check.takes("fit", fit, "weights", "labels")
    check.takes("predict", predict, "hypothesis", "rows")
    if not hasattr(rows, "__len__") or not len(rows):
        raise RefusedType(
            f"`rows` must hold the training rows, got {check.quote(rows)}; give them "
            "as `predict` takes them, such as an array with one row per label."
        )
    return WeakLearner(fit, predict, rows, _same)


def as_weak(weak: Weak) -> WeakLearner:
    """The weak learner itself, or the one made of a function from weights to predictions."""
    if isinstance(weak, WeakLearner):
        return weak
    if not callable(weak):
        raise RefusedType(
            f"`weak` must be a weak learner, such as `olx.boosting.stumps(rows)`, or a "
            f"function from weights to predictions, got {type(weak).__name__}."
        )
    check.takes("weak", weak, "weights")
    return WeakLearner(_Function(weak), on_training_rows, None, no_rows)


@public
def adversary(weak: Weak, labels: ArrayLike) -> Adversary:
    """The weak learner as the adversary of a booster, for `olx.play`.

    It runs on the host. The action is the distribution over examples, the outcome is y * h(x).

    >>> import jax.numpy as jnp, numpy as np, olx
    >>> rows = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> labels = np.array([-1.0, -1.0, -1.0, 1.0])
    >>> nature = olx.boosting.adversary(olx.boosting.stumps(rows), labels)
    >>> learner = olx.boosting.nh_boost_dt()
    >>> run = olx.play(learner, nature, jnp.ones(4), 30, record=olx.record.trace)
    >>> bool(olx.certify(learner, run, jnp.ones(4) / 4).holds)
    True
    """
    labels = check_labels(labels)
    hparams = _Nature(jnp.asarray(labels, float), as_weak(weak))
    return Adversary(hparams, linear_loss, _nothing, _ask, _answer)


def check_labels(labels: ArrayLike, count: int | None = None) -> np.ndarray:
    """The labels as a vector of floats; refuses all but -1 and +1, one for each of `count` rows."""
    seen = np.asarray(labels)
    if seen.ndim != 1 or seen.size == 0 or seen.dtype.kind not in "iuf":
        raise RefusedType(
            f"`labels` must be a vector of -1 and +1, got an array of shape {seen.shape} "
            f"and dtype {seen.dtype}."
        )
    wrong = np.flatnonzero((seen != 1) & (seen != -1))
    if wrong.size:
        raise RefusedValue(
            f"labels must be -1 or +1, got {seen[wrong[0]]} in row {wrong[0]}; map labels "
            "of 0 and 1 with 2 * y - 1."
        )
    if count is not None and seen.size != count:
        raise RefusedType(f"there are {count} rows and {seen.size} labels; give one per row.")
    return seen.astype(float)


def shaped(values: ArrayLike, count: int) -> np.ndarray:
    """The predictions of a weak learner as floats; refuses all but one number per row."""
    seen = np.asarray(values)
    if seen.shape != (count,) or seen.dtype.kind not in "iuf":
        raise TypeError(
            f"weak learner: predictions must be one real number per row, {count} in all, got an "
            f"array of shape {seen.shape} and dtype {seen.dtype}."
        )
    return seen.astype(float)


def legal(values: ArrayLike, count: int) -> np.ndarray:
    """The same; refuses numbers outside [-1, 1] too, which no booster can take."""
    seen = shaped(values, count)
    outside = np.flatnonzero(~(np.abs(seen) <= 1))
    if outside.size:
        raise ValueError(
            f"weak learner: predictions must lie in [-1, 1], got {seen[outside[0]]} in row "
            f"{outside[0]}; divide them by their largest size, or give their signs."
        )
    return seen


@dataclasses.dataclass(frozen=True)
class _Function:
    function: Callable[[np.ndarray], ArrayLike]

    def __call__(self, weights: np.ndarray, labels: np.ndarray) -> ArrayLike:
        return self.function(weights)


def on_training_rows(values: ArrayLike, rows: None) -> ArrayLike:
    """The values of a hypothesis that is known on the training rows only."""
    return values


@own_name("Ensemble")
def no_rows(rows: object) -> NoReturn:
    """Refuse new rows for such hypotheses."""
    raise RefusedType(
        "a weak learner that is a plain function has no predictions on new rows; make it "
        "with `olx.boosting.weak_learner(fit, predict, rows)`."
    )


def _same(rows: object) -> object:
    return rows


@pytree
class _Nature:
    labels: Array
    weak: WeakLearner = static()


def _nothing(hp: _Nature) -> None:
    return None


def _ask(hp: _Nature, state: None) -> None:
    return None


def _answer(hp: _Nature, state: None, weights: Array) -> tuple[Array, None]:
    like = jax.ShapeDtypeStruct(weights.shape, weights.dtype)
    args = weights, hp.labels
    values = jax.pure_callback(partial(_call, hp.weak), like, *args, vmap_method="sequential")
    return hp.labels.astype(weights.dtype) * values, state


def _call(weak: WeakLearner, weights: Array, labels: Array) -> np.ndarray:
    """The predictions as they are: the driver refuses those that are not legal, by round."""
    p, y = np.asarray(weights, float), np.asarray(labels)
    if not np.all(np.isfinite(p)):  # a booster that went wrong before, as one of a batch
        return np.full(p.shape, np.nan, weights.dtype)
    return shaped(weak.predict(weak.fit(p, y), weak.rows), len(p)).astype(weights.dtype)
