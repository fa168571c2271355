"""`play`: a game against an adversary that answers each action."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import PyTree

from olx import _check as check
from olx.adversary import Adversary
from olx.core import Learner, Rounds, Run
from olx.engine import contexts
from olx.engine.boundary import check_game, first_state
from olx.engine.protocol import Record, Watch, feedback_of, settle
from olx.streams.judge import judge, legal_so_far, needs_of, on_host


def play(
    learner: Learner,
    adversary: Adversary,
    params: PyTree,
    rounds: int,
    *,
    record: Record | None = None,
) -> Run:
    """Play `learner` for `rounds` rounds against `adversary`, which sees each action.

    `run.rounds` holds the rounds that the adversary made, to replay them or to measure regret.
    """
    check.instance("play", "adversary", adversary, Adversary)
    check_game("play", learner, adversary.loss)
    check.count("play", "rounds", rounds)
    if record is not None:
        check.takes("play", "record", record, "state", "feedback")

    def step(states, _):
        state, nature = states
        context = contexts.cast(adversary.ask(nature), params)
        action = learner.predict(state, context)
        outcome, nature = adversary.answer(nature, action)
        feedback = feedback_of(adversary.loss, context, action, outcome, 1.0)
        state, seen = settle(learner, learner.update, Watch(record), state, feedback)
        return (state, nature), (seen.paid[0], (seen.kept, Rounds(context, outcome)))

    state = first_state("play", learner, params)
    states = jax.tree.map(jnp.asarray, (state, adversary.init()))
    (state, _), (losses, (kept, seen)) = lax.scan(step, states, length=rounds)
    traced = judge("play", needs_of(learner, adversary.loss), params, jax.tree.map(on_host, seen))
    if traced:
        losses = jnp.where(legal_so_far(traced), losses, jnp.nan)
    return Run(state, losses, kept, seen)
