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

from olx.core import Learner
from olx.engine.certify import asked_of, replayed
from olx.lab.comparators import Comparator, best_sequence, in_double
from olx.lab.plan import Asked, Part
from olx.lab.sweeps import LabGame, one
from olx.theorem import DIVERGED, DOMAIN, Certificate, Certificates, SoFar, Theorem

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
    broken: str  # from which round on it diverges, or breaks a condition
    difference: float  # of the losses of the replay from those shown, relative
    holds_in_double: bool | None  # None if double precision was not tried
    about_regret: bool  # whether the left side is at least the regret


class Case(NamedTuple):
    """A configuration, and what to judge it by."""

    part: Part
    i: int  # the configuration
    game: LabGame
    against: Comparator
    asked: Asked  # the theorems to check; all theorems of the learner if None


def certificates(case: Case, shown: Shown, shifts: int) -> list[Proof]:
    """The certificates of a configuration, after the rounds shown.

    shown: the cumulative losses in the tables.
    shifts: the changes of expert in the comparator of theorems about sequences.
    """
    theorems = chosen(one(case.part, case.i), case.asked)
    fixed = [each.name for each in theorems if not each.sequence]
    changing = [each.name for each in theorems if each.sequence]
    found = _judged(case, fixed, case.against.u, shown) if fixed else []
    if changing:
        found += _judged(case, changing, best_sequence(case.game, shifts), shown)
    return found


def _judged(case: Case, names: list[str], u: np.ndarray, shown: Shown) -> list[Proof]:
    """The certificates of the theorems called `names` against `u`."""
    (at, totals), game = shown, case.game
    proofs, paid = _replay(case, names, u, at)
    difference = float(np.max(np.abs(paid - totals) / (1 + np.abs(totals))))
    double: list[bool | None] = [None] * len(proofs)
    if not proofs.holds and _dtype(game) != np.float64:
        with jax.enable_x64(True):
            start = jax.tree.map(lambda leaf: np.asarray(leaf, float), game.start)
            exact = game._replace(rounds=in_double(game.rounds), start=start)
            again, _ = _replay(case._replace(game=exact), names, u, at)
            double = [
                None if a.holds else bool(b.holds) for a, b in zip(proofs, again, strict=True)
            ]
    other = case.against.totals[at - 1]
    return [
        _proof(found, difference, exact, paid - other, other)
        for found, exact in zip(proofs, double, strict=True)
    ]


def chosen(learner: Learner, asked: Asked) -> tuple[Theorem, ...]:
    """The theorems that a config names; names refer to theorems of the learner."""
    if asked is None:
        return learner.theorems
    carried = [one for one in learner.theorems if one.name in asked]
    return asked_of(learner, (*carried, *(one for one in asked if isinstance(one, Theorem))))


def _dtype(game: LabGame) -> Any:
    return jax.tree.leaves(game.start)[0].dtype


def _replay(
    case: Case, names: list[str], u: np.ndarray, at: np.ndarray
) -> tuple[Certificates, np.ndarray]:
    """The certificates after the rounds `at`, and the cumulative loss there."""
    learner, game = one(case.part, case.i), case.game
    proofs, run = replayed(
        learner,
        tuple(each for each in chosen(learner, case.asked) if each.name in names),
        game.loss,
        game.rounds,
        game.start,
        jax.tree.map(lambda leaf: jnp.asarray(leaf, _dtype(game)), u),
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
        _broken(seen),
        difference,
        exact,
        bool(np.all(found.left >= regret - rounding)),
    )


def _broken(seen: SoFar) -> str:
    """Why the theorem says nothing, and from which round on."""
    reasons = {_said(name): at for name, at in seen.reasons.items()}
    if seen.diverged and not seen.failed:
        reasons[DIVERGED] = int(seen.diverged)
    return "; ".join(f"from round {at} on: {reason}" for reason, at in reasons.items())


def _said(condition: str) -> str:
    """A condition, with its remedy in a config."""
    remedy = "; name the set of the learner: compare_in" if condition == DOMAIN else ""
    return condition + remedy
