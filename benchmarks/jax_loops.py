"""Rounds written by hand in JAX, as a user would write them for one algorithm and one loss.

Each is a step of `jax.lax.scan`: the state and a round in, the next state and the loss out. They
compute what the learners of olx compute, with the numbers as constants.
"""

import jax.numpy as jnp

from benchmarks.peers import ETA


def _hinge(score, label):
    gap = 1 - label * score
    return jnp.where(gap <= 0, 0.0, gap), jnp.where(gap <= 0, 0.0, -label)


def ogd_hinge(w, here):
    x, y = here
    loss, slope = _hinge(jnp.sum(w * x), y)
    return w - ETA * slope * x, loss


def ogd_logistic(w, here):
    x, y = here
    margin = y * jnp.sum(w * x)
    e = jnp.exp(-jnp.abs(margin))
    slope = -y * jnp.where(margin > 0, e, 1.0) / (1 + e)
    return w - ETA * slope * x, jnp.maximum(-margin, 0.0) + jnp.log1p(e)


def passive_aggressive(w, here):
    x, y = here
    loss, slope = _hinge(jnp.sum(w * x), y)
    return w - jnp.minimum(ETA, loss / jnp.sum(x * x)) * slope * x, loss


def perceptron(w, here):
    x, y = here
    score = jnp.sum(w * x)
    return w + jnp.where(y * score <= 0, y, 0.0) * x, _hinge(score, y)[0]


def adagrad_hinge(state, here):
    """Dual averaging with the curvature sqrt(1 + sum of squared gradients)."""
    (theta, squares), (x, y) = state, here
    loss, slope = _hinge(jnp.sum(theta / jnp.sqrt(1 + squares) * x), y)
    gradient = slope * x
    return (theta - ETA * gradient, squares + gradient * gradient), loss


def hedge(total, losses):
    """Exponential weights on cumulative losses, minus the smallest one for stability."""
    weights = jnp.exp(ETA * (jnp.min(total) - total))
    return total + losses, jnp.sum(weights * losses) / jnp.sum(weights)
