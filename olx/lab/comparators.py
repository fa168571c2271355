"""The comparators of a job: what regret and theorems compare its learner with.

They are computed in double precision.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from olx._cache import compiled
from olx._pytree import as_tree
from olx.convex.sets import ConvexSet
from olx.core import Rounds
from olx.hindsight import best_shifting_expert, comparator_losses, itself
from olx.lab.config import ConfigError
from olx.lab.data import Dataset
from olx.lab.experiment import Experiment
from olx.lab.sweeps import LabGame


class Comparator(NamedTuple):
    u: Any
    totals: np.ndarray  # cumulative loss after every round


def comparator(
    experiment: Experiment, data: Dataset, game: LabGame, domain: ConvexSet | None = None
) -> Comparator:
    """The comparator that the experiment names, on this stream.

    domain: of the best comparator; that of the task, with the radius of the experiment, if None.
    """
    decision = data.task.decision
    with jax.enable_x64(True):
        zeros = lambda like: jnp.zeros(like.shape, float)
        rounds, start = in_double(game.rounds), as_double(game.start)
        usual = jax.tree.map(zeros, decision.starts(data)[0])
        if jax.tree.map(jnp.shape, start) != jax.tree.map(jnp.shape, usual):
            start = usual  # copies start from the decision of a copy
        if experiment.comparator == "zero":
            u = decision.zero(start)
        elif experiment.comparator == "truth":
            if np.shape(data.truth) != getattr(start, "shape", None):
                raise ConfigError(f"comparator: {data.name} was not made from a single truth.")
            u = jnp.asarray(data.truth, float)
        else:
            u = olx.best_in_hindsight(
                game.loss, rounds, start, apply=decision.apply,
                domain=domain or decision.domain(experiment.radius), tolerance=1e-5, steps=4000,
            ).u  # fmt: skip
        losses = _losses(as_tree(game.loss), rounds, u, as_tree(decision.apply))
        return Comparator(jax.tree.map(np.asarray, u), np.cumsum(np.asarray(losses)))


def best_sequence(game: LabGame, shifts: int) -> np.ndarray:
    """Per round, 1 for the expert of the best sequence with at most `shifts` changes."""
    with jax.enable_x64(True):
        rounds, experts = in_double(game.rounds), jnp.eye(game.start.size)
        each = [_losses(as_tree(game.loss), rounds, u, as_tree(itself)) for u in experts]
        return np.eye(len(each))[best_shifting_expert(jnp.stack(each, axis=1), shifts).path]


@compiled
def _losses(loss: Any, rounds: Rounds, u: Any, apply: Any) -> Any:
    return comparator_losses(loss, rounds, u, apply)


def as_double(start: Any) -> Any:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, float), start)


def in_double(rounds: Rounds) -> Rounds:
    return jax.tree.map(
        lambda leaf: jnp.asarray(leaf, float if leaf.dtype.kind == "f" else None), rounds
    )
