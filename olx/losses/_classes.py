"""What the losses of classes share: their record, and sums over the largest scores."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from olx._call import Call
from olx.losses.labels import labels
from olx.losses.margin import hot
from olx.losses.score import ScoreLoss

_MANY = 64  # classes; for more of them a sort is faster, but it cannot be part of one kernel


def of_classes(
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


def checked(score: Any, label: Any) -> tuple[Array, Array]:
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


def balanced(tau: Any, label: Any) -> tuple[Array, Array, Array, Array]:
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
