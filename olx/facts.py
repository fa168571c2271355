"""Facts about a learner that the engine uses to play it faster; `olx.testing` checks them."""

from collections.abc import Callable
from typing import Any, NamedTuple


class AddsGradient(NamedTuple):
    """A point learner whose state is its decision, one array; an update adds a * gradient."""

    coefficient_fn: Callable[..., Any]  # (hparams, feedback) -> a


class AddsContext(NamedTuple):
    """A predictor whose state is one array w and whose score is <w, x>; an update adds a * x."""

    coefficient_fn: Callable[..., Any]  # (hparams, feedback) -> a


class Refresh(NamedTuple):
    """A change of coordinates: the same learner, in a state that rounds less.

    `due_fn` uses only leaves that are not per coordinate. `apply_fn` acts on each coordinate alone,
    given the other leaves.
    """

    due_fn: Callable[..., Any]  # (hparams, state) -> whether to change now
    apply_fn: Callable[..., Any]  # (hparams, state) -> state


class Facts(NamedTuple):
    """The facts that a learner states about itself; none by default.

    adds: what an update adds to the state, if that is a multiple of one vector. The engine then
        plays blocks of rounds by matrix products.
    separable: entry i of the next state depends on entry i of the state, of the context and of the
        gradient, on the score, and on norms of the context. An update does not change an entry
        whose gradient or context is zero. The engine then plays sparse rows on their coordinates.
    rowwise: like `separable`, for a point learner whose update may also use sums over coordinates,
        if entries with zero gradient add nothing to them. `linear` of it then plays sparse rows.
    rotates: a predictor whose state is one vector and numbers, and that plays the same in any
        orthogonal basis. Entries where a context is zero then change by one common factor.
    refresh: a change of coordinates that some rounds need after their update.
    """

    adds: AddsGradient | AddsContext | None = None
    separable: bool = False
    rowwise: bool = False
    rotates: bool = False
    refresh: Refresh | None = None
