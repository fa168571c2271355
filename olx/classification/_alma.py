"""The numbers and the state of ALMA, and when it corrects; see `olx.classification.alma`."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx import _safe as safe
from olx._clock import Clock
from olx._pytree import pytree
from olx.convex import norms
from olx.core import Feedback, Scalar


@pytree
class ALMAHparams:
    alpha: Scalar
    p: Scalar | None  # None for 2
    margin: Scalar
    step: Scalar


class ALMAState(NamedTuple):
    theta: PyTree
    corrections: Clock


def in_ball(hp: ALMAHparams, u: PyTree) -> Array:
    """Whether `u` lies in the unit ball of the q-norm, up to rounding."""
    p, kind = power_of(hp), jnp.result_type(*jax.tree.leaves(u))
    return norms.power(p / (p - 1), u) <= 1 + 1e3 * jnp.finfo(kind).eps


def correction(hp: ALMAHparams, state: ALMAState, feedback: Feedback) -> tuple[Array, Array]:
    """Whether to correct, and the factor of the row in the correction."""
    y, size, p = feedback.outcome, size_of(hp, feedback.context), power_of(hp)
    k = state.corrections.now
    wanted = (1 - hp.alpha) * hp.margin * jnp.sqrt((p - 1) / k)
    corrects = (y * feedback.action <= wanted * size) & (size > 0)
    eta = feedback.weight * hp.step / jnp.sqrt((p - 1) * k)
    return corrects, jnp.where(corrects, eta * y / safe.or_one(size), 0.0)


def power_of(hp: ALMAHparams) -> Scalar:
    """The p of the geometry."""
    return 2.0 if hp.p is None else hp.p


def size_of(hp: ALMAHparams, x: PyTree) -> Array:
    return norms.l2().primal(x) if hp.p is None else norms.power(hp.p, x)
