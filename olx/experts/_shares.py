r"""From weights to a distribution: expert $i$ has the weight `factor` $e^{\mathrm{log}}$."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from olx import _numeric as safe
from olx.experts._vectors import highest, lowest


def normalized(prior: Array, log: Array, factor: Array, confidence: Array | None) -> Array:
    """Weights times confidences, divided by their sum; the prior if that sum is 0."""
    live = factor if confidence is None else factor * confidence
    top = lax.stop_gradient(highest(log, live > 0))
    over = log - jnp.where(top == lowest(top), 0.0, top)
    mass = live * jnp.exp(jnp.where(live > 0, over, 0.0))
    total = jnp.sum(mass)
    empty = total == 0  # False where it is NaN
    instead = prior if confidence is None else _of_the_awake(prior, confidence)
    return jnp.where(empty, instead, mass / jnp.where(empty, 1.0, total))


def log_normalized(prior: Array, log: Array, factor: Array) -> Array:
    """The logarithm of `normalized` with all experts awake, without underflow.

    Experts without weight get the lowest finite number.
    """
    factor = jnp.where(jnp.any(factor > 0), factor, prior)
    live = factor > 0
    over = log - lax.stop_gradient(highest(log, live))
    logs = jnp.where(live, over, 0.0) + jnp.log(safe.or_one(factor, live))
    top = lax.stop_gradient(highest(logs, live))
    total = jnp.sum(jnp.where(live, jnp.exp(jnp.where(live, logs - top, 0.0)), 0.0))
    return jnp.where(live, logs - top - jnp.log(total), lowest(logs))


def of_heaviest(p: Array, losses: Array) -> Array:
    """The loss of the expert of largest weight; of several such experts, the smallest loss."""
    return -highest(-losses, p == jnp.max(p))


def _of_the_awake(prior: Array, confidence: Array) -> Array:
    """The prior over the awake experts; uniform if it gives them no weight; 0 if all sleep."""
    awake = (confidence != 0).astype(prior.dtype)
    known = prior * confidence
    mass = jnp.where(jnp.any(known != 0), known, awake)
    total = jnp.sum(mass)
    return mass / safe.or_one(total, total != 0)
