r"""The margin of a score, and what a mistake is: one definition for each kind of task.

- A number $s$ and a label $y = \pm 1$: the margin is $y s$.
- A vector of $k$ scores and a label $y \in \{0, \dots, k - 1\}$: the margin is $s_y - \max_{r \ne
  y} s_r$.
- A vector of scores and a set of relevant labels: the lowest relevant score minus the highest other
  one; `olx.ranking` computes both.

A mistake is a margin that is not positive: a tie is a mistake, and so is a NaN. Schedules, ascents,
theorems, metrics and losses count mistakes by this definition. Only a loss keeps a NaN, so that
divergence is seen.

Nothing is gathered by index: a label is compared with all class numbers. So a round stays one
kernel.
"""

import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array, Bool

ROUNDING = 8.0  # a sum below this many units of rounding of its terms is 0


def margin(score: ArrayLike, outcome: ArrayLike) -> Array:
    """By how much the label is right; a score with one more axis than the outcome has classes."""
    score, outcome = jnp.asarray(score), jnp.asarray(outcome)
    if score.ndim != outcome.ndim + 1:
        return outcome * score
    own = hot(score, outcome)
    other = rival(score, own)
    return pick(own, score) - highest(score, own, other)


def mistaken(score: ArrayLike, outcome: ArrayLike) -> Bool[Array, "..."]:
    """Whether the label is not strictly the best one."""
    return short(margin(score, outcome))


def short(ahead: Array, threshold: ArrayLike = 0.0) -> Bool[Array, "..."]:
    """Whether a margin is not above a threshold; a mistake is a margin that is not above 0."""
    return ~(ahead > threshold)


def tie_if_rounding(score: Array, size: Array) -> Array:
    """The score; 0 if it is no more than the rounding error of its sum, whose sign means nothing.

    Of a vector of scores, those that are not below the best one by more than this are equal to it.
    Weights that cancel in exact arithmetic leave such an error, and each order of the sum another.

    size: the sum of the absolute values of the terms of each score.
    """
    aim = jnp.max(score) if score.ndim else jnp.zeros_like(score)
    noise = jnp.abs(score - aim) < ROUNDING * jnp.finfo(score.dtype).eps * jnp.max(size)
    return score + lax.stop_gradient(jnp.where(noise, aim - score, 0.0))


def counted(ahead: Array) -> Array:
    """1 for a margin that is a mistake, 0 for another one, NaN for NaN: the zero-one losses."""
    wrong = jnp.where(short(ahead), jnp.ones_like(ahead), 0.0)
    return jnp.where(jnp.isnan(ahead), jnp.nan, wrong)


def hot(score: Array, label: Array) -> Bool[Array, "... k"]:
    """True at the label alone."""
    number = jnp.arange(score.shape[-1], dtype=jnp.int32)
    return number == jnp.asarray(label)[..., None].astype(jnp.int32)


def rival(score: Array, own: Bool[Array, "... k"]) -> Bool[Array, "... k"]:
    """True at the best of the other classes alone, the first one if several are best."""
    others = lax.stop_gradient(jnp.where(own, jnp.finfo(score.dtype).min, score))
    best = (others == jnp.max(others, -1, keepdims=True)) & ~own
    number = jnp.arange(score.shape[-1])
    first = jnp.min(jnp.where(best, number, score.shape[-1]), -1, keepdims=True)
    return number == first


def pick(where: Bool[Array, "... k"], score: Array) -> Array:
    """The entry at which `where` is True."""
    return jnp.sum(jnp.where(where, score, 0.0), -1)


def highest(score: Array, own: Bool[Array, "... k"], other: Bool[Array, "... k"]) -> Array:
    """The score of `other`, the best class but `own`; NaN if a score is NaN."""
    at = pick(other, score)
    top = jnp.max(jnp.where(own, jnp.finfo(score.dtype).min, score), -1)
    return at + lax.stop_gradient(top - at)
