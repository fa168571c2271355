"""Play sparse rows at the cost of their non-zeros, with the code of the dense learner.

If coordinates interact only through the score, and a coordinate with zero gradient keeps its state,
a round needs only the coordinates of its row. So the state is a table with one row per coordinate.
The engine gathers the rows of the table that a round needs, plays the dense learner on that short
vector, and writes the rows back. In a sweep a row of the table holds the numbers of all
configurations, so one gather serves all of them. `sparse_rounds` has the forms of a round,
`sparse_aggregate` the form for learners that use a sum over all coordinates.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PyTree

from olx._cache import cached
from olx.core import Learner, Loss, Rounds
from olx.engine.chunks import Plan
from olx.engine.compile import Program, alone, at, over_rounds
from olx.engine.finite import Visible
from olx.engine.game import Game
from olx.engine.implementations.sparse_aggregate import aggregate
from olx.engine.implementations.sparse_layout import AXES, Layout, Packed, state_of
from olx.engine.implementations.sparse_rounds import (
    Form,
    Round,
    add_multiple,
    block_by_block,
    by_size,
    lane_by_lane,
    whole_row,
    with_refresh,
)
from olx.engine.round import Output, Recorder
from olx.facts import AddsContext, Linear, Refreshed
from olx.streams.sparse_rows import LANES

SIZED = {form: by_size(form) for form in (whole_row, with_refresh, aggregate)}


def form_of(learner: Learner, layout: Layout, batched: bool) -> Form:
    """The form in which the engine plays `learner`."""
    if layout.lumps:
        return SIZED[aggregate]
    if isinstance(learner.facts.adds, AddsContext) and len(layout.axes) == 1:
        return add_multiple
    if isinstance(learner.facts.coordinates, Refreshed):
        return SIZED[with_refresh]
    if isinstance(learner.facts.coordinates, Linear):
        return lane_by_lane if batched else block_by_block
    return SIZED[whole_row]


def shown_by(form: Form, game: Game, state: PyTree, plan: Plan, leaves: tuple[int, ...]) -> Visible:
    """Whether the row shows in a round of this form: some sum the products of all its entries.

    The rows must stay as they are until the round was played.
    """
    sums = form in (add_multiple, block_by_block, lane_by_lane)
    if sums and plan.owned and 0 in leaves:
        return Visible(frozenset([0]), ("action",))
    return Visible()


@cached
def sparse_program(
    watch: Recorder, layout: Layout, form: Form, batched: bool, share: Callable | None = None
) -> Program:
    """Play a learner, or a batch of learners, on a chunk of sparse rows."""
    over = jax.vmap if batched else alone
    return Program(functools.partial(_play, form, over, watch, layout), share=share)


def _play(
    form: Form,
    over: Callable,
    watch: Recorder,
    layout: Layout,
    packed: Packed,
    learner: Learner,
    loss: Loss,
    rounds: Rounds,
    span: Int[Array, "2"] | None,
) -> tuple[Packed, Output]:
    """The state after the rounds of `span`, and the output of each round."""
    rows, table = rounds.context, packed.table

    def one(carry: tuple[Packed, Array], i: Int[Array, ""]) -> tuple[tuple[Packed, Array], Output]:
        packed, room = carry
        weight = 1.0 if rounds.weight is None else at(rounds.weight, i)
        row = rows, at(rows.first, i), at(rows.last, i), room
        now = Round(loss, at(rounds.outcome, i), weight, *row)

        def see(table: Array, rest: tuple, whole: tuple, score: Array) -> Output:
            return watch.see(state_of(layout, table[:-1], rest, whole), now.feedback(score))

        new, score, room = form(over, layout, packed, learner, now)
        return (new, room), over(see, (*AXES, 0))(*packed, score)

    size = rows.widest.size * LANES if form is lane_by_lane else 1
    room = jnp.zeros((size, *table.shape[1:]), table.dtype)
    (packed, _), out = over_rounds(one, (packed, room), span, rows.first.shape[0])
    return packed, out
