r"""Sparse rows at the cost of their non-zeros, through the code of the dense learner.

When coordinates meet only in the score, and a coordinate whose gradient is zero keeps its state, a
round needs only the coordinates of its row. So the state is a table with one row per coordinate.
The engine gathers the rows of the table that a round touches, plays the dense learner on that short
vector, and writes them back. A sweep keeps the numbers of all configurations side by side in a row
of the table, so that one gather serves all of them.

There are two forms. A `linear` learner is played block by block: a first loop over the blocks of
the row adds up the score, a second one updates them, and a round costs as much as its own blocks.
A predictor that looks at the row as a whole, such as at its norm, gets as many coordinates as the
widest row of the stream has.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, Int, PyTree

from olx.core import Feedback, Learner, Loss, Rounds, Scalar
from olx.engine.kernel import Program
from olx.engine.loop import at, over_rounds
from olx.engine.protocol import Watch, feedback_of, revealed
from olx.engine.rows import Blocks
from olx.engine.table import Layout, Packed, rows_of, state_of
from olx.streams.sparse_rows import LANES


class Round(NamedTuple):
    """What a round is about, apart from its row."""

    loss: Loss
    outcome: PyTree
    weight: Scalar

    def feedback(self, score: Array) -> Feedback:
        return feedback_of(self.loss, None, score, self.outcome, self.weight)

    def slope(self, score: Array) -> tuple[Array, Array]:
        """The value of the loss and its slope."""
        feedback = self.feedback(score)
        return feedback.value, feedback.grad


@functools.lru_cache(maxsize=256)
def sparse_program(
    watch: Watch, layout: Layout, linear: bool, batched: bool, share: Callable | None = None
) -> Program:
    """Play a learner, or a batch of learners, on a chunk of sparse rows."""
    over = jax.vmap if batched else _alone
    lanes = 1 if batched else LANES  # a batch fills the vector units by itself
    form = functools.partial(_part_by_part, lanes) if linear else _whole_row
    return Program(functools.partial(_play, form, over, watch, layout), share=share)


def _play(
    form: Callable,
    over: Callable,
    watch: Watch,
    layout: Layout,
    packed: Packed,
    learner: Learner,
    loss: Loss,
    rounds: Rounds,
    count: Int[Array, ""],
) -> tuple[Packed, PyTree]:
    """As for dense rows: the state after `count` rounds, and what each round leaves behind."""

    def one(packed: Packed, i: Int[Array, ""]) -> tuple[Packed, PyTree]:
        weight = 1.0 if rounds.weight is None else at(rounds.weight, i)
        now = Round(loss, at(rounds.outcome, i), weight)

        def see(table: Array, rest: tuple, score: Array) -> PyTree:
            return watch.see(state_of(layout, table[:-1], rest), now.feedback(score))

        new, score = form(over, layout, packed, learner, now, rounds.context, i)
        return new, over(see, (2, 0, 0))(*packed, score)

    return over_rounds(one, packed, count, rounds.context.first.shape[0])


def _part_by_part(
    size: int,
    over: Callable,
    layout: Layout,
    packed: Packed,
    learner: Learner,
    now: Round,
    rows: Blocks,
    i: Int[Array, ""],
) -> tuple[Packed, Array]:
    """A round of a `linear` learner, `size` entries at a time: the new table, and the score."""
    inner, parts = learner.hparams.inner, LANES // size
    first, last = at(rows.first, i) * parts, at(rows.last, i) * parts

    def part(leaf: Array, k: Int[Array, ""]) -> Array:
        return lax.dynamic_slice(leaf, (k // parts, k % parts * size), (1, size))[0]

    def decide(inner: Learner, lanes: Array, rest: tuple, x: Array) -> Array:
        return inner.predict(state_of(layout, lanes, rest), x)

    def products(k: Int[Array, ""]) -> Array:
        index, x = part(rows.indices, k), part(rows.values, k)
        lanes = _gathered(packed.table, index)
        return over(decide, (0, 2, 0, None))(inner, lanes, packed.rest, x) * x

    def learn(inner: Learner, lanes: Array, rest: tuple, score, value, slope, x) -> Packed:
        state = state_of(layout, lanes, rest)
        w = inner.predict(state, x)
        loss = Partial(_along, revealed(now.loss, now.outcome), score, x, w)
        grad = jnp.asarray(slope)[..., None] * x
        return rows_of(
            layout,
            inner.update(state, Feedback(x, w, now.outcome, loss, value, grad, now.weight)),
        )

    def step(k: Int[Array, ""], carry: Packed) -> Packed:
        index, x = part(rows.indices, k), part(rows.values, k)
        lanes = _gathered(carry.table, index)
        teach = over(learn, (0, 2, 0, 0, 0, 0, None), Packed(2, 0))
        new = teach(inner, lanes, packed.rest, score, value, slope, x)
        return Packed(_written(carry.table, index, new.table), new.rest)

    empty = jnp.zeros_like(jax.eval_shape(products, first))
    score = jnp.sum(lax.fori_loop(first, last, lambda k, sums: sums + products(k), empty), -1)
    value, slope = over(now.slope)(score)
    moves = jnp.where(jnp.all(slope == 0), jnp.minimum(first + 1, last), last)
    return lax.fori_loop(first, moves, step, packed), score


def _whole_row(
    over: Callable,
    layout: Layout,
    packed: Packed,
    learner: Learner,
    now: Round,
    rows: Blocks,
    i: Int[Array, ""],
) -> tuple[Packed, Array]:
    """A round of a predictor that sees its row as a whole: the new table, and the score."""
    first, last, widest = at(rows.first, i), at(rows.last, i), rows.widest.size
    here = lambda leaf: lax.dynamic_slice_in_dim(leaf, first, widest)
    own = (first + jnp.arange(widest, dtype=first.dtype) < last)[:, None]
    index = jnp.where(own, here(rows.indices), packed.table.shape[0] - 1).reshape(-1)
    x = jnp.where(own, here(rows.values), 0.0).reshape(-1)
    lanes = _gathered(packed.table, index)

    def decide(learner: Learner, lanes: Array, rest: tuple) -> Array:
        return learner.predict(state_of(layout, lanes, rest), x)

    def learn(learner: Learner, lanes: Array, rest: tuple, score, value, grad) -> Packed:
        loss = revealed(now.loss, now.outcome)
        seen = Feedback(x, score, now.outcome, loss, value, grad, now.weight)
        return rows_of(layout, learner.update(state_of(layout, lanes, rest), seen))

    def write(block: Int[Array, ""], table: Array) -> Array:
        part = lambda leaf: lax.dynamic_slice_in_dim(leaf, block * LANES, LANES)
        return _written(table, part(index), part(new.table))

    score = over(decide, (0, 2, 0))(learner, lanes, packed.rest)
    value, grad = over(now.slope)(score)
    teach = over(learn, (0, 2, 0, 0, 0, 0), Packed(2, 0))
    new = teach(learner, lanes, packed.rest, score, value, grad)
    return Packed(lax.fori_loop(0, last - first, write, packed.table), new.rest), score


def _gathered(table: Array, index: Int[Array, " L"]) -> Array:
    if index.size == 1:
        return lax.dynamic_index_in_dim(table, index[0])
    return table.at[index].get(mode="promise_in_bounds")


def _written(table: Array, index: Int[Array, " L"], new: Array) -> Array:
    """One slice per coordinate: XLA updates the table in place, which it does not for a scatter."""
    for lane in range(index.size):
        table = lax.dynamic_update_index_in_dim(table, new[lane], index[lane], 0)
    return table


def _along(loss: Partial, score: Array, x: Array, w: Array, v: Array) -> Array:
    """The loss of a round as a function of the decision on the coordinates of one block."""
    return loss(score + jnp.sum((v - w) * x, -1))


def _alone(function: Callable, *_: Any) -> Callable:
    """In place of `jax.vmap` where there is one configuration and no axis for it."""
    return function
