"""Quotients, powers, roots and logarithms with a value and a finite derivative everywhere.

Each function replaces an illegal argument before the operation and the result after it. Without
both replacements, the derivative on the branch not taken is NaN.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array


def or_one(x: Any, legal: Any = None) -> Array:
    """`x` where it is `legal`, else 1. If `legal` is None, positive numbers are legal."""
    return jnp.where(x > 0 if legal is None else legal, x, 1.0)


def divide(a: Any, b: Any, otherwise: Any = 0.0, legal: Any = None) -> Array:
    """`a / b` where `b` is `legal`, else `otherwise`. If `legal` is None, positive `b` are legal.

    >>> divide(jnp.ones(2), jnp.array([0.0, 2.0])).tolist()
    [0.0, 0.5]
    """
    legal = b > 0 if legal is None else legal
    return jnp.where(legal, a / or_one(b, legal), otherwise)


def power(x: Any, exponent: Any, otherwise: Any, legal: Any = None) -> Array:
    """`x ** exponent` where `x` is `legal`, else `otherwise`. If None, positive `x` are legal."""
    legal = x > 0 if legal is None else legal
    return jnp.where(legal, or_one(x, legal) ** exponent, otherwise)


def x_log_x(x: Any) -> Array:
    """`x log x`, with derivative 0 at 0; it is 0 for negative numbers."""
    return jnp.where(x > 0, x * jnp.log(or_one(x)), 0.0)


def sqrt(square: Any) -> Array:
    """The square root, with derivative 0 at 0; it is 0 for negative numbers.

    >>> import jax
    >>> float(jax.grad(sqrt)(0.0))
    0.0
    """
    return jnp.where(square > 0, jnp.sqrt(or_one(square)), 0.0)
