r"""A round of sparse rows for learners that use a sum over all coordinates, such as a norm.

All coordinates where the row is zero act like one extra coordinate whose term is the sum of their
terms. The engine plays the learner on the coordinates of the row and on this extra coordinate.

- An update multiplies all other coordinates by one factor. The change of the extra coordinate gives
  the factor. It is one number for the whole table, and it is multiplied into the table before it
  becomes too large or too small. For an additive aggregate it is a number to subtract instead.
- The sum of all terms is kept in units of $e^{level}$, by compensated differences. A pass over the
  table computes it again when it has fallen so far that rounding errors of earlier, larger terms
  could be seen, or when it leaves the range of floats.
"""

# Strict, but for what a tree holds: `PyTree` is of no known type.
# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int

from olx import _numeric
from olx.core import Feedback, Learner
from olx.engine import tuning
from olx.engine.implementations.sparse_rounds import Round, gather_rows, write_rows
from olx.engine.round import loss_of_action
from olx.engine.sparse_chunks import LANES
from olx.engine.sparse_layout import AggregateState, Layout, Packed, rows_of, state_of
from olx.facts import Aggregate, HasAggregate


def aggregate(
    over: Callable[..., Any], layout: Layout, packed: Packed, learner: Learner, now: Round
) -> tuple[Packed, Array, Array]:
    """The new table, and the score."""
    nothing = packed.table.shape[0] - 1
    index, x = now.row(nothing)
    if not aggregate_of(learner).zero_adds_nothing and len(index) >= nothing:
        return _whole_table(over, layout, packed, learner, now, index, x)
    packed = _recomputed(over, packed, learner)
    lanes, x = gather_rows(packed.table, index), jnp.append(x, jnp.zeros((), x.dtype))
    used = (
        (index != nothing)[:, None] if aggregate_of(learner).additive else True
    )  # padding has no term

    def terms(aggregate: Aggregate, lanes: Array, whole: AggregateState) -> Array:
        return jnp.where(used, aggregate.term(lanes, whole.level), 0.0)

    def seen_by(learner: Learner, lanes: Array, whole: AggregateState) -> Array:
        """The state on the coordinates of the row and on the extra one for all others."""
        aggregate, total = aggregate_of(learner), whole.total.value
        away = total - jnp.sum(terms(aggregate, lanes, whole))
        least = _least(aggregate, total)
        log = jnp.maximum(jnp.log(jnp.maximum(away, 0.0)), least)
        extra, low = (aggregate.entry(at + whole.level).astype(lanes.dtype) for at in (log, least))
        lanes = jnp.where(used, lanes, low)
        # Of several rows of weights, the first holds the term of all entries of all others.
        last = jnp.where(jnp.arange(lanes.shape[1]) == 0, extra, low)[None]
        return jnp.concatenate([lanes, last]) * whole.scale - whole.shift

    def decide(
        learner: Learner, lanes: Array, rest: tuple[Any, ...], whole: AggregateState
    ) -> Array:
        return learner.predict(state_of(layout, seen_by(learner, lanes, whole), rest), x)

    def learn(
        learner: Learner,
        lanes: Array,
        rest: tuple[Any, ...],
        whole: AggregateState,
        score: Array,
        value: Array,
        grad: Array,
    ):
        old = seen_by(learner, lanes, whole)
        loss = loss_of_action(now.loss, now.outcome)
        feedback = Feedback(x, score, now.outcome, loss, value, grad, now.weight)
        new = rows_of(layout, learner.update(state_of(layout, old, rest), feedback))
        aggregate = aggregate_of(learner)
        scale, shift, folds = _common(aggregate, whole, old[-1, 0], new.table[-1, 0])
        unit, offset = jnp.where(folds, 1.0, scale), jnp.where(folds, 0.0, shift)
        same = (new.table[:-1] == old[:-1]) & (unit == whole.scale) & (offset == whole.shift)
        same |= jnp.logical_not(used)
        rows = (new.table[:-1] + offset) / unit
        rows = jnp.where(same, lanes, rows)  # what did not change keeps its bits
        added, gone = (terms(aggregate, some, whole) for some in (rows, lanes))
        total = _numeric.add(whole.total, jnp.sum(added - gone))
        least = jnp.where(jnp.any(rows != 0), 1.0, 0.0)  # tiny first weights need another level
        peak = jnp.maximum(jnp.maximum(whole.peak, total.value), least)
        peak = jnp.where(folds, jnp.inf, peak)
        whole = AggregateState(unit, offset, total, whole.level, peak)
        return Packed(rows, new.rest, whole), scale / unit, shift - offset

    def fold(_: Int[Array, ""], table: Array) -> Array:
        return table * factor - down

    def write(block: Int[Array, ""], table: Array) -> Array:
        part = lambda leaf: lax.dynamic_slice_in_dim(leaf, block * LANES, LANES)
        return write_rows(table, part(index), part(new.table))

    score = over(decide, (0, 2, 0, 0))(learner, lanes, packed.rest, packed.whole)
    value, grad = over(now.slope)(score)
    teach = over(learn, (0, 2, 0, 0, 0, 0, 0), (Packed(2, 0, 0), 0, 0))
    new, factor, down = teach(learner, lanes, packed.rest, packed.whole, score, value, grad)
    folds = jnp.any((factor != 1) | (down != 0)).astype(int)
    table = lax.fori_loop(0, folds, fold, packed.table)
    table = lax.fori_loop(0, now.blocks, write, table)
    return Packed(table, new.rest, new.whole), score, now.room


def aggregate_of(learner: Learner) -> Aggregate:
    assert isinstance(learner.facts.coordinates, HasAggregate)  # checked by `form_of`
    return learner.facts.coordinates.aggregate_fn(learner.hparams)


def _least(aggregate: Aggregate, total: Array) -> Array:
    """The logarithm of a term that is 0 beside `total`, but whose entry keeps its digits."""
    if aggregate.additive:
        return jnp.log(total) + 2 * jnp.log(jnp.finfo(total.dtype).eps)
    return 1.6 * jnp.log(jnp.finfo(total.dtype).tiny)


def _common(
    aggregate: Aggregate, whole: AggregateState, before: Array, after: Array
) -> tuple[Array, Array, Array]:
    """The new factor and shift of the table, and whether they must be folded into it.

    before, after: the extra coordinate before and after the update.
    """
    if aggregate.additive:
        shift = whole.shift + (before - after)
        far = jnp.abs(aggregate.log_term(shift)) > tuning.SHIFT_MOST
        return whole.scale, shift, jnp.isfinite(shift) & far
    scale = whole.scale * jnp.where(after == before, 1.0, after / before)
    return (
        scale,
        whole.shift,
        jnp.isfinite(scale) & ((scale < tuning.SCALE_LEAST) | (scale > tuning.SCALE_MOST)),
    )


def _recomputed(over: Callable[..., Any], packed: Packed, learner: Learner) -> Packed:
    """The same state; where the sum of all terms is not exact enough, it is computed again."""

    def again(learner: Learner, rows: Array, whole: AggregateState) -> AggregateState:
        top = jnp.max(aggregate_of(learner).log_term(rows))
        level = jnp.where(jnp.isfinite(top), top, 0.0).astype(whole.level.dtype)
        total = jnp.sum(aggregate_of(learner).term(rows, level))
        fresh = AggregateState(whole.scale, whole.shift, _numeric.start(total), level, total)
        return jax.tree.map(lambda new, old: jnp.where(stale(whole), new, old), fresh, whole)

    def change(first: Int[Array, ""], whole: AggregateState) -> AggregateState:
        # `first` is 0; a plain slice would not depend on the step, and XLA moves such things out
        # of the loop, into every round.
        rows = lax.dynamic_slice_in_dim(packed.table, first, packed.table.shape[0] - 1)
        return over(again, (0, 2, 0))(learner, rows, whole)

    due = jnp.any(stale(packed.whole)).astype(int)
    return packed._replace(whole=lax.fori_loop(0, due, change, packed.whole))


def stale(whole: AggregateState) -> Array:
    """Whether the sum of all terms must be computed again; not if it is NaN, for a lost state."""
    total = whole.total.value
    most = float(jnp.finfo(total.dtype).max) ** 0.5
    return (total < tuning.SUM_FALL * whole.peak) | (total > most)


def _whole_table(
    over: Callable[..., Any],
    layout: Layout,
    packed: Packed,
    learner: Learner,
    now: Round,
    *row: Any,
) -> tuple[Packed, Array, Array]:
    """A round on all coordinates, if a row may hold as many: padding would have terms of its own.

    row: the indices and the entries of the row.
    """
    index, entries = row
    put = lambda lane, x: lax.dynamic_update_index_in_dim(x, entries[lane], index[lane], 0)
    x = lax.fori_loop(0, len(index), put, jnp.zeros(packed.table.shape[0], entries.dtype))[:-1]

    def decide(
        learner: Learner, rows: Array, rest: tuple[Any, ...], whole: AggregateState
    ) -> Array:
        return learner.predict(state_of(layout, rows, rest, whole), x)

    def learn(
        learner: Learner,
        rows: Array,
        rest: tuple[Any, ...],
        whole: AggregateState,
        score: Array,
        value: Array,
        grad: Array,
    ):
        loss = loss_of_action(now.loss, now.outcome)
        feedback = Feedback(x, score, now.outcome, loss, value, grad, now.weight)
        new = rows_of(layout, learner.update(state_of(layout, rows, rest, whole), feedback))
        plain = jnp.ones_like(whole.scale), jnp.zeros_like(whole.shift)
        peak = jnp.full_like(whole.peak, jnp.inf)  # the next round computes the sum
        return Packed(new.table, new.rest, AggregateState(*plain, whole.total, whole.level, peak))

    rows = packed.table[:-1]
    score = over(decide, (0, 2, 0, 0))(learner, rows, packed.rest, packed.whole)
    value, grad = over(now.slope)(score)
    teach = over(learn, (0, 2, 0, 0, 0, 0, 0), Packed(2, 0, 0))
    new = teach(learner, rows, packed.rest, packed.whole, score, value, grad)
    table = lax.dynamic_update_slice_in_dim(packed.table, new.table, 0, 0)
    return Packed(table, new.rest, new.whole), score, now.room
