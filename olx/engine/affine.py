"""Play affine learners as linear ones, on rows with a feature that is always 1.

All fast ways of the engine then apply, and sparse rows. The state is the same. A record or a
measure could see the longer row, so such runs are played as they are.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import numpy as np

from olx.core import Learner, Rounds
from olx.engine.game import Known, taken_apart
from olx.engine.mapped import Window
from olx.engine.protocol import Watch
from olx.frameworks.affine import as_linear, is_affine
from olx.record import actions
from olx.streams.intercept import appended
from olx.streams.judge import check_iterable, check_rounds
from olx.streams.sparse_rows import SparseRows

_COPIED = 1 << 28  # bytes; longer rows of more than this are made in pieces
_PART = 1 << 24  # bytes per piece


def unfolded(
    owner: str,
    game: Known,
    rounds: Rounds | Iterable[Rounds],
    watch: Watch,
    arrange: Callable[[list], list] | None = None,
) -> tuple[Known, Rounds | Iterable[Rounds]]:
    """The game and its rounds, as those of a linear learner where that is the same.

    arrange: changes the leaves of the learner, as for `known`.
    """
    seen = watch.record not in (None, actions) or watch.measure is not None
    if seen or not is_affine(game.learner):
        return game, rounds
    game = taken_apart(owner, as_linear(game.learner), game.loss, arrange)
    check_iterable(owner, rounds)
    if isinstance(rounds, Rounds):
        check_rounds(owner, rounds)
        if not isinstance(rounds.context, np.ndarray) or rounds.context.nbytes <= _COPIED:
            return game, rounds._replace(context=appended(owner, rounds.context))
        rounds = _parts(rounds)
    return game, _pieces(owner, rounds)


def unfolded_rows(owner: str, learner: Learner, rows: Any) -> tuple[Learner, Any]:
    """The same for the sparse rows of a prediction."""
    if not is_affine(learner) or not isinstance(rows, SparseRows):
        return learner, rows
    return as_linear(learner), appended(owner, rows)


def _parts(rounds: Rounds) -> Iterator[Rounds]:
    """The rounds in pieces: a longer row is a copy, and there may be no memory for all of them."""
    length = len(rounds.context)
    step = max(1, _PART * length // rounds.context.nbytes)
    with Window(rounds) as window:
        for low in range(0, length, step):
            window.move(low, low, min(low + step, length))
            yield jax.tree.map(lambda leaf, rows=slice(low, low + step): leaf[rows], rounds)


def _pieces(owner: str, rounds: Iterable[Rounds]) -> Iterator[Rounds]:
    for piece in rounds:
        check_rounds(owner, piece)
        yield piece._replace(context=appended(owner, piece.context))
