r"""The variation of a sequence of comparators, and the sequence as a weighted sum of intervals.

A sequence of non-negative vectors $u_1, \dots, u_T$ has the variation
$V = \sum_t \sum_i [u_{t,i} - u_{t-1,i}]_+$ with $u_0 = 0$. Theorems about comparators that change
depend on it; see `olx.experts.changing`.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.3.3, lemma 5.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx.hindsight.regret import check_sequence


class Piece(NamedTuple):
    """An interval, the rounds from `start` up to, not including, `stop`, and its weight."""

    weight: float
    start: int
    stop: int


def upward_variation(us: PyTree) -> Array:
    r"""$\sum_t \sum_i [u_{t,i} - u_{t-1,i}]_+$ with $u_0 = 0$."""
    check_sequence("upward_variation", us)
    flat = jax.vmap(lambda u: ravel_pytree(u)[0])(us)
    before = jnp.concatenate([jnp.zeros_like(flat[:1]), flat[:-1]])
    return jnp.sum(jnp.maximum(flat - before, 0.0))


def intervals(sequence: Float[Array, " T"]) -> list[Piece]:
    """A non-negative sequence as a weighted sum of intervals, of least total weight (lemma 5).

    >>> intervals(np.array([1.0, 3.0, 2.0, 0.0, 1.0]))
    [Piece(weight=1.0, start=0, stop=3), Piece(weight=1.0, start=1, stop=3), \
Piece(weight=1.0, start=1, stop=2), Piece(weight=1.0, start=4, stop=5)]
    """
    given = np.asarray(sequence)
    check.array("intervals", "sequence", given, 1)
    given = check.non_negative("intervals", "sequence", given.astype(float), each=True)
    pieces, unfinished = [], [(0.0, 0)]  # open intervals: their level and start
    for t, value in enumerate([*given.tolist(), 0.0]):
        while unfinished[-1][0] > value:
            top, start = unfinished.pop()
            bottom = max(unfinished[-1][0], value)
            pieces.append(Piece(top - bottom, start, t))
            if bottom > unfinished[-1][0]:
                unfinished.append((bottom, start))
        if unfinished[-1][0] < value:
            unfinished.append((value, t))
    return sorted(pieces, key=lambda piece: (piece.start, -piece.stop))
