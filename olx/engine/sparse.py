r"""Sparse rows at the cost of their non-zeros, through the code of the dense learner.

When coordinates meet only in the score, and a coordinate whose gradient is zero keeps its state, a
round needs no more than the coordinates its row touches. So the state is kept as a table, one row a
coordinate; for each block of a sparse row the engine gathers eight rows of the table, plays the
dense learner on that short vector, and writes them back. What is not per coordinate, such as a
clock, goes along as it is.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, PyTree

from olx.core import Learner, Loss, Rounds
from olx.engine.kernel import Program
from olx.engine.protocol import Record, feedback_of
from olx.learners.lift import LiftHparams, dot
from olx.streams.sparse_rows import LANES, SparseRows


class Blocks(NamedTuple):
    """A chunk of sparse rows as arrays of one shape."""

    first: Any  # [C]
    last: Any  # [C]
    indices: Any  # [B, 8]
    values: Any  # [B, 8]


class Layout(NamedTuple):
    """Which leaves of a state are per coordinate."""

    structure: Any
    coordinate: tuple[bool, ...]


class Packed(NamedTuple):
    table: Float[Array, "d_plus_1 k"]  # a row a coordinate; the last is for nothing
    rest: tuple  # the other leaves


def blocks_needed(rows: SparseRows, start: int, capacity: int) -> int:
    """The most blocks that a chunk of so many rows has, from the row `start` on."""
    ends = rows.pointers[np.r_[np.arange(start, rows.shape[0], capacity), rows.shape[0]]]
    return int(np.max(np.diff(ends), initial=1))


def blocks(rows: SparseRows, start: int, capacity: int, room: int) -> Blocks:
    """The chunk of rows from `start` on, with `room` for blocks.

    Blocks past the last row of the chunk are never looked at, so they may be anybody's: the arrays
    are cut, not copied, but at the end of the stream.
    """
    fill = lambda a, size: np.concatenate([a, np.zeros((size - len(a), *a.shape[1:]), a.dtype)])
    pad = lambda a, size: a if len(a) == size else fill(a, size)
    stop = min(start + capacity, rows.shape[0])
    low = rows.pointers[start]
    return Blocks(
        pad(rows.pointers[start:stop] - low, capacity),
        pad(rows.pointers[start + 1 : stop + 1] - low, capacity),
        pad(rows.indices[low : low + room], room),
        pad(rows.values[low : low + room], room),
    )


def layout_of(owner: str, learner: Learner, params: PyTree, width: int) -> Layout:
    """How the state of `learner` is laid out; refuses learners that need dense rows."""
    hp = learner.hparams
    if not isinstance(hp, LiftHparams) or hp.apply.func is not dot or not hp.inner.separable:
        raise TypeError(
            f"{owner}: sparse rows need `olx.linear` of a learner whose coordinates meet only in "
            "the score, such as `omd` with a separable map or `ftrl` with `adagrad`; this one "
            "needs dense rows: pass `rows.toarray()`."
        )
    if any(np.ndim(leaf) for leaf in jax.tree.leaves(learner)):
        raise TypeError(
            f"{owner}: a learner with a number for each coordinate, such as a prior, needs dense "
            "rows: pass `rows.toarray()`."
        )
    if np.shape(params) != (width,):
        raise TypeError(
            f"{owner}: `params` has shape {np.shape(params)}, the sparse rows have {width} columns."
        )
    grow = lambda size: jax.eval_shape(learner.init, jax.ShapeDtypeStruct((size,), params.dtype))
    small, large = grow(width), grow(width + 1)
    differ = lambda a, b: a.shape != b.shape
    coordinate = tuple(map(differ, jax.tree.leaves(small), jax.tree.leaves(large)))
    return Layout(jax.tree.structure(small), coordinate)


def pack(layout: Layout, state: PyTree) -> Packed:
    lanes, rest = _pack_lanes(layout, state)
    return Packed(jnp.concatenate([lanes, lanes[:1]]), rest)


def unpack(layout: Layout, packed: Packed) -> PyTree:
    return _state(layout, packed.table[:-1], packed.rest)


@functools.lru_cache(maxsize=256)
def sparse_program(record: Record | None, layout: Layout) -> Program:
    """Play one learner on a chunk of sparse rows."""
    return Program(functools.partial(_play, record, layout))


def _play(
    record: Record | None,
    layout: Layout,
    packed: Packed,
    learner: Learner,
    loss: Loss,
    rounds: Rounds,
    count: Int[Array, ""],
) -> tuple[Packed, PyTree]:
    """As for dense rows: the state after `count` rounds, and what comes out of each."""
    inner, rows = learner.hparams.inner, rounds.context
    at = lambda leaf, i: lax.dynamic_index_in_dim(leaf, i, keepdims=False)

    def lanes(packed: Packed, k: Int[Array, ""]):
        index, x = at(rows.indices, k), at(rows.values, k)
        state = _state(layout, packed.table.at[index].get(mode="promise_in_bounds"), packed.rest)
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
            new = _pack_lanes(layout, inner.update(state, seen))
            table = carry.table
            for lane in range(LANES):  # one slice a coordinate: the table is updated in place
                table = lax.dynamic_update_index_in_dim(table, new.table[lane], index[lane], 0)
            return Packed(table, new.rest)

        moves = jnp.where(feedback.grad == 0, jnp.minimum(first + 1, last), last)
        new = lax.fori_loop(first, moves, learn, packed)
        kept = None if record is None else record(unpack(layout, packed), feedback)
        return new, (feedback.value, kept)

    def step(i, carry):
        packed, out = carry
        packed, kept = one(packed, i)
        write = lambda rows, row: lax.dynamic_update_index_in_dim(rows, row, i, 0)
        return packed, jax.tree.map(write, out, kept)

    shapes = jax.eval_shape(one, packed, count)[1]
    room = rows.first.shape[0]
    empty = jax.tree.map(lambda leaf: jnp.zeros((room, *leaf.shape), leaf.dtype), shapes)
    return lax.fori_loop(0, count, step, (packed, empty))


def _state(layout: Layout, table: Array, rest: tuple) -> PyTree:
    columns, others = iter(table.T), iter(rest)
    leaves = [next(columns) if is_own else next(others) for is_own in layout.coordinate]
    return jax.tree.unflatten(layout.structure, leaves)


def _pack_lanes(layout: Layout, state: PyTree) -> Packed:
    leaves = list(zip(jax.tree.leaves(state), layout.coordinate, strict=True))
    columns = [leaf for leaf, is_own in leaves if is_own]
    return Packed(jnp.stack(columns, axis=1), tuple(leaf for leaf, is_own in leaves if not is_own))
