"""Play a batch of learners on a part of the stream: their total losses, and sums beside them."""

from collections.abc import Callable

from jaxtyping import PyTree

from olx.core import Learner, Loss, Rounds, Run
from olx.engine.arguments import check_batch
from olx.engine.execute import Options, execute
from olx.engine.game import game_of
from olx.engine.numbers import numbers_of
from olx.engine.round import recorder_of
from olx.keep import totals


def paid(
    learners: Learner,
    loss: Loss,
    rounds: Rounds,
    params: PyTree,
    *,
    measure: Callable | None = None,
    state: PyTree = None,
) -> Run:
    """`olx.sweep` that keeps totals only."""
    numbers = numbers_of(learners, loss, check_batch, stacked=True)
    recorder = recorder_of(None, measure, totals)
    game = game_of("tune", numbers, rounds, params, recorder, state)
    return execute(game, Options(totals, progress=False))
