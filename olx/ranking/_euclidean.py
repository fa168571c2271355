r"""Label ranking in Euclidean space: $w_r = acc_r / c$ and $f(w) = \frac12 \sum_r \|w_r\|^2$."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from olx import _safe as safe
from olx.convex.balanced import balanced_search
from olx.core import Scalar
from olx.ranking._round import Geometry, Ranked


class EuclideanState(NamedTuple):
    theta: Float[Array, "k d"]  # the weights, one row per label


def init(params: Array) -> EuclideanState:
    return EuclideanState(jnp.zeros_like(params))


def at(c: Scalar, acc: Array) -> EuclideanState:
    return EuclideanState(acc / c)


def scores(state: EuclideanState, x: Array) -> Array:
    return state.theta @ x


def pair(now: Ranked) -> Array:
    r"""$\min\{h, c \ell / (2 \|x\|^2)\}$."""
    square = square_of(now.x)
    return jnp.minimum(now.weight, safe.divide(now.c * jnp.maximum(now.gap, 0.0), 2 * square))


def every(now: Ranked) -> Array:
    square = safe.or_one(square_of(now.x))
    signed = jnp.where(now.relevant, -now.scores, now.scores)
    return balanced_search(now.c * (now.margin / 2 + signed) / square, now.relevant, now.weight)


def move(c: Scalar, state: EuclideanState, x: Array, scores: Array, steps: Array) -> EuclideanState:
    return EuclideanState(state.theta + (steps / c)[:, None] * x)


def square_of(x: Array) -> Array:
    return jnp.sum(x * x)


def drift(now: Ranked) -> Array:
    return now.weight**2 * square_of(now.x) / now.c


def price(u: Array) -> Array:
    return jnp.sum(u * u) / 2


def inside(u: Array) -> Array:
    return jnp.ones((), bool)


def conjugate(state: EuclideanState) -> Array:
    return price(state.theta)


def offset(u: Array) -> Array:
    return jnp.zeros((), u.dtype)


EUCLIDEAN = Geometry(
    init, at, scores, pair, every, move, square_of, drift, price, inside, conjugate, offset
)
