r"""Sparse rows at the cost of their non-zeros, through the code of the dense learner.

When coordinates meet only in the score, and a coordinate whose gradient is zero keeps its state, a
round needs no more than the coordinates its row touches. So the state is kept as a table, one row a
coordinate; for each block of a sparse row the engine gathers eight rows of the table, plays the
dense learner on that short vector, and writes them back. However uneven the rows, a round costs as
much as its own blocks; `olx.engine.gather` is for learners that need the row as a whole.
"""

import functools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Int, PyTree

from olx.core import Learner, Loss, Rounds
from olx.engine.kernel import Program
from olx.engine.loop import at, over_rounds
from olx.engine.protocol import Watch, feedback_of
from olx.engine.table import Layout, Packed, pack_lanes, state_of, unpack
from olx.streams.sparse_rows import LANES, SparseRows


class Blocks(NamedTuple):
    """A chunk of sparse rows as arrays of one shape."""

    first: Any  # [C]
    last: Any  # [C]
    indices: Any  # [B, 8]
    values: Any  # [B, 8]
    widest: Any  # [W]: its length is the number of blocks of the widest row, or more


class Room(NamedTuple):
    """How much the arrays of a chunk must hold."""

    blocks: int = 1
    widest: int = 1

    def grown(self, rows: SparseRows, start: int, capacity: int) -> "Room":
        """Enough for every chunk of so many rows, from the row `start` on, too."""
        ends = rows.pointers[np.r_[np.arange(start, rows.shape[0], capacity), rows.shape[0]]]
        widest = int(np.max(np.diff(rows.pointers), initial=1))
        return Room(
            max(self.blocks, int(np.max(np.diff(ends), initial=1))),
            max(self.widest, 1 << (widest - 1).bit_length()),
        )


def blocks(rows: SparseRows, start: int, capacity: int, room: Room, dtype: Any) -> Blocks:
    """The chunk of rows from `start` on.

    Blocks past the last row of the chunk are never looked at, so they may be anybody's: the arrays
    are cut, not copied, but at the end of the stream.
    """
    fill = lambda a, size: np.concatenate([a, np.zeros((size - len(a), *a.shape[1:]), a.dtype)])
    pad = lambda a, size: a if len(a) == size else fill(a, size)
    stop = min(start + capacity, rows.shape[0])
    low, size = rows.pointers[start], room.blocks + room.widest
    return Blocks(
        pad(rows.pointers[start:stop] - low, capacity),
        pad(rows.pointers[start + 1 : stop + 1] - low, capacity),
        pad(rows.indices[low : low + size], size),
        pad(rows.values[low : low + size].astype(dtype, copy=False), size),
        np.zeros(room.widest, np.int8),
    )


@functools.lru_cache(maxsize=256)
def sparse_program(watch: Watch, layout: Layout) -> Program:
    """Play one learner on a chunk of sparse rows."""
    return Program(functools.partial(_play, watch, layout))


def _play(
    watch: Watch,
    layout: Layout,
    packed: Packed,
    learner: Learner,
    loss: Loss,
    rounds: Rounds,
    count: Int[Array, ""],
) -> tuple[Packed, PyTree]:
    """As for dense rows: the state after `count` rounds, and what comes out of each."""
    inner, rows = learner.hparams.inner, rounds.context

    def lanes(packed: Packed, k: Int[Array, ""]):
        index, x = at(rows.indices, k), at(rows.values, k)
        state = state_of(layout, packed.table.at[index].get(mode="promise_in_bounds"), packed.rest)
        return index, x, state, inner.predict(state, x)

    def one(packed: Packed, i: Int[Array, ""]) -> tuple[Packed, PyTree]:
        first, last = at(rows.first, i), at(rows.last, i)

        def add_up(k, scores):
            _, x, _, w = lanes(packed, k)
            return scores + w * x

        zeros = jnp.zeros(LANES, jnp.result_type(packed.table))
        score = jnp.sum(lax.fori_loop(first, last, add_up, zeros))
        weight = 1.0 if rounds.weight is None else at(rounds.weight, i)
        feedback = feedback_of(loss, None, score, at(rounds.outcome, i), weight)

        def learn(k, carry: Packed) -> Packed:
            index, x, state, w = lanes(Packed(carry.table, packed.rest), k)
            seen = feedback._replace(context=x, action=w, grad=feedback.grad * x)
            new = pack_lanes(layout, inner.update(state, seen))
            table = carry.table
            for lane in range(LANES):  # one slice a coordinate: the table is updated in place
                table = lax.dynamic_update_index_in_dim(table, new.table[lane], index[lane], 0)
            return Packed(table, new.rest)

        moves = jnp.where(feedback.grad == 0, jnp.minimum(first + 1, last), last)
        new = lax.fori_loop(first, moves, learn, packed)
        return new, watch.see(unpack(layout, packed), feedback)

    return over_rounds(one, packed, count, rows.first.shape[0])
