"""The forms in which a round of sparse rows is played.

- `add_multiple`: an update adds a multiple of the row. One loop over the blocks of the row computes
  the score, a second loop adds the multiple, entry by entry.
- `coordinate_by_coordinate`: any other `linear` learner, alone. The second loop calls the update of
  the learner. To compute the rows of a block and then to write them would take longer: XLA joins
  the columns of several rows by scalar code.
- `lane_by_lane`: a batch of them. One coordinate of all configurations fills the SIMD lanes. A
  first loop copies the rows of the table that the round needs into one buffer, and adds up the
  scores. A second loop plays the update on the copies and writes each leaf back to its columns. XLA
  then updates the table in place, with one vectorized loop per leaf. If an update read the table
  that it writes, XLA would copy single numbers, or even the whole table.
- `whole_row`: a predictor that uses the whole row, such as its norm. It gets a row of fixed length.
  One length for all rows would be that of the widest row, and in text the widest row is often a
  hundred times as wide as the others. So there are a few sizes, each some times the one before, and
  a round uses the smallest one that holds its row (`by_size`). The choice is made by loops of one
  step or none: they work in place and inside one kernel.

A refresh is a loop outside `jax.vmap`, which has no step unless a refresh is due: `jax.vmap` would
turn the `lax.cond` of `Learner.update` into a computation of both branches in every round.
"""

# Strict, but for what a tree holds: `PyTree` is of no known type.
# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Int, PyTree

from olx.core import Feedback, Learner, Loss, Scalar, without_refresh
from olx.engine import tuning
from olx.engine.round import feedback_of, loss_of_action, where_due
from olx.engine.sparse_chunks import LANES, Entries
from olx.engine.sparse_layout import Layout, Packed, columns_of, rows_of, state_of
from olx.facts import AddsContext, Linear

Form = Callable[..., tuple[Packed, Array, Array]]  # the new table, the score, and the room


class Round(NamedTuple):
    """The data of a round: its loss, outcome and weight, and its row in a chunk."""

    loss: Loss
    outcome: PyTree
    weight: Scalar
    rows: Entries
    first: Int[Array, ""]  # the first entry of the row
    last: Int[Array, ""]  # one past its last entry
    room: Array  # memory for copies of rows of the table; a form may overwrite it

    def feedback(self, score: Array, context: PyTree = None) -> Feedback:
        return feedback_of(self.loss, context, score, self.outcome, self.weight)

    def slope(self, score: Array) -> tuple[Array, Array]:
        """The value of the loss and its slope."""
        feedback = self.feedback(score)
        return feedback.value, feedback.grad

    @property
    def blocks(self) -> Int[Array, ""]:
        """The number of blocks of the row."""
        return -(-(self.last - self.first) // LANES)

    def row(self, nothing: int) -> tuple[Array, Array]:
        """The indices and values of the row, padded to the widest one."""
        return self.rows.row(self.first, self.last, nothing)

    def sum_blocks(self, products: Callable[[Array, Array], Array]) -> Array:
        """The sum of `products(indices, values)` over the row; their last axis is that of entries.

        The last block also reads entries after the row. Their products are not added.
        """
        size = 2 * LANES  # faster than one sum per lane
        block = lambda start: products(*self.rows.part(start, size))
        add = lambda carry: (carry[0] + size, carry[1] + block(carry[0]))
        empty = jnp.zeros_like(jax.eval_shape(block, self.first))
        whole = self._whole_blocks(self.last, size)
        _, sums = lax.while_loop(lambda carry: carry[0] < whole, add, (self.first, empty))
        own = jnp.arange(size, dtype=whole.dtype) < self.last - whole
        return jnp.sum(sums + jnp.where(own, block(whole), 0), -1)

    def _whole_blocks(self, stop: Int[Array, ""], size: int) -> Int[Array, ""]:
        """One past the last entry of the last whole block before `stop`; `size` is a power of 2."""
        return stop - ((stop - self.first) & (size - 1))

    def over_entries(
        self,
        body: Callable[[Array, Array, PyTree], PyTree],
        carry: PyTree,
        moves: Bool[Array, ""] | bool = True,
    ) -> PyTree:
        """`body(index, value, carry)` for each entry in order; for none if nothing `moves`.

        A step of the loop is a block of entries: it stores each array that the loop uses.
        """

        def block(loop: tuple[Array, PyTree]) -> tuple[Array, PyTree]:
            start, carry = loop
            index, x = self.rows.part(start, LANES)
            for lane in range(LANES):
                carry = body(index[lane], x[lane], carry)
            return start + LANES, carry

        def entry(start: Int[Array, ""], carry: PyTree) -> PyTree:
            index, x = self.rows.part(start, 1)
            return body(index[0], x[0], carry)

        stop = jnp.where(moves, self.last, self.first)
        whole = self._whole_blocks(stop, LANES)
        _, carry = lax.while_loop(lambda loop: loop[0] < whole, block, (self.first, carry))
        return lax.fori_loop(whole, stop, entry, carry)


def add_multiple(
    over: Callable[..., PyTree], layout: Layout, packed: Packed, learner: Learner, now: Round
) -> tuple[Packed, Array, Array]:
    """A round of a learner that adds a multiple of the row: the new table, and the score."""
    batched, (_, x) = over is jax.vmap, now.row(0)

    def learn(learner: Learner, product: Array) -> tuple[Array, Array]:
        adds = learner.facts.adds
        assert isinstance(adds, AddsContext)  # checked by `form_of`
        score = adds.score(learner.hparams, product)
        a = adds.coefficient_fn(learner.hparams, now.feedback(score, x))
        return score, jnp.where(jnp.asarray(now.weight) == 0, jnp.zeros_like(score), a)

    def products(index: Array, x: Array) -> Array:
        return gather_rows(packed.table, index).reshape(-1) * x

    def add(index: Array, x: Array, sums: Array) -> Array:
        return sums + lax.dynamic_index_in_dim(packed.table, index) * x

    def step(index: Array, x: Array, table: Array) -> Array:
        old = lax.dynamic_index_in_dim(table, index)
        new = old + multiple * x  # same shape as `old`, so XLA updates in place
        return lax.dynamic_update_index_in_dim(table, new, index, 0)

    one = packed.table[:1]
    if one.size == 1:  # entries fill the SIMD lanes, else the numbers of an entry do
        sums = now.sum_blocks(products).reshape(one.shape)
    else:
        sums = now.over_entries(add, jnp.zeros_like(one))
    product = (sums[0].T if batched else sums[0]).reshape(-1, *layout.others[0])
    score, a = over(learn)(learner, product if batched else product[0])
    multiple = (a.reshape(len(a), -1).T if batched else a).reshape(sums.shape)
    table = now.over_entries(step, packed.table, jnp.any(a != 0))
    return Packed(table, packed.rest), score, now.room


def coordinate_by_coordinate(
    over: Callable[..., PyTree], layout: Layout, packed: Packed, learner: Learner, now: Round
) -> tuple[Packed, Array, Array]:
    """A round of a `linear` learner, alone: the new table, and the score."""
    inner = inner_of(learner)

    def products(index: Array, x: Array) -> Array:
        lanes = gather_rows(packed.table, index)
        return inner.predict(state_of(layout, lanes, packed.rest), x) * x

    def learn(row: Array, x: Array) -> Packed:
        state = state_of(layout, row, packed.rest)
        return rows_of(layout, learn_block(inner, state, now, score, value, slope, x[None]))

    def step(index: Array, x: Array, table: Array) -> Array:
        new = learn(lax.dynamic_index_in_dim(table, index), x).table
        return lax.dynamic_update_index_in_dim(table, new, index, 0)

    score = now.sum_blocks(products)
    value, slope = now.slope(score)
    table = now.over_entries(step, packed.table, jnp.any(slope != 0))
    rest = learn(packed.table[:1], now.rows.values[0]).rest  # a clock, for all coordinates
    return Packed(table, rest), score, now.room


def inner_of(learner: Learner) -> Learner:
    """The point learner of a `linear` learner."""
    assert isinstance(learner.facts.coordinates, Linear)  # checked by `form_of`
    return learner.facts.coordinates.inner_fn(learner.hparams)


def learn_block(
    inner: Learner, state: PyTree, now: Round, score: Array, value: Array, slope: Array, x: Array
) -> PyTree:
    """The state of the inner learner on some coordinates, after the round."""
    w = inner.predict(state, x)
    loss = Partial(_along, loss_of_action(now.loss, now.outcome), score, x, w)
    grad = jnp.asarray(slope)[..., None] * x
    return inner.update(state, Feedback(x, w, now.outcome, loss, value, grad, now.weight))


def whole_row(
    over: Callable[..., PyTree], layout: Layout, packed: Packed, learner: Learner, now: Round
) -> tuple[Packed, Array, Array]:
    """A round of a predictor that uses its whole row: the new table, and the score."""
    index, x = now.row(packed.table.shape[0] - 1)
    lanes = gather_rows(packed.table, index)

    def decide(learner: Learner, lanes: Array, rest: tuple[PyTree, ...]) -> Array:
        return learner.predict(state_of(layout, lanes, rest), x)

    def learn(
        learner: Learner,
        lanes: Array,
        rest: tuple[PyTree, ...],
        score: Array,
        value: Array,
        grad: Array,
    ) -> Packed:
        loss = loss_of_action(now.loss, now.outcome)
        seen = Feedback(x, score, now.outcome, loss, value, grad, now.weight)
        return rows_of(layout, without_refresh(learner).update(state_of(layout, lanes, rest), seen))

    def write(block: Int[Array, ""], table: Array) -> Array:
        part = lambda leaf: lax.dynamic_slice_in_dim(leaf, block * LANES, LANES)
        return write_rows(table, part(index), part(new.table))

    score = over(decide, (0, 2, 0))(learner, lanes, packed.rest)
    value, grad = over(now.slope)(score)
    teach = over(learn, (0, 2, 0, 0, 0, 0), Packed(2, 0))
    new = teach(learner, lanes, packed.rest, score, value, grad)
    table = lax.fori_loop(0, now.blocks, write, packed.table)
    return Packed(table, new.rest), score, now.room


def gather_rows(table: Array, index: Int[Array, " L"]) -> Array:
    if index.size == 1:
        return lax.dynamic_index_in_dim(table, index[0])
    return table.at[index].get(mode="promise_in_bounds")


def write_rows(table: Array, index: Int[Array, " L"], new: Array) -> Array:
    """Write one slice per coordinate: XLA does this in place, but copies for a scatter."""
    for lane in range(index.size):
        table = lax.dynamic_update_index_in_dim(table, new[lane], index[lane], 0)
    return table


def _along(loss: Partial, score: Array, x: Array, w: Array, v: Array) -> Array:
    """The loss of a round as a function of the decision on the coordinates of one block."""
    return loss(score + jnp.sum((v - w) * x, -1))


def lane_by_lane(
    over: Callable[..., PyTree], layout: Layout, packed: Packed, learner: Learner, now: Round
) -> tuple[Packed, Array, Array]:
    """The new table, the score, and the buffer of copies."""
    inner, start = inner_of(learner), jnp.zeros_like(now.first)
    one = jnp.where(now.first < 0, 2, 1).astype(packed.table.dtype)

    def decide(inner: Learner, row: Array, rest: tuple[PyTree, ...], x: Array) -> Array:
        return inner.predict(state_of(layout, row, rest), x) * x

    def product(index: Int[Array, ""], x: Array) -> Array:
        row = lax.dynamic_index_in_dim(packed.table, index)
        return over(decide, (0, 2, 0, None))(inner, row, packed.rest, x[None])

    def gather(
        index: Array, x: Array, carry: tuple[Array, Array, Array]
    ) -> tuple[Array, Array, Array]:
        place, sums, copies = carry
        row = lax.dynamic_index_in_dim(packed.table, index)
        # The compiler does not know that `one` is 1. It would not vectorize a plain copy.
        copies = lax.dynamic_update_index_in_dim(copies, row * one, place, 0)
        return place + 1, sums + product(index, x), copies

    def learn(
        inner: Learner,
        row: Array,
        rest: tuple[PyTree, ...],
        score: Array,
        value: Array,
        slope: Array,
        x: Array,
    ) -> Packed:
        state = state_of(layout, row, rest)
        return columns_of(layout, learn_block(inner, state, now, score, value, slope, x))

    def update(place: Int[Array, ""], x: Array) -> Packed:
        row = lax.dynamic_index_in_dim(copies, place)
        teach = over(learn, (0, 2, 0, 0, 0, 0, None), Packed(2, 0))
        return teach(inner, row, packed.rest, score, value, slope, x)

    def write(place: Int[Array, ""], table: Array) -> Array:
        (index, x), column = now.rows.part(now.first + place, 1), 0
        for leaf in update(place, x).table:
            where = index[0].astype(start.dtype), start + column, start
            table = lax.dynamic_update_slice(table, leaf, where)
            column += leaf.shape[1]
        return table

    x = now.rows.values[:1]
    empty = jnp.zeros_like(jax.eval_shape(product, start, x[0]))
    _, sums, copies = now.over_entries(gather, (start, empty, now.room))
    score = sums[..., 0]
    value, slope = over(now.slope)(score)
    count = jnp.where(jnp.any(slope != 0), now.last - now.first, 0)
    table = lax.fori_loop(0, count, write, packed.table)
    return Packed(table, update(start, x).rest), score, copies


def sizes(widest: int) -> list[int]:
    """The numbers of blocks to which rows are padded; the last is `widest`."""
    found, size = [], tuning.ROW_BLOCKS
    while tuning.ROW_WORTH * size <= widest:
        found.append(size)
        size *= tuning.ROW_GROWTH
    return [*found, widest]


def by_size(form: Form) -> Form:
    """The same form, on rows padded to one of a few sizes."""

    def played(
        over: Callable[..., PyTree], layout: Layout, packed: Packed, learner: Learner, now: Round
    ) -> tuple[Packed, Array, Array]:
        widest, known = now.rows.widest, sizes(now.rows.widest.size)
        if len(known) == 1:
            return form(over, layout, packed, learner, now)
        length = now.blocks

        def at(size: int, packed: Packed, room: Array) -> tuple[Packed, Array, Array]:
            rows = now.rows._replace(widest=widest[:size])
            return form(over, layout, packed, learner, now._replace(rows=rows, room=room))

        def once(
            size: int, _: Int[Array, ""], carry: tuple[PyTree, ...]
        ) -> tuple[Packed, Array, Array]:
            return at(size, carry[0], carry[2])

        score = jax.eval_shape(lambda: at(known[0], packed, now.room))[1]
        carry = packed, jnp.zeros(score.shape, score.dtype), now.room
        for below, size in zip([-1, *known[:-1]], known, strict=True):
            fits = (length > below) & (length <= size)
            carry = lax.fori_loop(0, fits.astype(int), jax.tree_util.Partial(once, size), carry)
        return carry

    return played


def with_refresh(
    over: Callable[..., PyTree], layout: Layout, packed: Packed, learner: Learner, now: Round
) -> tuple[Packed, Array, Array]:
    """A round of a learner that is `Refreshed`: the new table, and the score.

    The refresh acts on each coordinate alone, so it is made on some rows of the table at a time.
    """
    own = learner.facts.refresh
    assert own is not None  # `Facts` has checked
    new, score, room = whole_row(over, layout, packed, learner, now)
    count = new.table.shape[0]
    size = min(LANES, count)

    def asks(learner: Learner, row: Array, rest: tuple[PyTree, ...]) -> Array:
        return own.due(learner.hparams, state_of(layout, row, rest), now.weight)

    def better(learner: Learner, rows: Array, rest: tuple[PyTree, ...], sums: PyTree) -> Packed:
        state = state_of(layout, rows, rest)
        return rows_of(layout, own.apply_fn(learner.hparams, state, sums))

    def sums_of(learner: Learner, rows: Array, rest: tuple[PyTree, ...]) -> PyTree:
        return own.sums(learner.hparams, state_of(layout, rows, rest))

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
        rest = jax.tree.map(lambda new, old: where_due(due, new, old), part.rest, new.rest)
        return Packed(
            lax.dynamic_update_slice_in_dim(carry.table, rows, numbers.reshape(-1)[0], 0), rest
        )

    due = over(asks, (0, 2, 0))(learner, new.table[:1], new.rest)
    blocks = jnp.where(jnp.any(due), -(-count // size), 0)
    shapes = jax.eval_shape(over(sums_of, (0, 2, 0)), learner, new.table[:1], new.rest)
    empty = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    total = lax.fori_loop(0, blocks, add, empty)
    return lax.fori_loop(0, blocks, change, new), score, room
