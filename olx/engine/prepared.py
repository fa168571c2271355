"""Games of a kind that was played before: one chunk, which is planned and chosen only once.

To cut a stream, to choose an implementation and to ask the compiler takes as long as thousands of
rounds of a narrow learner. It depends on structures, shapes and dtypes alone, so it is remembered
by these. What depends on numbers is done for every game: its data is checked, its start is made,
and its rounds are copied into memory of its own.
"""

# Strict, but for what a tree holds: `PyTree` is of no known type.
# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import PyTree

from olx._cache import Recent
from olx._memory import aligned_arrays
from olx._pytree import NOT_KEPT
from olx.core import Rounds, Run
from olx.engine.chunks import Checks, Chunk, Look, fill
from olx.engine.collector import Collector, rounds_of
from olx.engine.device import accelerated
from olx.engine.game import Game
from olx.engine.numbers import arrays_of
from olx.engine.outputs import defer_signals
from olx.engine.threads import threads_of
from olx.engine.view import is_cast, keep_wide, view_of_buffer
from olx.keep import Keep


class Prepared(NamedTuple):
    """How the games of one kind are played."""

    call: Callable[..., PyTree]  # (state, numbers, rounds, span) -> ((state, output), ...)
    kinds: list[tuple[tuple[int, ...], Any]]  # the shapes and dtypes of the leaves of a chunk
    shown: frozenset[int]  # the leaves that are looked at afterwards
    decision: Any  # the dtype of the decision
    compiled: bool  # whether `call` is a compiled program, which takes arrays faster than numbers

    def play(self, game: Game, keep: Keep | None, threads: int | None) -> Run:
        """The run of a game of this kind."""
        if game.batched:
            threads_of(threads)  # which refuses other numbers
        leaves, tree = jax.tree.flatten(game.first)
        count, numbers = leaves[0].shape[0], game.numbers
        rooms = aligned_arrays(self.kinds)
        for room, leaf in zip(rooms, leaves, strict=True):
            fill(room, np.asarray(leaf))
        part = tree.unflatten([room[:count] for room in rooms])
        rounds = tree.unflatten(map(_form, rooms))
        checks = Checks(numbers.needs, game.params, self.shown, self.decision)
        span = np.array([0, count], np.int32)
        with defer_signals(False) as asked:
            checks.before(part, 0)
            own = arrays_of(numbers) if self.compiled else numbers.leaves.numbers
            (state, out), _ = self.call(game.state, own, rounds, span)
            losses = np.asarray(out.sums[0])  # which waits until they are computed
        if asked.by is not None:
            raise asked.error()
        if checks.late:
            Look(checks, part, 0).after([np.all(np.asarray(out.nonfinite))], [losses[:count]])
        if keep is None:
            return Run(
                state, *(rounds_of(one, count, game.batched) for one in (losses, out.records))
            )
        collector = Collector(keep)
        collector.add(Chunk(rounds, span, 0), [out])
        _, trace, curve = collector.result()
        return Run(state, NOT_KEPT, trace, curve=curve)


PREPARED: Recent[Prepared] = Recent()


def kind_of_game(game: Game, progress: bool | None, asked: object) -> tuple[Any, ...] | None:
    """All that says how a game is played; None for games that are not remembered.

    asked: the implementation that is asked for.
    """
    shown = progress or (progress is None and sys.stderr.isatty())
    if shown or game.layout is not None or not isinstance(game.rounds, Rounds) or accelerated():
        return None
    leaves, tree = jax.tree.flatten((game.first, game.params, game.state))
    try:
        kinds = [(type(leaf), leaf.shape, leaf.dtype) for leaf in leaves]
    except AttributeError:  # not an array
        return None
    numbers, wide = game.numbers, jax.config.read("jax_enable_x64")
    player = numbers.leaves.structure, numbers.kinds, numbers.configurations
    kind = *player, tree, *kinds, game.recorder, wide, asked
    try:
        hash(kind)
    except TypeError:  # refused later, if it is not legal
        return None
    return kind


def _form(room: np.ndarray) -> Any:
    """An array as the program takes it."""
    return keep_wide(view_of_buffer(room)) if is_cast(room.dtype) else room
