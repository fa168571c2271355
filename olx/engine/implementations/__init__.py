"""The implementations of a game, in the order in which they are tried."""

# Strict, but for what a tree holds: `PyTree` is of no known type.
# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

import difflib

import jax

from olx._refusal import RefusedValue
from olx.engine.game import Game
from olx.engine.implementations.base import Implementation
from olx.engine.implementations.blocks import BLOCKS
from olx.engine.implementations.dense import DENSE, IN_TURN
from olx.engine.implementations.gpu_kernel import GPU_KERNEL
from olx.engine.implementations.sparse import SPARSE

IMPLEMENTATIONS: tuple[Implementation, ...] = (*SPARSE, GPU_KERNEL, BLOCKS, IN_TURN, DENSE)


def choose(game: Game, name: str | None = None, saved: str | None = None) -> Implementation:
    """The first implementation that fits the game; or the one of this name.

    An implementation that is asked for is refused only if it cannot give a right answer.

    saved: the one that a checkpoint was played by, which is taken if it can go on.
    """
    if name is not None:
        return _asked_for(game, name)
    for one in IMPLEMENTATIONS if saved else ():
        if one.name == saved and not why_not(one, game):
            return one
    return next(one for one in IMPLEMENTATIONS if not why_passed_over(one, game))


def why_passed_over(one: Implementation, game: Game) -> str:
    """Why an implementation is not taken unless it is asked for; empty if it is.

    The backend comes first, since a look at a game may trace it.
    """
    backend = jax.default_backend()
    if one.backend not in ("", backend):
        return f"for a {one.backend.upper()}; this is {backend}"
    return why_not(one, game) or why_slow(one, game)


def why_not(one: Implementation, game: Game) -> str:
    """Why an implementation gives no right answer; empty if it does."""
    if one.sparse != (game.layout is not None):
        return "the rows are dense" if one.sparse else "the rows are sparse"
    if one.sweeps and not game.batched:
        return "one learner is played, not a batch"
    return "" if one.cannot is None else one.cannot(game)


def why_slow(one: Implementation, game: Game) -> str:
    """Why another implementation should be taken; empty if it should be this one."""
    return "" if one.slower is None else one.slower(game)


def _asked_for(game: Game, name: str) -> Implementation:
    found = next((one for one in IMPLEMENTATIONS if one.name == name), None)
    if found is None:
        near = difflib.get_close_matches(str(name), [one.name for one in IMPLEMENTATIONS], 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise RefusedValue(
            f"there is no implementation {name!r}; {hint}They are "
            f"{', '.join(one.name for one in IMPLEMENTATIONS)}."
        )
    if reason := why_not(found, game):
        raise RefusedValue(
            f"the implementation {name!r} cannot play this game: {reason}; leave "
            "`implementation` out to take the first that can."
        )
    return found


def table_of(game: Game, used: Implementation) -> list[str]:
    """A line per rewrite of the game, and one per implementation: used, or why not."""
    lines = [f"  {rewrite}" for rewrite in game.rewrites]
    for one in IMPLEMENTATIONS:
        reason = why_passed_over(one, game)
        if one is used:
            says = f"used, by its name or by the checkpoint, though {reason}" if reason else "used"
        else:
            says = reason or "another one comes first"
        lines.append(f"  {one.name:<20}{says}")
    return lines
