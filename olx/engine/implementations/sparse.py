"""Play sparse rows at the cost of their non-zeros, with the code of the dense learner.

If coordinates interact only through the score, and a coordinate with zero gradient keeps its state,
a round needs only the coordinates of its row. So the state is a table with one row per coordinate.
The engine gathers the rows of the table that a round needs, plays the dense learner on that short
vector, and writes the rows back. In a sweep a row of the table holds the numbers of all
configurations, so one gather serves all of them. `sparse_rounds` has the forms of a round,
`sparse_aggregate` the form for learners that use a sum over all coordinates.
"""

# Strict, but for what a tree holds: `PyTree` is of no known type.
# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from olx._cache import cached
from olx.core import Learner, Loss, Rounds
from olx.engine import tuning
from olx.engine.chunks import Plan
from olx.engine.compile import Program, alone, at, over_rounds
from olx.engine.finite import Visible
from olx.engine.game import Game
from olx.engine.implementations.base import Implementation
from olx.engine.implementations.dense import spread
from olx.engine.implementations.sparse_aggregate import aggregate
from olx.engine.implementations.sparse_rounds import (
    Form,
    Round,
    add_multiple,
    by_size,
    coordinate_by_coordinate,
    lane_by_lane,
    whole_row,
    with_refresh,
)
from olx.engine.round import Output, Recorder
from olx.engine.sparse_chunks import LANES
from olx.engine.sparse_layout import AXES, Layout, Packed, state_of
from olx.facts import AddsContext, Linear, Refreshed


def _visible(game: Game, plan: Plan, candidates: tuple[int, ...]) -> Visible:
    """Whether the row shows in a round that sums the products of all its entries.

    The rows must stay as they are until the round was played.
    """
    return Visible(frozenset([0]), ("action",)) if plan.owned and 0 in candidates else Visible()


def _hidden(*_: object) -> Visible:
    return Visible()


@cached
def sparse_program(
    forms: tuple[Form, Form], recorder: Recorder, layout: Layout, batched: bool, devices: int
) -> Program:
    """Play a learner, or a batch of learners, on a chunk of sparse rows.

    forms: of a round of one learner, and of a batch.
    """
    over = jax.vmap if batched else alone
    play = functools.partial(_play, forms[batched], over, recorder, layout)
    return Program(play, share=spread(devices, AXES), trees=True)


def _play(
    form: Form,
    over: Callable[..., Any],
    recorder: Recorder,
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
        row = rows, at(rows.pointers, i), at(rows.pointers, i + 1), room
        now = Round(loss, at(rounds.outcome, i), weight, *row)

        def see(
            table: Array, rest: tuple[Any, ...], whole: tuple[Any, ...], score: Array
        ) -> Output:
            return recorder.output(state_of(layout, table[:-1], rest, whole), now.feedback(score))

        new, score, room = form(over, layout, packed, learner, now)
        return (new, room), over(see, (*AXES, 0))(*packed, score)

    size = rows.widest.size * LANES if form is lane_by_lane else 1
    room = jnp.zeros((size, *table.shape[1:]), table.dtype)
    capacity = rows.pointers.shape[0] - 1
    (packed, _), out = over_rounds(one, (packed, room), span, capacity, long=False)
    return packed, out


def _sparse(
    name: str,
    cannot: Callable[[Learner, Layout], str],
    form: Form,
    batched: Form | None = None,
    visible: Callable[..., Visible] = _hidden,
) -> Implementation:
    def reason(game: Game) -> str:
        assert game.layout is not None  # the rows are sparse
        return cannot(game.numbers.learner, game.layout)

    program = functools.partial(sparse_program, (form, batched or form))
    return Implementation(
        name, program, visible, sparse=True, cannot=reason, least=lambda: tuning.SHARE_SPARSE
    )


def _no_aggregate(learner: Learner, layout: Layout) -> str:
    return "" if layout.aggregates else "the learner states no sum over all coordinates"


def _whole(layout: Layout) -> str:
    return "the learner uses a sum over all coordinates" if layout.aggregates else ""


_NOT_STATED = "the learner does not state that an update adds a multiple of the row"


def _no_addition(learner: Learner, layout: Layout) -> str:
    adds = isinstance(learner.facts.adds, AddsContext) and len(layout.axes) == 1
    return _whole(layout) or ("" if adds else _NOT_STATED)


def _no_refresh(learner: Learner, layout: Layout) -> str:
    refreshed = isinstance(learner.facts.coordinates, Refreshed)
    return _whole(layout) or ("" if refreshed else "the learner has no refresh")


def _not_linear(learner: Learner, layout: Layout) -> str:
    linear = isinstance(learner.facts.coordinates, Linear)
    return _whole(layout) or ("" if linear else "the score is no product with a separable decision")


def _refresh(learner: Learner, layout: Layout) -> str:
    refreshed = isinstance(learner.facts.coordinates, Refreshed)
    return _whole(layout) or ("a refresh would reach the row alone" if refreshed else "")


SPARSE = (
    _sparse("sparse_aggregate", _no_aggregate, by_size(aggregate)),
    _sparse("sparse_addition", _no_addition, add_multiple, visible=_visible),
    _sparse("sparse_refresh", _no_refresh, by_size(with_refresh)),
    _sparse("sparse_coordinates", _not_linear, coordinate_by_coordinate, lane_by_lane, _visible),
    _sparse("sparse_rows", _refresh, by_size(whole_row)),
)
