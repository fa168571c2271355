"""Judging a job: regret against a comparator, and the theorems of the learner.

A theorem is checked on the run that is shown, in
its precision; the configuration is played again for that, since a sweep keeps no states. If a
theorem fails in single precision, the game is also played in double precision. If it holds there,
it failed only by rounding.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from olx.certificate import DOMAIN, Certificate, Certificates
from olx.core import Learner
from olx.engine.certify import asked_of, replayed
from olx.lab.comparators import Comparator, best_sequence, in_double
from olx.lab.plan import Asked, Part
from olx.lab.sweeps import Game, one
from olx.theorem import Theorem

Shown = tuple[np.ndarray, np.ndarray]  # rounds, and the cumulative loss after each of them


class Proof(NamedTuple):
    """A certificate as numbers."""

    name: str
    theorem: str  # its source
    left: np.ndarray  # after the rounds shown
    right: np.ndarray
    slack: float  # the smallest over all rounds
    tightness: float
    holds: bool
    broken: str  # the conditions that the run breaks, each with its first round
    difference: float  # of the losses of the replay from those shown, relative
    holds_in_double: bool | None  # None if double precision was not tried
    about_regret: bool  # whether the left side is at least the regret


def certificates(
    part: Part,
    i: int,
    game: Game,
    against: Comparator,
    shown: Shown,
    asked: Asked,
    shifts: int,
) -> list[Proof]:
    """The certificates of a configuration, after the rounds shown.

    shown: the cumulative losses in the tables.
    asked: the theorems to check; all theorems of the learner if None.
    shifts: the changes of expert in the comparator of theorems about sequences.
    """
    found, theorems = [], chosen(one(part, i), asked)
    for names, sequence in (
        ([each.name for each in theorems if not each.sequence], False),
        ([each.name for each in theorems if each.sequence], True),
    ):
        if names:
            u = best_sequence(game, shifts) if sequence else against.u
            found += _judged(part, i, game, against._replace(u=u), shown, asked, names)
    return found


def _judged(
    part: Part,
    i: int,
    game: Game,
    against: Comparator,
    shown: Shown,
    asked: Asked,
    names: list[str],
) -> list[Proof]:
    """The certificates called `names`, which share a comparator."""
    at, totals = shown
    proofs, paid = _replay(part, i, game, against, at, asked, names)
    difference = float(np.max(np.abs(paid - totals) / (1 + np.abs(totals))))
    double: list[bool | None] = [None] * len(proofs)
    if not proofs.holds and game.start.dtype != np.float64:
        with jax.enable_x64(True):
            exact = game._replace(
                rounds=in_double(game.rounds), start=np.asarray(game.start, float)
            )
            again, _ = _replay(part, i, exact, against, at, asked, names)
            double = [
                None if a.holds else bool(b.holds) for a, b in zip(proofs, again, strict=True)
            ]
    regret = paid - against.totals[at - 1]
    return [
        _proof(found, difference, exact, regret, against.totals[at - 1])
        for found, exact in zip(proofs, double, strict=True)
    ]


def chosen(learner: Learner, asked: Asked) -> tuple[Theorem, ...]:
    """The theorems that a config names; names refer to theorems of the learner."""
    if asked is None:
        return learner.theorems
    carried = [one for one in learner.theorems if one.name in asked]
    return asked_of(learner, (*carried, *(one for one in asked if isinstance(one, Theorem))))


def _replay(
    part: Part, i: int, game: Game, against: Comparator, at: np.ndarray, asked: Asked, names: Any
) -> tuple[Certificates, np.ndarray]:
    """The certificates after the rounds `at`, and the cumulative loss there."""
    learner, u = one(part, i), jnp.asarray(against.u, game.start.dtype)
    proofs, run = replayed(
        learner,
        tuple(each for each in chosen(learner, asked) if each.name in names),
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
    found: Certificate, difference: float, exact: bool | None, regret: np.ndarray, other: np.ndarray
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
        "; ".join(f"from round {n} on: {_said(name)}" for name, n in seen.broken.items() if n),
        difference,
        exact,
        bool(np.all(found.left >= regret - rounding)),
    )


def _said(condition: str) -> str:
    """A condition, with its remedy in a config."""
    remedy = "; name the set of the learner: compare_in" if condition == DOMAIN else ""
    return condition + remedy
