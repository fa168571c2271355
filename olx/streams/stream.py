"""A generated stream: the rounds, and the comparator that they were made from."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._refusal import RefusedValue
from olx.core import Rounds, Scalar


class Stream(NamedTuple):
    """truth: the comparator that made the rounds; with a leading axis of length T if it changes."""

    rounds: Rounds
    truth: PyTree


def directions(key: Array, shape: tuple[int, ...]) -> Float[Array, "..."]:
    """Random vectors of length 1 along the last axis, uniform on the sphere."""
    drawn = jax.random.normal(key, shape)
    return drawn / jnp.linalg.norm(drawn, axis=-1, keepdims=True)


def coins(key: Array, chances: Scalar, shape: tuple[int, ...]) -> Float[Array, "..."]:
    """1 with the given probability, else 0; NaN if that is NaN, so that a bad grid point shows."""
    chances = jnp.broadcast_to(jnp.asarray(chances, float), shape)
    return jnp.where(jnp.isnan(chances), chances, jax.random.bernoulli(key, chances).astype(float))


def segments(rounds: int, switches: int) -> Array:
    """The number of the piece of each round, for `switches` + 1 pieces of nearly equal length."""
    whole("switches", switches, 0, rounds - 1)
    return jnp.arange(rounds) * (switches + 1) // rounds


def check_sizes(key: Array, **counts: int) -> None:
    """Refuse what is no key, and counts that are not positive integers."""
    check.key(key)
    for name, count in counts.items():
        check.count(name, count)


def whole(name: str, value: int, low: int, high: int) -> None:
    """Refuse all but Python integers from `low` to `high`; these shape arrays."""
    legal = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not legal or not low <= value <= high:
        raise RefusedValue(
            f"`{name}` must be an integer from {low} to {high}, got {check.quote(value)}."
        )
