"""What a job is compared with: regret against a comparator, and the theorems of the learner.

Comparators are computed in double precision. A theorem is checked on the run that is shown, in its
precision; the configuration is played again for that, since a sweep keeps no states. If a theorem
fails in single precision, the game is also played in double precision. If it holds there, it failed
only by rounding.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

import olx
from olx._compiled import compiled
from olx._pytree import as_tree
from olx.certificate import DIVERGED, DOMAIN, Certificate, Certificates, SoFar
from olx.convex.sets import ConvexSet
from olx.core import Learner, Loss, Rounds
from olx.engine.certify import asked_of, replayed
from olx.hindsight import best_shifting_expert, comparator_losses, itself
from olx.lab.config import ConfigError
from olx.lab.data import Dataset
from olx.lab.experiment import Experiment
from olx.lab.jobs import Asked
from olx.lab.prepare import Game
from olx.theorem import Theorem

Make = Callable[[], Learner]  # a learner with its numbers in the precision of JAX
Shown = tuple[np.ndarray, np.ndarray]  # rounds, and the cumulative loss after each of them


class Comparator(NamedTuple):
    u: PyTree
    totals: np.ndarray  # cumulative loss after every round


def find_comparator(
    experiment: Experiment, data: Dataset, game: Game, domain: ConvexSet | None = None
) -> Comparator:
    """The comparator that the experiment names, on this stream.

    domain: of the best comparator; that of the task, with the radius of the experiment, if None.
    """
    decision = data.task.decision
    with jax.enable_x64(True):
        zeros = lambda like: jnp.zeros(like.shape, float)
        rounds, start = _in_double(game.rounds), jax.tree.map(_double, game.start)
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


class Proof(NamedTuple):
    """A certificate as numbers."""

    name: str
    theorem: str  # its source
    left: np.ndarray  # after the rounds shown
    right: np.ndarray
    published: np.ndarray | None
    slack: float  # the smallest over all rounds
    tightness: float
    holds: bool
    broken: str  # from which round on it diverges, or breaks a condition
    difference: float  # of the losses of the replay from those shown, relative
    holds_in_double: bool | None  # None if double precision was not tried
    about_regret: bool  # whether the left side is at least the regret


def certificates(
    make: Make, asked: Asked, game: Game, against: Comparator, shown: Shown, shifts: int
) -> list[Proof]:
    """The certificates of a configuration, after the rounds shown.

    asked: the theorems to check; all theorems of the learner if None.
    shown: the cumulative losses in the tables.
    shifts: the changes of expert in the comparator of theorems about sequences.
    """
    theorems = _asked_theorems(make(), asked)
    check = functools.partial(_checked_theorems, make, asked, game, against, shown)
    fixed = [each.name for each in theorems if not each.sequence]
    changing = [each.name for each in theorems if each.sequence]
    found = check(fixed, against.u) if fixed else []
    return found + (check(changing, _best_sequence(game, shifts)) if changing else [])


def _checked_theorems(
    make: Make,
    asked: Asked,
    game: Game,
    against: Comparator,
    shown: Shown,
    names: list[str],
    u: PyTree,
) -> list[Proof]:
    """The certificates of the theorems called `names` against `u`."""
    at, totals = shown
    proofs, paid = _replay(make, asked, game, names, u, at)
    difference = float(np.max(np.abs(paid - totals) / (1 + np.abs(totals))))
    double: list[bool | None] = [None] * len(proofs)
    if not proofs.holds and _dtype(game) != np.float64:
        with jax.enable_x64(True):
            start = jax.tree.map(lambda leaf: np.asarray(leaf, float), game.start)
            exact = game._replace(rounds=_in_double(game.rounds), start=start)
            again, _ = _replay(make, asked, exact, names, u, at)
            double = [
                None if a.holds else bool(b.holds) for a, b in zip(proofs, again, strict=True)
            ]
    other = against.totals[at - 1]
    return [
        _proof(found, difference, exact, paid - other, other)
        for found, exact in zip(proofs, double, strict=True)
    ]


def _asked_theorems(learner: Learner, asked: Asked) -> tuple[Theorem, ...]:
    """The theorems that a config names; names refer to theorems of the learner."""
    if asked is None:
        return learner.theorems
    carried = [each for each in learner.theorems if each.name in asked]
    return asked_of(learner, (*carried, *(each for each in asked if isinstance(each, Theorem))))


def _dtype(game: Game) -> np.dtype:
    return jax.tree.leaves(game.start)[0].dtype


def _replay(
    make: Make, asked: Asked, game: Game, names: list[str], u: PyTree, at: np.ndarray
) -> tuple[Certificates, np.ndarray]:
    """The certificates after the rounds `at`, and the cumulative loss there."""
    learner = make()
    proofs, run = replayed(
        learner,
        tuple(each for each in _asked_theorems(learner, asked) if each.name in names),
        game.loss,
        game.rounds,
        game.start,
        jax.tree.map(lambda leaf: jnp.asarray(leaf, _dtype(game)), u),
        keep=functools.partial(_marks, tuple(at.tolist())),
        progress=False,
    )
    assert run.curve is not None  # `keep` was given
    return proofs, np.asarray(run.curve.total)


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
        None if found.published is None else np.asarray(found.published),
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
    reasons = {_with_remedy(name): at for name, at in seen.reasons.items()}
    if seen.diverged and not seen.failed:
        reasons[DIVERGED] = int(seen.diverged)
    return "; ".join(f"from round {at} on: {reason}" for reason, at in reasons.items())


def _with_remedy(condition: str) -> str:
    """A condition, with its remedy in a config."""
    remedy = "; name the set of the learner: compare_in" if condition == DOMAIN else ""
    return condition + remedy


def _best_sequence(game: Game, shifts: int) -> np.ndarray:
    """Per round, 1 for the expert of the best sequence with at most `shifts` changes."""
    with jax.enable_x64(True):
        rounds, experts = _in_double(game.rounds), jnp.eye(game.start.size)
        each = [_losses(as_tree(game.loss), rounds, u, as_tree(itself)) for u in experts]
        return np.eye(len(each))[best_shifting_expert(jnp.stack(each, axis=1), shifts).path]


@compiled
def _losses(
    loss: Loss, rounds: Rounds, u: PyTree, apply: Callable[[PyTree, PyTree], PyTree]
) -> Array:
    return comparator_losses(loss, rounds, u, apply)


def _double(leaf: Array | np.ndarray) -> Array:
    return jnp.asarray(leaf, float)


def _in_double(rounds: Rounds) -> Rounds:
    return jax.tree.map(
        lambda leaf: jnp.asarray(leaf, float if leaf.dtype.kind == "f" else None), rounds
    )
