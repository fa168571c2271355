"""What losses and learners of classes share: their needs, their record, sums over large scores.

Labels are 0, 1, ..., k - 1, and a score is a vector with one number per class.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from olx._call import Call
from olx.core import Rounds
from olx.losses.margin import hot
from olx.losses.score import ScoreLoss
from olx.needs import Need


def labels(owner: str) -> Need:
    """The need for integer labels below the number of classes, which `params` tells."""
    return Need("outcome", _are_labels, "labels must be integers from 0 to k - 1", owner, REMEDY)


def class_rows(owner: str) -> Need:
    """The need for `params` with one row of weights per class."""
    demand = "`params` must be an array with one row per class, for 2 classes or more"
    return Need("params", _has_rows, demand, owner, "start from jnp.zeros((k, d))")


def below(label: Array, classes: int | None) -> Array:
    """Which labels are integers from 0 to `classes` - 1; any size is legal if `classes` is None."""
    if label.dtype.kind not in "iu":
        return label < label  # False everywhere, also where it is NaN
    return (label >= 0) & (True if classes is None else label < classes)


def _are_labels(hparams: PyTree, params: PyTree, rounds: Rounds) -> PyTree:
    classes = _classes(params, rounds.context)
    return jax.tree.map(lambda label: below(label, classes), rounds.outcome)


def _classes(params: PyTree, context: PyTree) -> int | None:
    """The number of rows of `params`, if it has one more axis than the context of a round."""
    shape, rows = getattr(params, "shape", ()), getattr(context, "shape", ())
    return shape[0] if shape and len(shape) == len(rows) else None


def _has_rows(hparams: PyTree, params: PyTree, rounds: None) -> bool:
    return hasattr(params, "shape") and np.ndim(params) >= 2 and np.shape(params)[0] >= 2


REMEDY = "number the classes, as np.unique(labels, return_inverse=True)[1] does"
_MANY = 64  # classes; for more of them a sort is faster, but it cannot be part of one kernel


def loss_of_classes(
    owner: str,
    value: Callable[..., Array],
    conjugate: Callable[..., Array] | None = None,
    pull: Callable[..., Array] | None = None,
    **facts: Any,
) -> ScoreLoss:
    """A loss of a vector of scores; `facts` are fields of `ScoreLoss`."""
    return ScoreLoss(
        **facts,
        value_fn=value,
        conjugate_fn=conjugate,
        pull_fn=pull,
        of_classes=True,
        needs=(labels(owner),),
        name=Call(owner),
    )


def checked(score: ArrayLike, label: ArrayLike) -> tuple[Array, Array]:
    """Scores and labels as arrays; refuses scores without an axis of classes."""
    score, label = jnp.asarray(score), jnp.asarray(label)
    if score.ndim != label.ndim + 1:
        raise TypeError(
            "a loss of classes: a score must be a vector with one number per class, got shape "
            f"{score.shape}; start from `params` of shape (k, d), or wrap a binary learner in "
            "`olx.multiclass.one_vs_rest`."
        )
    if score.shape[-1] < 2:
        raise ValueError(
            f"a loss of classes: there must be 2 classes or more, got {score.shape[-1]}."
        )
    return score, label


def balanced(tau: ArrayLike, label: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """The label, the other entries of a dual vector, whether all sum to 0, and the rounding.

    The other entries must not be negative.
    """
    tau, label = checked(tau, label)
    own = hot(tau, label)
    alpha = jnp.where(own, 0.0, tau)
    slack = jnp.asarray(16 * tau.shape[-1] * jnp.finfo(tau.dtype).eps, tau.dtype)
    even = jnp.abs(jnp.sum(tau, -1)) <= slack * jnp.sum(jnp.abs(tau), -1)
    return own, alpha, even & jnp.all(alpha >= 0, -1), slack


def dual(own: Array, alpha: Array) -> Array:
    """The dual vector that sums to 0, with `alpha` at the other classes."""
    return jnp.where(own, -jnp.sum(alpha, -1, keepdims=True), alpha)


def top_sums(values: Array, legal: Array) -> tuple[Array, Array]:
    """Sets of the largest legal values: the size and the sum of each, also of all useful sets."""
    lowest = jnp.finfo(values.dtype).min
    if values.shape[-1] > _MANY:
        ordered = -jnp.sort(-jnp.where(legal, values, lowest), axis=-1)
        real = ordered > lowest
        return jnp.cumsum(real, -1, dtype=values.dtype), jnp.cumsum(
            jnp.where(real, ordered, 0.0), -1
        )
    above = (values[..., None, :] >= values[..., :, None]) & legal[..., None, :]
    sums = jnp.sum(jnp.where(above, values[..., None, :], 0.0), -1)
    return jnp.sum(above, -1, dtype=values.dtype), sums
