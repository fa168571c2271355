"""What schedules of one number share."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree


def zero(params: PyTree) -> Float[Array, ""]:
    """0, of the precision of the decisions."""
    return jnp.zeros((), jnp.result_type(*jax.tree.leaves(params)))


def or_one(c: Array) -> Array:
    """The schedule where it is positive; 1 while all rows were 0, and every c plays the same."""
    return jnp.where(c > 0, c, 1.0)
