"""Checks that all drivers play a learner alike."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx.core import Learner, Loss, Rounds, Run
from olx.engine.run import run, sweep
from olx.engine.serve import step
from olx.testing.report import after, close, fail, movable, tolerance, with_numbers

FACTORS = 1.0, 0.9, 0.7  # of the numbers of the learners in a sweep


def check_drivers(
    learner: Learner, loss: Loss, rounds: Rounds, params: PyTree, play: Callable, what: str
) -> None:
    """`run`, `sweep` and `step` give the losses of `rollout`.

    play: (learner, rounds) -> the run by `rollout`, with its states.
    what: the stream, in words.
    """
    wanted = play(learner, rounds)
    if not np.all(np.isfinite(wanted.losses)):
        at = int(np.argmin(np.isfinite(wanted.losses)))
        fail(f"on {what} losses are not finite from round {at} on; choose numbers that are legal")
    rtol = tolerance(wanted)
    seen = run(learner, loss, rounds, params).losses
    close(f"on {what} `run` differs from `rollout`", seen, wanted.losses, rtol)
    seen = _losses_of_steps(learner, loss, rounds, wanted)
    close(f"on {what} `step` differs from `rollout`", seen, wanted.losses, rtol)
    if not jax.tree.leaves(learner):
        return
    moves = movable(learner, params)
    others = [with_numbers(learner, factor, moves) for factor in FACTORS]
    single = np.stack([play(other, rounds).losses for other in others])
    if not np.all(np.isfinite(single)):
        fail(
            f"on {what} losses are not finite if all numbers are smaller by a third; choose other "
            "numbers"
        )
    stack = lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves])
    seen = sweep(jax.tree.map(stack, *others), loss, rounds, params).losses
    close(f"on {what} a sweep differs from single runs", seen, single, rtol)


def _losses_of_steps(learner: Learner, loss: Loss, rounds: Rounds, wanted: Run) -> np.ndarray:
    """The losses of the same rounds, played one by one."""
    state, losses = after(wanted, 0), []
    for t in range(len(wanted.losses)):
        one = jax.tree.map(lambda leaf, t=t: np.asarray(leaf)[t], rounds)
        weight = 1.0 if one.weight is None else one.weight
        state, _, paid = step(learner, loss, state, one.context, one.outcome, weight)
        losses.append(paid)
    return np.stack(losses)
