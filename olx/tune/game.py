"""Play a batch of learners on a part of the stream: their total losses, and sums beside them."""

from collections.abc import Callable

from jaxtyping import PyTree

from olx.core import Learner, Loss, Rounds, Run
from olx.engine.game import known
from olx.engine.round import recorder_of
from olx.engine.run import check_batch, padded, streams
from olx.keep import totals


def paid(
    owner: str,
    learners: Learner,
    loss: Loss,
    rounds: Rounds,
    params: PyTree,
    *,
    measure: Callable | None = None,
    state: PyTree = None,
) -> Run:
    """`olx.sweep` that keeps totals only, in the name of `owner`."""
    game = known(owner, learners, loss, check_batch, padded)
    watch = recorder_of(owner, None, measure, totals)
    return streams(
        game,
        rounds,
        params,
        watch,
        owner=owner,
        state=state,
        keep=totals,
        progress=False,
        checkpoint=None,
        explain=False,
    )
