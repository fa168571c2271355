r"""Label ranking in Euclidean space: $w_r = acc_r / c$ and $f(w) = \frac12 \sum_r \|w_r\|^2$.

The scores are $\langle acc_r, x\rangle / c$, divided last: labels whose $acc_r$ have equal products
with the row tie whatever $c$ is.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from olx import _numeric as safe
from olx.convex.balanced import balanced_search
from olx.core import Scalar
from olx.ranking._round import Geometry, Ranked


class EuclideanState(NamedTuple):
    acc: Float[Array, "k d"]  # c times the weights, one row per label
    c: Scalar


def at(c: Scalar, acc: Array) -> EuclideanState:
    return EuclideanState(acc, c)


def scores(state: EuclideanState, x: Array) -> Array:
    return state.acc @ x / state.c


def pair(now: Ranked) -> Array:
    r"""$\min\{h, c \ell / (2 \|x\|^2)\}$."""
    square = square_of(now.x)
    return jnp.minimum(now.weight, safe.divide(now.c * jnp.maximum(now.gap, 0.0), 2 * square))


def every(now: Ranked) -> Array:
    square = safe.or_one(square_of(now.x))
    signed = jnp.where(now.relevant, -now.scores, now.scores)
    return balanced_search(now.c * (now.margin / 2 + signed) / square, now.relevant, now.weight)


def square_of(x: Array) -> Array:
    return jnp.sum(x * x)


def drift(now: Ranked) -> Array:
    return now.weight**2 * square_of(now.x) / now.c


def price(u: Array) -> Array:
    return jnp.sum(u * u) / 2


def inside(u: Array) -> Array:
    return jnp.ones((), bool)


def conjugate(state: EuclideanState) -> Array:
    return price(state.acc / state.c)


def offset(u: Array) -> Array:
    return jnp.zeros((), u.dtype)


EUCLIDEAN = Geometry(at, scores, pair, every, square_of, drift, price, inside, conjugate, offset)
