r"""Play sparse rows at the cost of their non-zeros, with the code of the dense learner.

If coordinates interact only through the score, and a coordinate with zero gradient keeps its state,
a round needs only the coordinates of its row. So the state is a table with one row per coordinate.
The engine gathers the rows of the table that a round needs, plays the dense learner on that short
vector, and writes the rows back. In a sweep a row of the table holds the numbers of all
configurations, so one gather serves all of them. `olx.engine.forms` has the forms of a round.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PyTree

from olx._cache import cached
from olx.core import Learner, Loss, Rounds
from olx.engine.feed import Plan
from olx.engine.forms import Form, Round, adding, block_by_block, whole_row
from olx.engine.game import Game
from olx.engine.kernel import Program
from olx.engine.lanes import lane_by_lane
from olx.engine.loop import alone, at, over_rounds
from olx.engine.lumped import lumped
from olx.engine.protocol import Seen, Watch
from olx.engine.refresh import refreshing
from olx.engine.shows import Shows
from olx.engine.sizes import by_size
from olx.engine.table import AXES, Layout, Packed, state_of
from olx.facts import AddsContext, Linear, Refreshed
from olx.streams.sparse_rows import LANES

SIZED = {form: by_size(form) for form in (whole_row, refreshing, lumped)}


def form_of(learner: Learner, layout: Layout, batched: bool) -> Form:
    """The form in which the engine plays `learner`."""
    if layout.lumps:
        return SIZED[lumped]
    if isinstance(learner.facts.adds, AddsContext) and len(layout.axes) == 1:
        return adding
    if isinstance(learner.facts.coordinates, Refreshed):
        return SIZED[refreshing]
    if isinstance(learner.facts.coordinates, Linear):
        return lane_by_lane if batched else block_by_block
    return SIZED[whole_row]


def shown_by(form: Form, game: Game, state: PyTree, plan: Plan, leaves: tuple[int, ...]) -> Shows:
    """Whether the row shows in a round of this form: some sum the products of all its entries.

    The rows must stay as they are until the round was played.
    """
    sums = form in (adding, block_by_block, lane_by_lane)
    if sums and plan.owned and 0 in leaves:
        return Shows(frozenset([0]), ("action",))
    return Shows()


@cached
def sparse_program(
    watch: Watch, layout: Layout, form: Form, batched: bool, share: Callable | None = None
) -> Program:
    """Play a learner, or a batch of learners, on a chunk of sparse rows."""
    over = jax.vmap if batched else alone
    return Program(functools.partial(_play, form, over, watch, layout), share=share)


def _play(
    form: Form,
    over: Callable,
    watch: Watch,
    layout: Layout,
    packed: Packed,
    learner: Learner,
    loss: Loss,
    rounds: Rounds,
    span: Int[Array, "2"] | None,
) -> tuple[Packed, Seen]:
    """The state after the rounds of `span`, and the output of each round."""
    rows, table = rounds.context, packed.table

    def one(carry: tuple[Packed, Array], i: Int[Array, ""]) -> tuple[tuple[Packed, Array], Seen]:
        packed, room = carry
        weight = 1.0 if rounds.weight is None else at(rounds.weight, i)
        row = rows, at(rows.first, i), at(rows.last, i), room
        now = Round(loss, at(rounds.outcome, i), weight, *row)

        def see(table: Array, rest: tuple, whole: tuple, score: Array) -> Seen:
            return watch.see(state_of(layout, table[:-1], rest, whole), now.feedback(score))

        new, score, room = form(over, layout, packed, learner, now)
        return (new, room), over(see, (*AXES, 0))(*packed, score)

    size = rows.widest.size * LANES if form is lane_by_lane else 1
    room = jnp.zeros((size, *table.shape[1:]), table.dtype)
    (packed, _), out = over_rounds(one, (packed, room), span, rows.first.shape[0])
    return packed, out
