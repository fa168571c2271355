"""Judging a job: regret against a comparator, and the theorems of the learner.

Both are worked out in double precision whatever the run was played in, so that a certificate speaks
of the theorem and not of rounding; the learner is played once more for it.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from olx._pytree import as_tree
from olx.certificate import Certificate
from olx.core import Learner, Rounds, trace
from olx.hindsight import ball, comparator_losses, constant, everywhere, simplex
from olx.lab.config import ConfigError
from olx.lab.data import Dataset
from olx.lab.experiment import Experiment
from olx.lab.plan import Part
from olx.lab.play import Game, one


class Comparator(NamedTuple):
    u: Any
    totals: np.ndarray  # cumulative loss after every round


class Proof(NamedTuple):
    """A certificate as numbers, worked out in double precision."""

    theorem: str
    left: np.ndarray  # after every round
    right: np.ndarray
    slack: float  # the least
    tightness: float
    holds: bool
    about_regret: bool  # whether its left side is at least the regret; it may be about other losses


def comparator(experiment: Experiment, data: Dataset, game: Game) -> Comparator:
    """The comparator that the experiment asks for, on this stream."""
    predictor = data.context is not None
    apply = olx.dot if predictor else constant
    with jax.enable_x64(True):
        rounds, start = _double(game.rounds), jnp.asarray(game.start, float)
        if experiment.comparator == "zero":
            u = jnp.zeros_like(start) if predictor else start
        elif experiment.comparator == "truth":
            if np.shape(data.truth) != start.shape:
                raise ConfigError(f"comparator: {data.name} was not made from a single truth.")
            u = jnp.asarray(data.truth, float)
        else:
            radius = experiment.radius
            domain = everywhere() if radius is None else ball(radius)
            domain = domain if predictor else simplex()
            u = olx.best_in_hindsight(
                game.loss, rounds, start, apply=apply, domain=domain, tolerance=1e-5, steps=4000
            ).u
        losses = _losses(as_tree(game.loss), rounds, u, as_tree(apply))
        return Comparator(np.asarray(u), np.cumsum(np.asarray(losses)))


def certificate(part: Part, i: int, game: Game, against: Comparator) -> Proof | None:
    """Both sides of the theorem of a configuration, after every round; None if it has none."""
    with jax.enable_x64(True):
        learner = one(part, i)
        if learner.bound_fn is None:
            return None
        rounds, start = _double(game.rounds), jnp.asarray(game.start, float)
        given = learner, as_tree(game.loss), rounds, start, jnp.asarray(against.u)
        found, paid = _certificate(*given)
        regret = np.cumsum(paid) - against.totals
        rounding = 64 * np.finfo(float).eps * (found.scale + np.abs(against.totals))
        return Proof(
            found.theorem,
            np.asarray(found.left),
            np.asarray(found.right),
            float(found.slack.min()),
            float(found.tightness),
            bool(found.holds),
            bool(np.all(found.left >= regret - rounding)),
        )


@jax.jit
def _losses(loss: Any, rounds: Rounds, u: Any, apply: Any) -> Any:
    return comparator_losses(loss, rounds, u, apply)


@jax.jit
def _certificate(
    learner: Learner, loss: Any, rounds: Rounds, start: Any, u: Any
) -> tuple[Certificate, Any]:
    """Both sides of the theorem, and the losses of the run."""
    run = olx.rollout(learner, loss, rounds, start, record=trace)
    return olx.certify(learner, run, u), run.losses


def _double(rounds: Rounds) -> Rounds:
    return jax.tree.map(
        lambda leaf: jnp.asarray(leaf, float if leaf.dtype.kind == "f" else None), rounds
    )
