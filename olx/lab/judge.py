"""Judging a job: regret against a comparator, and the theorems of the learner.

The comparator is worked out in double precision. A theorem is judged on the run that is shown, in
its precision; the configuration is played once more for it, since a sweep keeps no states. Where a
theorem fails in single precision, the game is also played in double precision: what holds there
failed by rounding alone.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from olx._pytree import as_tree
from olx.certificate import Certificate
from olx.core import Learner, Rounds, Run
from olx.hindsight import Theorem, comparator_losses, theorems
from olx.lab.config import ConfigError
from olx.lab.data import Dataset
from olx.lab.experiment import Experiment
from olx.lab.plan import Part
from olx.lab.sweeps import Game, one
from olx.record import trace

Shown = tuple[np.ndarray, np.ndarray]  # rounds, and the cumulative loss after each of them


class Comparator(NamedTuple):
    u: Any
    totals: np.ndarray  # cumulative loss after every round


class Proof(NamedTuple):
    """A certificate as numbers."""

    name: str  # of the theorem in `olx.hindsight`
    theorem: str
    left: np.ndarray  # after every round
    right: np.ndarray
    slack: float  # the least
    tightness: float
    holds: bool
    broken: str  # the conditions that the run breaks, each with the round
    apart: float  # how far the losses judged are from those shown, relative to them
    holds_in_double: bool | None  # in double precision; None where that was not tried
    about_regret: bool  # whether its left side is at least the regret; it may be about other losses


def comparator(experiment: Experiment, data: Dataset, game: Game) -> Comparator:
    """The comparator that the experiment asks for, on this stream."""
    decision = data.task.decision
    with jax.enable_x64(True):
        rounds, start = _double(game.rounds), jnp.asarray(game.start, float)
        if experiment.comparator == "zero":
            u = decision.zero(start)
        elif experiment.comparator == "truth":
            if np.shape(data.truth) != start.shape:
                raise ConfigError(f"comparator: {data.name} was not made from a single truth.")
            u = jnp.asarray(data.truth, float)
        else:
            u = olx.best_in_hindsight(
                game.loss, rounds, start, apply=decision.apply,
                domain=decision.domain(experiment.radius), tolerance=1e-5, steps=4000,
            ).u  # fmt: skip
        losses = _losses(as_tree(game.loss), rounds, u, as_tree(decision.apply))
        return Comparator(np.asarray(u), np.cumsum(np.asarray(losses)))


def certificates(
    part: Part, i: int, game: Game, against: Comparator, shown: Shown, names: list[str] | None
) -> list[Proof]:
    """What the theorems about a configuration say, after every round.

    shown: the cumulative losses that the tables show.
    names: of the theorems; all that are about the learner if None.
    """
    learner, u = one(part, i), jnp.asarray(against.u, game.start.dtype)
    asked = [each for each in theorems(learner) if names is None or each.name in names]
    if not asked:
        return []
    run = _play(learner, as_tree(game.loss), game.rounds, game.start)
    paid = np.cumsum(np.asarray(run.losses), dtype=float)
    at, totals = shown
    apart = float(np.max(np.abs(paid[at - 1] - totals) / (1 + np.abs(totals))))
    proofs = []
    for each in asked:
        found = _certificate(each.function, learner, run, u)
        holds, double = bool(found.holds), None
        if not holds and game.start.dtype != np.float64:
            double = _holds_in_double(each, part, i, game, against)
        rounding = 64 * np.finfo(found.scale.dtype).eps * (found.scale + np.abs(against.totals))
        proofs.append(
            Proof(
                each.name,
                found.theorem,
                np.asarray(found.left),
                np.asarray(found.right),
                float(found.slack.min()),
                float(found.tightness),
                holds,
                _broken(found),
                apart,
                double,
                bool(np.all(found.left >= paid - against.totals - rounding)),
            )
        )
    return proofs


def _holds_in_double(each: Theorem, part: Part, i: int, game: Game, against: Comparator) -> bool:
    with jax.enable_x64(True):
        learner, rounds = one(part, i), _double(game.rounds)
        run = _play(learner, as_tree(game.loss), rounds, jnp.asarray(game.start, float))
        return bool(_certificate(each.function, learner, run, jnp.asarray(against.u)).holds)


def _broken(found: Certificate) -> str:
    """The conditions that are broken, and from which round on."""
    first = {name: int(np.argmin(met)) + 1 for name, met in found.conditions.items()}
    return "; ".join(
        f"{name}, broken in round {first[name]}"
        for name, met in found.conditions.items()
        if not np.all(met)
    )


@jax.jit
def _losses(loss: Any, rounds: Rounds, u: Any, apply: Any) -> Any:
    return comparator_losses(loss, rounds, u, apply)


@jax.jit
def _play(learner: Learner, loss: Any, rounds: Rounds, start: Any) -> Run:
    return olx.rollout(learner, loss, rounds, start, record=trace)


@functools.partial(jax.jit, static_argnums=0)
def _certificate(theorem: Any, learner: Learner, run: Run, u: Any) -> Certificate:
    return theorem(learner, run, u)


def _double(rounds: Rounds) -> Rounds:
    return jax.tree.map(
        lambda leaf: jnp.asarray(leaf, float if leaf.dtype.kind == "f" else None), rounds
    )
