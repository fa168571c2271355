"""Quotients, powers, roots and logarithms with finite derivatives, and sums that keep their digits.

Each function replaces an illegal argument before the operation and the result after it. Without
both replacements, the derivative on the branch not taken is NaN.

A sum of size t rounds every further term to a multiple of t times the precision: after 1e6 rounds
in float32 a term of 0.1 counts as 0.125 or not at all. In a `Sum` the part of a term that is lost
by rounding is kept beside the sum and added to the next term (Kahan 1965): the sum is that of terms
which are each wrong by two units in their last place at most, whatever their order and their signs.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, PyTree


def or_one(x: PyTree, legal: Any = None) -> Array:
    """`x` where it is `legal`, else 1. If `legal` is None, positive numbers are legal."""
    return jnp.where(x > 0 if legal is None else legal, x, 1.0)


def divide(a: Any, b: Any, otherwise: Any = 0.0, legal: Any = None) -> Array:
    """`a / b` where `b` is `legal`, else `otherwise`. If `legal` is None, positive `b` are legal.

    >>> divide(jnp.ones(2), jnp.array([0.0, 2.0])).tolist()
    [0.0, 0.5]
    """
    legal = b > 0 if legal is None else legal
    return jnp.where(legal, a / or_one(b, legal), otherwise)


def power(x: PyTree, exponent: Any, otherwise: Any, legal: Any = None) -> Array:
    """`x ** exponent` where `x` is `legal`, else `otherwise`. If None, positive `x` are legal."""
    legal = x > 0 if legal is None else legal
    return jnp.where(legal, or_one(x, legal) ** exponent, otherwise)


def x_log_x(x: PyTree) -> Array:
    """`x log x`, with derivative 0 at 0; it is 0 for negative numbers."""
    return jnp.where(x > 0, x * jnp.log(or_one(x)), 0.0)


def sqrt(square: Any) -> Array:
    """The square root, with derivative 0 at 0; it is 0 for negative numbers.

    >>> import jax
    >>> float(jax.grad(sqrt)(0.0))
    0.0
    """
    return jnp.where(square > 0, jnp.sqrt(or_one(square)), 0.0)


class Sum(NamedTuple):
    value: PyTree  # the sum, rounded once
    rest: PyTree  # the rounding error, at most a unit in the last place of `value`


def start(value: PyTree) -> Sum:
    return Sum(value, jax.tree.map(jnp.zeros_like, value))


def add(total: Sum, term: PyTree) -> Sum:
    """The sum with one more term; its derivative is the sum of the derivatives."""
    due = jax.tree.map(lambda rest, term: rest + term, total.rest, term)
    value = jax.tree.map(lambda before, due: before + due, total.value, due)
    return Sum(value, jax.tree.map(_lost, total.value, due, value))


def _lost(before: Array, due: Array, after: Array) -> Array:
    """What `after` lacks of `before + due`; 0 if the sum is not finite."""
    before, due, after = lax.stop_gradient((before, due, after))
    lost = due - (after - before)
    return jnp.where(jnp.isfinite(lost), lost, 0.0)
