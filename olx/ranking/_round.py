"""A round of label ranking as its updates see it, and what a geometry must know."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from olx._call import Call
from olx._pytree import pytree, static
from olx._refusal import own_name
from olx.core import Scalar
from olx.losses.margin import short
from olx.losses.ranks import is_proper, parted


class Ranked(NamedTuple):
    """The scores of a round and its relevant labels."""

    scores: Float[Array, " k"]
    relevant: Bool[Array, " k"]
    x: Float[Array, " d"]
    low: Float[Array, ""]  # the lowest score of a relevant label
    high: Float[Array, ""]  # the highest score of another label
    mixed: Bool[Array, ""]  # whether there are labels of both kinds
    moves: Bool[Array, ""]  # whether x is not 0; else no step changes the weights
    margin: Scalar
    c: Scalar
    weight: Array  # of the round; it bounds the dual variables

    @property
    def gap(self) -> Array:
        """The loss of the round, or a number of at most 0; 0 if there is nothing to rank."""
        return jnp.where(self.mixed, self.margin - self.low + self.high, 0.0)

    @property
    def mistaken(self) -> Array:
        """Whether a relevant label is not strictly above all others."""
        return self.mixed & short(self.low, self.high)

    @property
    def proper(self) -> Array:
        """Whether there is something to rank and a step that does it."""
        return self.mixed & self.moves

    @property
    def worst(self) -> Float[Array, " k"]:
        """1 at the lowest relevant label and the highest other label; the first of equal ones."""
        return jnp.where(
            _first((self.scores == self.low) & self.relevant)
            | _first((self.scores == self.high) & ~self.relevant),
            jnp.ones_like(self.scores),
            0.0,
        )


class Geometry(NamedTuple):
    """What the updates and theorems need to know of a potential; see `_euclidean`, `_entropic`."""

    at: Callable[..., Any]  # (c, acc) -> the state with the weights of acc / c
    scores: Callable[..., Any]  # (state, x) -> the score of each label
    pair: Callable[..., Any]  # (ranked) -> the best dual variable of the two worst labels
    every: Callable[..., Any]  # (ranked) -> the best dual variables of all labels
    square: Callable[..., Any]  # (x) -> the square of its dual norm
    drift: Callable[..., Any]  # (ranked) -> the divergence of a subgradient step, times c
    price: Callable[..., Any]  # (u) -> f(u), at least 0
    inside: Callable[..., Any]  # (u) -> whether it lies in the domain
    conjugate: Callable[..., Any]  # (state) -> f*(theta), 0 at the start
    offset: Callable[..., Any]  # (u) -> the size of the constants in both


@pytree
class Update:
    """How the dual variables of a round are chosen; see `olx.ranking.updates`."""

    pick_fn: Callable[..., Any] = static()  # (geometry, ranked) -> dual variables, one per label
    counts_fn: Callable[..., Any] = static()  # (ranked) -> whether the loss of the round counts
    name: Call = static(kw_only=True, default=Call())  # the call that makes it


@own_name("label_ranking")
def ranked(scores: Array, relevant: Any, x: Array, margin: Scalar, c: Scalar, weight: Any):
    inside, low, high = parted(scores, relevant)
    mixed, moves = is_proper(inside), jnp.any(x != 0)
    weight = jnp.asarray(weight, scores.dtype)
    return Ranked(scores, inside, x, low, high, mixed, moves, margin, c, weight)


def _first(where: Bool[Array, " k"]) -> Bool[Array, " k"]:
    number = jnp.arange(where.size)
    return number == jnp.min(jnp.where(where, number, where.size))
