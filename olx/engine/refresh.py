"""Refreshes in the programs of the engine: a round in which none is due costs nothing more.

`jax.vmap` turns the `lax.cond` of `Learner.update` into a computation of both branches in every
round. So here the rounds of a batch are played by `Learner.step`, and a loop outside `jax.vmap`
makes the refresh: it has no step unless a refresh is due. Such a loop works in place and inside one
kernel.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int, PyTree

from olx.core import Learner
from olx.engine.forms import Round, whole_row
from olx.engine.table import Layout, Packed, rows_of, state_of
from olx.streams.sparse_rows import LANES


def refreshed(over: Callable, learner: Learner, state: PyTree, due: Array | None) -> PyTree:
    """The state, or the states of a batch; those that are `due` are refreshed."""
    if due is None:
        return state

    def change(_: Int[Array, ""], state: PyTree) -> PyTree:
        better = over(_better)(learner, state)
        return jax.tree.map(lambda new, old: _where(due, new, old), better, state)

    return lax.fori_loop(0, jnp.any(due).astype(int), change, state)


def refreshing(
    over: Callable, layout: Layout, packed: Packed, learner: Learner, now: Round
) -> tuple[Packed, Array, Array]:
    """A round of a learner that is `Refreshed`: the new table, and the score.

    The refresh acts on each coordinate alone, so it is made on some rows of the table at a time.
    """
    new, score, room = whole_row(over, layout, packed, learner, now)
    count = new.table.shape[0]
    size = min(LANES, count)

    def asks(learner: Learner, row: Array, rest: tuple) -> Array:
        return learner.due(state_of(layout, row, rest), now.weight)

    def better(learner: Learner, rows: Array, rest: tuple, sums: PyTree) -> Packed:
        return rows_of(layout, learner.refreshed(state_of(layout, rows, rest), sums))

    def sums_of(learner: Learner, rows: Array, rest: tuple) -> PyTree:
        return learner.sums(state_of(layout, rows, rest))

    def part_of(table: Array, block: Int[Array, ""]) -> tuple[Array, Array, Array]:
        """The numbers of the rows of a block, the rows, and which are in no block before it."""
        start = block * size
        first = jnp.minimum(start, count - size)  # the last block overlaps the block before it
        rows = lax.dynamic_slice_in_dim(table, first, size)
        numbers = (first + jnp.arange(size)).reshape(-1, *(1,) * (rows.ndim - 1))
        return numbers, rows, numbers >= start

    def add(block: Int[Array, ""], total: PyTree) -> PyTree:
        numbers, rows, fresh = part_of(new.table, block)
        rows = jnp.where(fresh & (numbers < count - 1), rows, 0.0)  # the last row is padding
        return jax.tree.map(jnp.add, total, over(sums_of, (0, 2, 0))(learner, rows, new.rest))

    def change(block: Int[Array, ""], carry: Packed) -> Packed:
        numbers, old, fresh = part_of(carry.table, block)
        part = over(better, (0, 2, 0, 0), Packed(2, 0))(learner, old, new.rest, total)
        rows = jnp.where(due & fresh, part.table, old)
        rest = jax.tree.map(lambda new, old: _where(due, new, old), part.rest, new.rest)
        return Packed(
            lax.dynamic_update_slice_in_dim(carry.table, rows, numbers.reshape(-1)[0], 0), rest
        )

    due = over(asks, (0, 2, 0))(learner, new.table[:1], new.rest)
    blocks = jnp.where(jnp.any(due), -(-count // size), 0)
    shapes = jax.eval_shape(over(sums_of, (0, 2, 0)), learner, new.table[:1], new.rest)
    empty = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    total = lax.fori_loop(0, blocks, add, empty)
    return lax.fori_loop(0, blocks, change, new), score, room


def _where(due: Bool[Array, "..."], new: Array, old: Array) -> Array:
    """The new value where it is due; `due` has the axis of configurations, which comes first."""
    return jnp.where(due.reshape(due.shape + (1,) * (new.ndim - due.ndim)), new, old)


def _better(learner: Learner, state: PyTree) -> PyTree:
    return learner.refreshed(state, learner.sums(state))
