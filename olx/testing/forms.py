"""Checks of other forms of a learner: dictionaries of parameters, programs for other devices."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.export import export
from jaxtyping import PyTree

from olx.core import Learner, Loss, Rounds, Run
from olx.engine.rollout import rollout
from olx.testing.report import close, fail


def check_dictionary(
    learner: Learner, loss: Loss, rounds: Rounds, params: PyTree, done: Run
) -> None:
    """A dictionary of two vectors gives the same losses as one vector.
    Skipped if the parameters are not one vector, or if a number of the learner is an array."""
    shaped = any(np.ndim(leaf) > 0 for leaf in jax.tree.leaves(learner))
    if not isinstance(params, jax.Array) or params.ndim != 1 or params.size < 2 or shaped:
        return
    split = lambda leaf: (
        {"a": leaf[..., :1], "b": leaf[..., 1:]} if leaf.shape[-1:] == params.shape else leaf
    )
    vectors = lambda tree: jax.tree.map(lambda leaf: split(leaf) if leaf.ndim > 1 else leaf, tree)
    parted = Rounds(vectors(rounds.context), vectors(rounds.outcome), rounds.weight)
    other = jax.jit(lambda learner: rollout(learner, loss, parted, split(params)))(learner)
    close("a dictionary of parameters differs from one vector", other.losses, done.losses, 1e-6)


def check_lowering(learner: Learner, rounds: Rounds, play: Any, platforms: tuple[str, ...]) -> None:
    """The program of a run and of its gradient can be lowered for every platform."""
    learner = jax.tree.map(jnp.asarray, learner)
    try:
        export(play, platforms=platforms)(learner, rounds)
        return
    except Exception:
        pass  # find out below which platform it is
    for platform in platforms:
        try:
            export(play, platforms=(platform,))(learner, rounds)
        except Exception as error:
            fail(f"the program does not lower for {platform}: {error}")
