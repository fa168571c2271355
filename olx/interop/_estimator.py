"""What the estimators of scikit-learn and of river share: their learner and their loss."""

from typing import Any

from olx import _check as check
from olx._refusal import RefusedValue
from olx.core import Learner
from olx.first_order.dual_averaging import adagrad
from olx.frameworks.lift import as_linear, is_affine, linear
from olx.losses.entropic import cross_entropy, logistic
from olx.losses.score import ScoreLoss

_DIVERGED = (
    "the scores are not finite, since the learner diverged or its range of losses was broken; "
    "scale the features and the target, or change the numbers of the learner."
)


class Diverged(RefusedValue):
    """The scores of a learner are not finite."""

    def __init__(self, said: str = _DIVERGED) -> None:
        super().__init__(said)


def parts(estimator: Any, usual: ScoreLoss) -> tuple[Learner, ScoreLoss]:
    """The learner and the loss of an estimator; what was not given is the usual one."""
    learner = linear(adagrad(1.0)) if estimator.learner is None else estimator.learner
    loss = usual if estimator.loss is None else estimator.loss
    check.instance("learner", learner, Learner)
    check.instance("loss", loss, ScoreLoss)
    if not is_affine(learner):
        return learner, loss
    if not estimator.fit_intercept:
        raise RefusedValue(
            "`olx.affine` plays an intercept, but fit_intercept=False; take `olx.linear`."
        )
    return as_linear(learner), loss  # the intercept is the weight of a column of ones


def has_link(loss: ScoreLoss | None) -> bool:
    """Whether a loss has probabilities; None is the logistic loss."""
    value = getattr(logistic if loss is None else loss, "value_fn", None)
    return value in (logistic.value_fn, cross_entropy.value_fn)
