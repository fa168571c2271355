"""Compensated sums: long sums that keep the rounding error of each addition.

A sum of size t rounds every further term to a multiple of t times the precision: after 1e6 rounds
in float32 a term of 0.1 counts as 0.125 or not at all. Here the part of a term that is lost by
rounding is kept beside the sum and added to the next term (Kahan 1965, with Knuth's difference).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, PyTree


class Sum(NamedTuple):
    value: PyTree  # the sum, rounded once
    rest: PyTree  # the rounding error, at most half a unit in the last place of `value`


def start(value: PyTree) -> Sum:
    return Sum(value, jax.tree.map(jnp.zeros_like, value))


def add(total: Sum, term: PyTree) -> Sum:
    """The sum with one more term; its derivative is the sum of the derivatives."""
    due = jax.tree.map(lambda rest, term: rest + term, total.rest, term)
    value = jax.tree.map(lambda before, due: before + due, total.value, due)
    return Sum(value, jax.tree.map(_lost, total.value, due, value))


def _lost(before: Array, due: Array, after: Array) -> Array:
    """The exact value of `before + due - after`; 0 if the sum is not finite."""
    before, due, after = lax.stop_gradient((before, due, after))
    gone = after - before
    lost = (before - (after - gone)) + (due - gone)
    return jnp.where(jnp.isfinite(lost), lost, 0.0)
