r"""From weights to a distribution: expert $i$ has the weight `factor` $e^{\mathrm{log}}$."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from olx import _safe as safe
from olx.experts._vectors import highest, lowest


def normalized(prior: Array, log: Array, factor: Array, confidence: Array | None) -> Array:
    """The weights times confidences, adding up to 1; without any weight the prior instead."""
    live = factor if confidence is None else factor * confidence
    top = lax.stop_gradient(highest(log, live > 0))
    over = log - jnp.where(top == lowest(top), 0.0, top)
    mass = live * jnp.exp(jnp.where(live > 0, over, 0.0))
    total = jnp.sum(mass)
    empty = total == 0  # not where it is NaN
    instead = prior if confidence is None else _of_the_awake(prior, confidence)
    return jnp.where(empty, instead, mass / jnp.where(empty, 1.0, total))


def log_normalized(prior: Array, log: Array, factor: Array) -> Array:
    """The logarithm of what `normalized` gives where all are awake, without underflow.

    The lowest finite number for those without weight.
    """
    factor = jnp.where(jnp.any(factor > 0), factor, prior)
    live = factor > 0
    over = log - lax.stop_gradient(highest(log, live))
    logs = jnp.where(live, over, 0.0) + jnp.log(safe.or_one(factor, live))
    top = lax.stop_gradient(highest(logs, live))
    total = jnp.sum(jnp.where(live, jnp.exp(jnp.where(live, logs - top, 0.0)), 0.0))
    return jnp.where(live, logs - top - jnp.log(total), lowest(logs))


def of_heaviest(p: Array, losses: Array) -> Array:
    """The loss of an expert of the largest weight, the least one if there are several."""
    return -highest(-losses, p == jnp.max(p))


def _of_the_awake(prior: Array, confidence: Array) -> Array:
    """The prior among the awake; all alike if it knows none of them; 0 if all sleep."""
    awake = (confidence != 0).astype(prior.dtype)
    known = prior * confidence
    mass = jnp.where(jnp.any(known != 0), known, awake)
    total = jnp.sum(mass)
    return mass / jnp.where(total == 0, 1.0, total)
