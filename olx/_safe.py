"""Quotients and roots where they may not be defined.

The argument is made legal before the operation and the result replaced after it: with one of the
two alone, the derivative on the branch not taken is NaN.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array


def or_one(x: Any, legal: Any = None) -> Array:
    """`x` where it is `legal`, else 1; None for where it is positive."""
    return jnp.where(x > 0 if legal is None else legal, x, 1.0)


def divide(a: Any, b: Any, otherwise: Any = 0.0, legal: Any = None) -> Array:
    """`a / b` where `b` is `legal`, else `otherwise`; None for where it is positive.

    >>> divide(jnp.ones(2), jnp.array([0.0, 2.0])).tolist()
    [0.0, 0.5]
    """
    legal = b > 0 if legal is None else legal
    return jnp.where(legal, a / or_one(b, legal), otherwise)


def sqrt(square: Any) -> Array:
    """The square root, with slope 0 at 0; 0 below.

    >>> import jax
    >>> float(jax.grad(sqrt)(0.0))
    0.0
    """
    return jnp.where(square > 0, jnp.sqrt(or_one(square)), 0.0)
