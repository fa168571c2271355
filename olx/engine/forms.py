r"""The forms in which a round of sparse rows is played.

- `adding`: an update adds a multiple of the row. One loop over the blocks of the row computes the
  score, a second loop adds the multiple.
- `block_by_block`: any other `linear` learner, alone; `olx.engine.lanes` plays a batch of them. The
  second loop calls the update of the learner.
- `whole_row`: a predictor that uses the whole row, such as its norm. It gets a row of fixed length;
  `olx.engine.sizes` plays it, and other forms of this kind, with a length that suits the row.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, Int, PyTree

from olx.core import Feedback, Learner, Loss, Scalar
from olx.engine.loop import at
from olx.engine.protocol import feedback_of, revealed
from olx.engine.rows import Blocks
from olx.engine.table import Layout, Packed, rows_of, state_of
from olx.facts import AddsContext, Linear
from olx.streams.sparse_rows import LANES

Form = Callable[..., tuple[Packed, Array, Array]]  # the new table, the score, and the room


class Round(NamedTuple):
    """The data of a round: its loss, outcome and weight, and its row in a chunk."""

    loss: Loss
    outcome: PyTree
    weight: Scalar
    rows: Blocks
    first: Int[Array, ""]  # the first block of the row
    last: Int[Array, ""]  # one past its last block
    room: Array  # memory for copies of rows of the table; a form may overwrite it

    def feedback(self, score: Array, context: PyTree = None) -> Feedback:
        return feedback_of(self.loss, context, score, self.outcome, self.weight)

    def slope(self, score: Array) -> tuple[Array, Array]:
        """The value of the loss and its slope."""
        feedback = self.feedback(score)
        return feedback.value, feedback.grad

    def block(self, k: Int[Array, ""]) -> tuple[Array, Array]:
        """The indices and the entries of a block.

        The indices are unsigned: JAX counts a signed one from the end if it is negative, and XLA
        compares it with 0.
        """
        k = k.astype(jnp.uint32)
        return at(self.rows.indices, k).astype(jnp.uint32), at(self.rows.values, k)

    def row(self, nothing: int) -> tuple[Array, Array]:
        """The indices and entries of the row, padded to the widest one; padding gets `nothing`."""
        widest = self.rows.widest.size
        here = lambda leaf: lax.dynamic_slice_in_dim(leaf, self.first, widest)
        own = (self.first + jnp.arange(widest, dtype=self.first.dtype) < self.last)[:, None]
        index = jnp.where(own, here(self.rows.indices), nothing).reshape(-1)
        return index, jnp.where(own, here(self.rows.values), 0.0).reshape(-1)


def adding(
    over: Callable, layout: Layout, packed: Packed, learner: Learner, now: Round
) -> tuple[Packed, Array, Array]:
    """A round of a learner that adds a multiple of the row: the new table, and the score."""
    batched, (_, x) = over is jax.vmap, now.row(0)
    lanes = LANES if packed.table[0].size == 1 else 1  # sums; one sum would wait for each product

    def learn(learner: Learner, product: Array) -> tuple[Array, Array]:
        adds = learner.facts.adds
        assert isinstance(adds, AddsContext)  # checked by `form_of`
        score = adds.score(learner.hparams, product)
        a = adds.coefficient_fn(learner.hparams, now.feedback(score, x))
        return score, jnp.where(jnp.asarray(now.weight) == 0, jnp.zeros_like(score), a)

    def count(k: Int[Array, ""], sums: Array) -> Array:
        index, x = now.block(k)
        if lanes > 1:
            return sums + gathered(packed.table, index) * x[:, None]
        for lane in range(LANES):
            sums += lax.dynamic_index_in_dim(packed.table, index[lane]) * x[lane]
        return sums

    def step(k: Int[Array, ""], table: Array) -> Array:
        index, x = now.block(k)
        for lane in range(LANES):
            old = lax.dynamic_index_in_dim(table, index[lane])
            new = old + multiple * x[lane]  # same shape as `old`, so XLA updates in place
            table = lax.dynamic_update_index_in_dim(table, new, index[lane], 0)
        return table

    empty = jnp.zeros((lanes, *packed.table.shape[1:]), packed.table.dtype)
    sums = lax.fori_loop(now.first, now.last, count, empty)
    sums = jnp.sum(sums, 0, keepdims=True) if lanes > 1 else sums
    product = (sums[0].T if batched else sums[0]).reshape(-1, *layout.others[0])
    score, a = over(learn)(learner, product if batched else product[0])
    multiple = (a.reshape(len(a), -1).T if batched else a).reshape(sums.shape)
    moves = jnp.where(jnp.any(a != 0), now.last, now.first)
    table = lax.fori_loop(now.first, moves, step, packed.table)
    return Packed(table, packed.rest), score, now.room


def block_by_block(
    over: Callable, layout: Layout, packed: Packed, learner: Learner, now: Round
) -> tuple[Packed, Array, Array]:
    """A round of a `linear` learner, alone: the new table, and the score."""
    inner = inner_of(learner)

    def products(k: Int[Array, ""]) -> Array:
        index, x = now.block(k)
        return inner.predict(state_of(layout, gathered(packed.table, index), packed.rest), x) * x

    def step(k: Int[Array, ""], carry: Packed) -> Packed:
        index, x = now.block(k)
        state = state_of(layout, gathered(carry.table, index), packed.rest)
        new = rows_of(layout, taught(inner, state, now, score, value, slope, x))
        return Packed(written(carry.table, index, new.table), new.rest)

    empty = jnp.zeros_like(jax.eval_shape(products, now.first))
    add = lambda k, sums: sums + products(k)
    score = jnp.sum(lax.fori_loop(now.first, now.last, add, empty), -1)
    value, slope = now.slope(score)
    short = jnp.minimum(now.first + 1, now.last)  # one block advances a clock
    moves = jnp.where(jnp.all(slope == 0), short, now.last)
    return lax.fori_loop(now.first, moves, step, packed), score, now.room


def inner_of(learner: Learner) -> Learner:
    """The point learner of a `linear` learner."""
    assert isinstance(learner.facts.coordinates, Linear)  # checked by `form_of`
    return learner.facts.coordinates.inner_fn(learner.hparams)


def taught(
    inner: Learner, state: PyTree, now: Round, score: Array, value: Array, slope: Array, x: Array
) -> PyTree:
    """The state of the inner learner on some coordinates, after the round."""
    w = inner.predict(state, x)
    loss = Partial(_along, revealed(now.loss, now.outcome), score, x, w)
    grad = jnp.asarray(slope)[..., None] * x
    return inner.update(state, Feedback(x, w, now.outcome, loss, value, grad, now.weight))


def whole_row(
    over: Callable, layout: Layout, packed: Packed, learner: Learner, now: Round
) -> tuple[Packed, Array, Array]:
    """A round of a predictor that uses its whole row: the new table, and the score."""
    index, x = now.row(packed.table.shape[0] - 1)
    lanes = gathered(packed.table, index)

    def decide(learner: Learner, lanes: Array, rest: tuple) -> Array:
        return learner.predict(state_of(layout, lanes, rest), x)

    def learn(learner: Learner, lanes: Array, rest: tuple, score, value, grad) -> Packed:
        loss = revealed(now.loss, now.outcome)
        seen = Feedback(x, score, now.outcome, loss, value, grad, now.weight)
        return rows_of(layout, learner.step(state_of(layout, lanes, rest), seen))

    def write(block: Int[Array, ""], table: Array) -> Array:
        part = lambda leaf: lax.dynamic_slice_in_dim(leaf, block * LANES, LANES)
        return written(table, part(index), part(new.table))

    score = over(decide, (0, 2, 0))(learner, lanes, packed.rest)
    value, grad = over(now.slope)(score)
    teach = over(learn, (0, 2, 0, 0, 0, 0), Packed(2, 0))
    new = teach(learner, lanes, packed.rest, score, value, grad)
    table = lax.fori_loop(0, now.last - now.first, write, packed.table)
    return Packed(table, new.rest), score, now.room


def gathered(table: Array, index: Int[Array, " L"]) -> Array:
    if index.size == 1:
        return lax.dynamic_index_in_dim(table, index[0])
    return table.at[index].get(mode="promise_in_bounds")


def written(table: Array, index: Int[Array, " L"], new: Array) -> Array:
    """Write one slice per coordinate: XLA does this in place, but copies for a scatter."""
    for lane in range(index.size):
        table = lax.dynamic_update_index_in_dim(table, new[lane], index[lane], 0)
    return table


def _along(loss: Partial, score: Array, x: Array, w: Array, v: Array) -> Array:
    """The loss of a round as a function of the decision on the coordinates of one block."""
    return loss(score + jnp.sum((v - w) * x, -1))
