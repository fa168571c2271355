"""What the engine knows of an implementation: one way to play a game.

`rollout` is the definition of a game, and an implementation gives the same numbers up to the order
of sums. A new one is a file with one value of this type, and an entry in `IMPLEMENTATIONS`.
"""

# Strict, but for what a tree holds: `PyTree` is of no known type.
# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from typing import NamedTuple

from olx.engine.chunks import Plan
from olx.engine.compile import Program
from olx.engine.finite import Visible
from olx.engine.game import Game
from olx.engine.round import Recorder
from olx.engine.sparse_layout import Layout

Reason = Callable[[Game], str]  # in words; empty if there is none


class Implementation(NamedTuple):
    """One way to play the rounds of a chunk.

    The reasons are asked before every run, so they only compare facts and shapes.
    """

    name: str
    program: Callable[[Recorder, Layout | None, bool, int], Program]
    """(recorder, layout, whether learners are stacked, devices) -> a `Program`, the same object for
    the same arguments (`olx._cache.cached`). Its function takes (state, learner, loss, rounds,
    span) and gives the new state and an `Output` with one row per round of the chunk; rounds
    outside `span` are not played, and their rows are not read."""
    visible: Callable[[Game, Plan, tuple[int, ...]], Visible]
    """(game, plan, leaves of the rounds) -> which of them need no check before they are played.
    `Visible()` is always right; other answers save a pass over the rows, and then `recorder.fields`
    names what `Output.nonfinite` must watch."""
    sparse: bool = False  # whether the rows are sparse
    sweeps: bool = False  # whether it plays batches of learners only
    cannot: Reason | None = None  # why else it gives no right answer
    slower: Reason | None = None  # why another one should be taken
    backend: str = ""  # that it is made for, as JAX names it; any if empty. Others: by name only
    least: Callable[[], int] = lambda: 1  # configurations per share; see `tuning.SHARE_DENSE`
