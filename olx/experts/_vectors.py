"""Functions in a form that the compiler makes vectors of, many times faster than the plain ones."""

import jax.numpy as jnp
from jaxtyping import Array


def highest(values: Array, among: Array) -> Array:
    """The largest of the values `among` which it is sought, the lowest finite number if none."""
    return jnp.max(jnp.where(among, values, lowest(values)))  # with -inf there are no vectors


def lowest(values: Array) -> Array:
    """The lowest finite number of their precision."""
    return jnp.asarray(jnp.finfo(values.dtype).min, values.dtype)


def expm1(x: Array) -> Array:
    """$e^x - 1$ for $x$ not much above 0, to the last digits near 0 too."""
    half = jnp.tanh(x / 2)
    return 2 * half / (1 - half)
