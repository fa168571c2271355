r"""The numbers and the rate of Passive-Aggressive, which its rule and its bounds share."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree
from optax import tree

from olx import _safe as safe
from olx._pytree import pytree
from olx.core import Feedback, Scalar
from olx.losses.margin import margin
from olx.losses.score import ScoreLoss


@pytree
class PassiveAggressiveHparams:
    loss: ScoreLoss  # a hinge, binary or of classes
    most: Scalar | None  # the largest tau, C of PA-I
    softness: Scalar  # added to |a|^2: 1 / (2 C) for PA-II


class PassiveAggressiveState(NamedTuple):
    w: PyTree


def rate(hp: PassiveAggressiveHparams, feedback: Feedback) -> tuple[Array, Array, Array, Array]:
    r"""$\tau_t$, which is 0 for a row of zeros; $\ell_t$; $\|a_t\|^2$; and minus the slope of the
    margin."""
    gap = hp.loss(feedback.action, feedback.outcome)
    direction = -jax.grad(margin)(feedback.action, feedback.outcome)
    squares = jnp.asarray(tree.vdot(feedback.context, feedback.context))
    squares = jnp.vdot(direction, direction) * squares
    resistance = feedback.weight * squares + hp.softness
    real = (squares > 0) & (resistance > 0)
    tau = feedback.weight * gap / safe.or_one(resistance, real)
    if hp.most is not None:
        tau = jnp.minimum(tau, hp.most * feedback.weight)
    return jnp.where(real, tau, 0.0), gap, squares, direction
