r"""A round of a sweep of `linear` learners on sparse rows, one coordinate at a time.

One coordinate of all configurations fills the SIMD lanes. A first loop copies the rows of the table
that the round needs into one buffer, and adds up the scores. A second loop plays the update on the
copies and writes each leaf back to its columns. XLA then updates the table in place, with one
vectorized loop per leaf. If an update read the table that it writes, XLA would copy single numbers,
or even the whole table.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int

from olx.core import Learner
from olx.engine.forms import Round, inner_of, taught
from olx.engine.loop import at
from olx.engine.table import Layout, Packed, columns_of, state_of
from olx.streams.sparse_rows import LANES


def lane_by_lane(
    over: Callable, layout: Layout, packed: Packed, learner: Learner, now: Round
) -> tuple[Packed, Array, Array]:
    """The new table, the score, and the buffer of copies."""
    inner, start = inner_of(learner), jnp.zeros_like(now.first)
    one = jnp.where(now.first < 0, 2, 1).astype(packed.table.dtype)

    def decide(inner: Learner, row: Array, rest: tuple, x: Array) -> Array:
        return inner.predict(state_of(layout, row, rest), x) * x

    def product(index: Int[Array, ""], x: Array) -> Array:
        row = lax.dynamic_index_in_dim(packed.table, index)
        return over(decide, (0, 2, 0, None))(inner, row, packed.rest, x[None])

    def gather(k: Int[Array, ""], carry: tuple[Array, Array]) -> tuple[Array, Array]:
        sums, copies = carry
        (index, x), place = now.block(k), (k - now.first) * LANES
        for lane in range(LANES):
            row = lax.dynamic_index_in_dim(packed.table, index[lane])
            # The compiler does not know that `one` is 1. It would not vectorize a plain copy.
            copies = lax.dynamic_update_index_in_dim(copies, row * one, place + lane, 0)
        add = lambda lane, sums: sums + product(at(index, lane), at(x, lane))
        return lax.fori_loop(0, LANES, add, sums), copies

    def learn(inner: Learner, row: Array, rest: tuple, score, value, slope, x) -> Packed:
        state = state_of(layout, row, rest)
        return columns_of(layout, taught(inner, state, now, score, value, slope, x))

    def update(place: Int[Array, ""], x: Array) -> Packed:
        row = lax.dynamic_index_in_dim(copies, place)
        teach = over(learn, (0, 2, 0, 0, 0, 0, None), Packed(2, 0))
        return teach(inner, row, packed.rest, score, value, slope, x)

    def write(place: Int[Array, ""], table: Array) -> Array:
        where, column = (now.first + place // LANES, place % LANES), 0
        index, x = (lax.dynamic_slice(leaf, where, (1, 1))[0] for leaf in now.rows[2:4])
        for leaf in update(place, x).table:
            table = lax.dynamic_update_slice(table, leaf, (index[0], start + column, start))
            column += leaf.shape[1]
        return table

    x = now.rows.values[0, :1]
    empty = jnp.zeros_like(jax.eval_shape(product, start, x[0]))
    sums, copies = lax.fori_loop(now.first, now.last, gather, (empty, now.room))
    score = sums[..., 0]
    value, slope = over(now.slope)(score)
    blocks = jnp.where(jnp.all(slope == 0), 1, now.last - now.first)  # one advances a clock
    table = lax.fori_loop(0, blocks * LANES, write, packed.table)
    return Packed(table, update(start, x).rest), score, copies
