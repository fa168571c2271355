"""What the engine may exploit about a learner. The kit checks every fact against `rollout`."""

from collections.abc import Callable
from typing import Any, NamedTuple


class AddsGradient(NamedTuple):
    """Of a point learner: its state is one array, its decision; an update adds a * gradient."""

    coefficient_fn: Callable[..., Any]  # (hparams, feedback) -> a


class AddsContext(NamedTuple):
    """Of a predictor: its state is one array w, its score <w, x>; an update adds a * x."""

    coefficient_fn: Callable[..., Any]  # (hparams, feedback) -> a


class Facts(NamedTuple):
    """The facts that a learner states about itself; none by default.

    adds: what an update adds to the state, if that is a multiple of one vector. The engine then
        plays blocks of rounds by matrix products.
    separable: entry i of the next state depends on entry i of the state, of the context and of the
        gradient, on the score, and on norms of the context. An entry whose gradient, or whose
        context, is zero stays as it is. The engine then plays sparse rows on their coordinates.
    rowwise: of a point learner: likewise, but coordinates also meet in sums to which an entry adds
        nothing where its gradient is zero. Inside `linear` it then plays sparse rows.
    rotates: of a predictor: its state is one vector and numbers, and it plays the same in any
        orthogonal basis. Entries where a context is zero then change by one common factor.
    """

    adds: AddsGradient | AddsContext | None = None
    separable: bool = False
    rowwise: bool = False
    rotates: bool = False
