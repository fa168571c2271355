"""SIMD-friendly forms: XLA:CPU vectorizes these, but not max over -inf masks nor `expm1`."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array


def highest(values: Array, among: Array) -> Array:
    """The largest of the values where `among` is true; the lowest finite number if none is."""
    return jnp.max(jnp.where(among, values, lowest(values)))  # -inf would prevent SIMD


def lowest(values: Array) -> Array:
    """The lowest finite number in the dtype of `values`."""
    return jnp.asarray(jnp.finfo(values.dtype).min, values.dtype)


def expm1(x: Array) -> Array:
    """$e^x - 1$ for small or negative $x$, to full precision near 0 too."""
    half = jnp.tanh(x / 2)
    return 2 * half / (1 - half)


def below_top(logs: Array, used: Array) -> Array:
    """Logarithms minus the largest used one: `exp` cannot overflow, and shares stay the same."""
    top = lax.stop_gradient(highest(logs, used))
    return logs - jnp.where(top == lowest(top), 0.0, top)
