"""What the estimators of scikit-learn and of river share: learner, loss, classes and states.

Without a learner they take one that needs no step size:

- for smooth losses of one score `olx.second_order.implicit_newton`, which keeps a matrix. A feature
  times a number changes no score, and with the squared loss the unit of the target is that of the
  scores;
- for other losses of one score, sparse rows and very wide rows
  `olx.first_order.normalized_betting`. A feature or the loss times a number changes no score; large
  targets are reached soon, as bets grow exponentially, but targets far below 1 are not for it;
- for losses of classes `olx.linear(olx.first_order.adagrad(1.0))`, whose step size is a guess.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

from olx import _check as check
from olx._refusal import RefusedValue
from olx.core import Learner
from olx.first_order.dual_averaging import adagrad
from olx.first_order.normalized_betting import normalized_betting
from olx.frameworks.lift import as_linear, is_affine, linear
from olx.losses.entropic import cross_entropy, logistic
from olx.losses.score import ScoreLoss
from olx.multiclass.reductions import ReductionHparams
from olx.second_order.implicit_newton import implicit_newton

_DIVERGED = (
    "the scores are not finite, since the learner diverged or its range of losses was broken; "
    "scale the features and the target, or change the numbers of the learner."
)


class Diverged(RefusedValue):
    """The scores of a learner are not finite."""

    def __init__(self, said: str = _DIVERGED) -> None:
        super().__init__(said)


def parts(estimator: Any, usual: ScoreLoss, wide: bool = False) -> tuple[Learner, ScoreLoss]:
    """The learner and the loss of an estimator; what was not given is the usual one.

    wide: whether the rows are too wide for a matrix, or sparse.
    """
    loss = usual if estimator.loss is None else estimator.loss
    check.instance("loss", loss, ScoreLoss)
    learner = usual_learner(loss, wide) if estimator.learner is None else estimator.learner
    check.instance("learner", learner, Learner)
    if not is_affine(learner):
        return learner, loss
    if not estimator.fit_intercept:
        raise RefusedValue(
            "`olx.affine` plays an intercept, but fit_intercept=False; take `olx.linear`."
        )
    return as_linear(learner), loss  # the intercept is the weight of a column of ones


def usual_learner(loss: ScoreLoss, wide: bool) -> Learner:
    """A learner without a step size for this loss."""
    if loss.of_classes:
        return linear(adagrad(1.0))
    smooth = loss.on_ball is not None and loss.on_ball.smooth_fn is not None
    return implicit_newton(loss) if smooth and not wide else normalized_betting()


def has_link(loss: ScoreLoss | None) -> bool:
    """Whether a loss has probabilities; None is the logistic loss."""
    value = getattr(logistic if loss is None else loss, "value_fn", None)
    return value in (logistic.value_fn, cross_entropy.value_fn)


def no_probabilities(loss: ScoreLoss | None, instead: str) -> str:
    """Why an `OnlineClassifier` of such a loss gives no probabilities."""
    return (
        "OnlineClassifier: only `olx.losses.logistic` and `olx.losses.cross_entropy` have "
        f"probabilities, the loss is {loss!r}; use {instead}."
    )


def probabilities(scores: np.ndarray, of_classes: bool) -> np.ndarray:
    """The probability of each class, by row; with one copy per class they are shared out."""
    logits = scores if of_classes else scipy.special.log_expit(scores)
    return scipy.special.softmax(logits, 1)


def is_reduction(learner: Learner) -> bool:
    """Whether a learner of classes is made of copies, which start from one row of weights."""
    return isinstance(learner.hparams, ReductionHparams)


def check_classes(learner: Learner, labels: list, exact: bool = True) -> None:
    """Refuse more classes than a learner of copies is made for; if `exact`, also fewer."""
    if not is_reduction(learner):
        return
    own, k = learner.hparams.code.classes, len(labels)
    if k > own or (exact and k < own):
        raise RefusedValue(f"`learner` is made for {own} classes, the labels are of {k}: {labels}.")


def is_key(leaf: jax.Array) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def as_numpy(leaf: jax.Array) -> jax.Array | np.ndarray:
    """A leaf as NumPy holds it: JAX would read float64 from a pickle as float32."""
    return leaf if is_key(leaf) else np.asarray(leaf)
