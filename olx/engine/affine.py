"""Rows of an affine learner as those of a linear one: with a feature that is always 1."""

from collections.abc import Iterable, Iterator
from typing import Any

import jax
import numpy as np

from olx.core import Learner, Rounds
from olx.engine import tuning
from olx.engine.memory_map import Readahead
from olx.frameworks.lift import as_linear, is_affine
from olx.streams.arrays import rows_with_ones
from olx.streams.checks import check_iterable, check_rounds
from olx.streams.sparse_rows import SparseRows


def with_ones(rounds: Rounds | Iterable[Rounds]) -> Rounds | Iterable[Rounds]:
    """The rounds with a longer row; those of much memory in pieces."""
    check_iterable(rounds)
    if isinstance(rounds, Rounds):
        check_rounds(rounds)
        if (
            not isinstance(rounds.context, np.ndarray)
            or rounds.context.nbytes <= tuning.LONGER_BYTES
        ):
            return rounds._replace(context=rows_with_ones(rounds.context))
        rounds = _parts(rounds)
    return _pieces(rounds)


def rows_as_linear(learner: Learner, rows: Any) -> tuple[Learner, Any]:
    """A learner and the sparse rows of a prediction, as linear where the learner is affine."""
    if not is_affine(learner) or not isinstance(rows, SparseRows):
        return learner, rows
    return as_linear(learner), rows_with_ones(rows)


def _parts(rounds: Rounds) -> Iterator[Rounds]:
    """The rounds in pieces: a longer row is a copy, and there may be no memory for all of them."""
    length = len(rounds.context)
    step = max(1, tuning.LONGER_PIECE_BYTES * length // rounds.context.nbytes)
    with Readahead(rounds) as window:
        for low in range(0, length, step):
            window.move(low, low, min(low + step, length))
            yield jax.tree.map(lambda leaf, rows=slice(low, low + step): leaf[rows], rounds)


def _pieces(rounds: Iterable[Rounds]) -> Iterator[Rounds]:
    for piece in rounds:
        check_rounds(piece)
        yield piece._replace(context=rows_with_ones(piece.context))
