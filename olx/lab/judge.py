"""Judging a job: regret against a comparator, and the theorems of the learner.

The comparator is computed in double precision. A theorem is checked on the run that is shown, in
its precision; the configuration is played again for that, since a sweep keeps no states. If a
theorem fails in single precision, the game is also played in double precision. If it holds there,
it failed only by rounding.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from olx._pytree import as_tree
from olx.certificate import Certificate, Certificates
from olx.core import Learner, Rounds
from olx.engine.certify import asked_of, replayed
from olx.hindsight import comparator_losses
from olx.lab.config import ConfigError
from olx.lab.data import Dataset
from olx.lab.experiment import Experiment
from olx.lab.plan import Asked, Part
from olx.lab.sweeps import Game, one
from olx.theorem import Theorem

Shown = tuple[np.ndarray, np.ndarray]  # rounds, and the cumulative loss after each of them


class Comparator(NamedTuple):
    u: Any
    totals: np.ndarray  # cumulative loss after every round


class Proof(NamedTuple):
    """A certificate as numbers."""

    name: str
    theorem: str  # its source
    left: np.ndarray  # after the rounds shown
    right: np.ndarray
    slack: float  # the smallest over all rounds
    tightness: float
    holds: bool
    broken: str  # the conditions that the run breaks, each with the round
    apart: float  # relative difference of the losses judged from those shown
    holds_in_double: bool | None  # None if double precision was not tried
    about_regret: bool  # whether the left side is at least the regret


def comparator(experiment: Experiment, data: Dataset, game: Game) -> Comparator:
    """The comparator that the experiment names, on this stream."""
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
    part: Part, i: int, game: Game, against: Comparator, shown: Shown, asked: Asked
) -> list[Proof]:
    """The certificates of a configuration, after the rounds shown.

    shown: the cumulative losses in the tables.
    asked: the theorems to check; all theorems of the learner if None.
    """
    if not chosen(one(part, i), asked):
        return []
    at, totals = shown
    proofs, paid = _replay(part, i, game, against, at, asked)
    apart = float(np.max(np.abs(paid - totals) / (1 + np.abs(totals))))
    double: list[bool | None] = [None] * len(proofs)
    if not proofs.holds and game.start.dtype != np.float64:
        with jax.enable_x64(True):
            exact = game._replace(rounds=_double(game.rounds), start=np.asarray(game.start, float))
            again, _ = _replay(part, i, exact, against, at, asked)
            double = [
                None if a.holds else bool(b.holds) for a, b in zip(proofs, again, strict=True)
            ]
    regret = paid - against.totals[at - 1]
    return [
        _proof(found, apart, exact, regret, against.totals[at - 1])
        for found, exact in zip(proofs, double, strict=True)
    ]


def chosen(learner: Learner, asked: Asked) -> tuple[Theorem, ...]:
    """The theorems that a config names; names refer to theorems of the learner."""
    if asked is None:
        return learner.theorems
    carried = [one for one in learner.theorems if one.name in asked]
    return asked_of(learner, (*carried, *(one for one in asked if isinstance(one, Theorem))))


def _replay(
    part: Part, i: int, game: Game, against: Comparator, at: np.ndarray, asked: Asked
) -> tuple[Certificates, np.ndarray]:
    """The certificates after the rounds `at`, and the cumulative loss there."""
    learner, u = one(part, i), jnp.asarray(against.u, game.start.dtype)
    proofs, run = replayed(
        learner,
        chosen(learner, asked),
        game.loss,
        game.rounds,
        game.start,
        u,
        keep=functools.partial(_marks, tuple(at.tolist())),
        progress=False,
    )
    curve: Any = run.curve
    return proofs, np.asarray(curve.total)


def _marks(at: tuple[int, ...], start: int, stop: int) -> np.ndarray:
    """Keep the rounds `at`."""
    return np.array([mark for mark in at if start < mark <= stop], int)


def _proof(
    found: Certificate, apart: float, exact: bool | None, regret: np.ndarray, other: np.ndarray
) -> Proof:
    rounding = 64 * np.finfo(found.scale.dtype).eps * (found.scale + np.abs(other))
    seen = found.summary
    return Proof(
        found.name,
        found.theorem,
        np.asarray(found.left),
        np.asarray(found.right),
        float(seen.slack),
        float(seen.tightness),
        bool(found.holds),
        "; ".join(f"{name}, broken in round {n}" for name, n in seen.broken.items() if n),
        apart,
        exact,
        bool(np.all(found.left >= regret - rounding)),
    )


@jax.jit
def _losses(loss: Any, rounds: Rounds, u: Any, apply: Any) -> Any:
    return comparator_losses(loss, rounds, u, apply)


def _double(rounds: Rounds) -> Rounds:
    return jax.tree.map(
        lambda leaf: jnp.asarray(leaf, float if leaf.dtype.kind == "f" else None), rounds
    )
