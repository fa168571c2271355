r"""Sparse rows for predictors that look at a row as a whole, such as at its norm.

The state is the table of `olx.engine.table`. A round gathers the coordinates of its row, as many
as the widest row of the stream has, plays the dense learner on that short vector, and writes those
of the row back.
"""

import functools

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int, PyTree

from olx.core import Learner, Loss, Rounds
from olx.engine.kernel import Program
from olx.engine.loop import at, over_rounds
from olx.engine.protocol import Watch, feedback_of
from olx.engine.table import Layout, Packed, pack_lanes, state_of, unpack
from olx.streams.sparse_rows import LANES


@functools.lru_cache(maxsize=256)
def gather_program(watch: Watch, layout: Layout) -> Program:
    """Play one learner on a chunk of sparse rows, a whole row at a time."""
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
    rows = rounds.context
    nothing = packed.table.shape[0] - 1

    def one(packed: Packed, i: Int[Array, ""]) -> tuple[Packed, PyTree]:
        first, last = at(rows.first, i), at(rows.last, i)
        here = lambda leaf: lax.dynamic_slice_in_dim(leaf, first, rows.widest.size)
        own = (first + jnp.arange(rows.widest.size, dtype=first.dtype) < last)[:, None]
        index = jnp.where(own, here(rows.indices), nothing).reshape(-1)
        x = jnp.where(own, here(rows.values), 0.0).reshape(-1)
        table = packed.table.at[index].get(mode="promise_in_bounds")
        state = state_of(layout, table, packed.rest)
        score = learner.predict(state, x)
        weight = 1.0 if rounds.weight is None else at(rounds.weight, i)
        feedback = feedback_of(loss, x, score, at(rounds.outcome, i), weight)
        new = pack_lanes(layout, learner.update(state, feedback))

        def write(block: Int[Array, ""], table: Array) -> Array:
            for lane in range(LANES):  # one slice a coordinate: the table is updated in place
                j = block * LANES + lane
                table = lax.dynamic_update_index_in_dim(table, at(new.table, j), at(index, j), 0)
            return table

        table = lax.fori_loop(0, last - first, write, packed.table)
        return Packed(table, new.rest), watch.see(unpack(layout, packed), feedback)

    return over_rounds(one, packed, count, rows.first.shape[0])
