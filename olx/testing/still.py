"""A check of `Separable.still`: a coordinate with zero gradient keeps its decision."""

import jax
import numpy as np
from jaxtyping import PyTree

from olx.core import Feedback, Learner, Loss, Rounds
from olx.engine.rollout import rollout
from olx.facts import Linear, Separable
from olx.testing.report import close, tolerance


def check_still(learner: Learner, loss: Loss, rounds: Rounds, params: PyTree) -> None:
    """If the learner inside a `linear` one says that it is still, this is true.

    Entries of the context that are zero have zero gradient. Other rounds must move them, since a
    decision that has never moved may stay where it is for another reason.
    """
    if not isinstance(learner.facts.coordinates, Linear):
        return
    inner = learner.facts.coordinates.inner_fn(learner.hparams)
    stated = inner.facts.coordinates
    if not isinstance(stated, Separable) or not stated.still:
        return

    def decisions(state: PyTree, feedback: Feedback) -> tuple[PyTree, PyTree]:
        return inner.predict(state), inner.predict(state, feedback.context)

    play = lambda rounds: rollout(learner, loss, rounds, params, record=decisions)
    done = jax.jit(play)(rounds)
    alone, seeing = map(np.asarray, done.trace)
    rtol = tolerance(done)
    close(
        "the learner says it is still, but its decision depends on the context", seeing, alone, rtol
    )
    rows = np.asarray(rounds.context)
    rows = rows if rows.ndim == alone.ndim else rows[:, None]  # a row of weights per class
    kept = np.where(rows[:-1] == 0, alone[:-1], alone[1:])
    what = "the learner says it is still, but a decision changes though its gradient is zero"
    close(what, alone[1:], kept, rtol)
