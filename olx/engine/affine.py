"""Play affine learners as linear ones, on rows with a feature that is always 1.

All fast ways of the engine then apply, and sparse rows. The state is the same. A record or a
measure could see the longer row, so such runs are played as they are.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from olx.core import Learner, Rounds
from olx.engine.protocol import Watch
from olx.frameworks.affine import as_linear, is_affine
from olx.record import actions
from olx.streams.intercept import appended
from olx.streams.judge import check_iterable, check_rounds
from olx.streams.sparse_rows import SparseRows


def unfolded(
    owner: str, learner: Learner, rounds: Rounds | Iterable[Rounds], watch: Watch
) -> tuple[Learner, Rounds | Iterable[Rounds]]:
    """The learner and its rounds, as a linear learner where that is the same."""
    if not is_affine(learner) or watch.record not in (None, actions) or watch.measure is not None:
        return learner, rounds
    check_iterable(owner, rounds)
    if isinstance(rounds, Rounds):
        check_rounds(owner, rounds)
        return as_linear(learner), rounds._replace(context=appended(owner, rounds.context))
    return as_linear(learner), _pieces(owner, rounds)


def unfolded_rows(owner: str, learner: Learner, rows: Any) -> tuple[Learner, Any]:
    """The same for the sparse rows of a prediction."""
    if not is_affine(learner) or not isinstance(rows, SparseRows):
        return learner, rows
    return as_linear(learner), appended(owner, rows)


def _pieces(owner: str, rounds: Iterable[Rounds]) -> Iterator[Rounds]:
    for piece in rounds:
        check_rounds(owner, piece)
        yield piece._replace(context=appended(owner, piece.context))
