r"""Mutants: wrong copies of a learner that keep its theorems, to see that a theorem can fail.

A certificate is worth as much as the errors it finds. A mutant plays another action than its
learner, or learns in another way, and carries the theorems of the learner with its numbers. Some
mutant should break each theorem on some stream; a theorem that none breaks does not look at the
play.

All mutants of a learner have one structure and differ in numbers. So `breaking_games` plays many of
them, on many streams, as one program. The streams are made of given rounds, again and again, so
that a learner that does not learn is far behind a good comparator.
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Int, PyTree

from olx._pytree import pytree
from olx.core import Feedback, Learner, Loss, Rounds, Scalar
from olx.engine.rollout import rollout
from olx.engine.with_theorems import with_theorems
from olx.testing.report import fail
from olx.wrapper import WrapperView, lift_theorems


@pytree
class Change:
    """What a mutant does differently. All numbers are 1 for the learner itself."""

    action: Scalar = 1.0  # -1: the opposite action
    own: Scalar = 1.0  # 0: the same action in all rounds
    loss: Scalar = 1.0  # factor of the loss that the learner is told
    step: Scalar = 1.0  # factor of the change of the state


CHANGES = {
    "itself": Change(),
    "opposite action": Change(action=-1.0),
    "constant action": Change(own=0.0),
    "opposite loss": Change(loss=-1.0),
    "opposite step": Change(step=-1.0),
    "ten steps": Change(step=10.0),
    "no step": Change(step=0.0),
}


LENGTH = 240  # the rounds of a game
ORDERS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "again": lambda t, n: t % n,  # all rounds, over and over
    "one": lambda t, n: 0 * t,  # the first round only
    "two": lambda t, n: t % 2,  # the first two rounds in turn
    "blocks": lambda t, n: t * n // LENGTH,  # each round many times before the next
}
SIZES = (1.0, 0.1)
FACTORS = (1.0, 3.0, 10.0)


class Mutant(NamedTuple):
    """A mutant, a stream that is made of given rounds, and a comparator that is one of several."""

    mutant: str  # a name of `CHANGES`
    order: str  # a name of `ORDERS`
    size: float = 1.0  # a factor of the rows
    comparator: int = 0  # the number of the comparator
    factor: float = 1.0  # a factor of the comparator


class Numbers(NamedTuple):
    """A game as numbers; games are stacked."""

    change: Change
    order: Int[np.ndarray, " T"]  # which of the given rounds is played
    size: Scalar
    u: PyTree


@pytree
class MutantHparams:
    inner: Learner
    change: Change


def mutants(learner: Learner) -> dict[str, Learner]:
    """The wrong copies of `learner`, by name; "itself" plays as the learner does.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 50))
    >>> game = olx.losses.linear_loss, rounds, jnp.ones(2) / 2, jnp.array([0.0, 1.0])
    >>> each = mutants(olx.hedge(0.5))
    >>> [bool(olx.certify(each[name], *game).holds) for name in ("itself", "opposite action")]
    [True, False]
    """
    return {name: mutant(learner, change) for name, change in CHANGES.items()}


def mutant(learner: Learner, change: Change) -> Learner:
    """`learner` with a change, and with its theorems."""
    own = lift_theorems(SELF, learner)
    return Learner(MutantHparams(learner, change), init, predict, update, theorems=own)


def check_mutants(
    learner: Learner, loss: Loss, rounds: Rounds, params: PyTree, *, comparators: tuple
) -> None:
    """Check that each theorem of `learner` can fail; an AssertionError names those that cannot.

    comparators: points of the domain; good ones on these rounds, as a theorem is broken by a
        learner that is much worse than its comparator.

    Use float64, and rounds that suit the learner: few of them, since they are played over and over.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0], [0.5, 0.2]]))
    >>> game = olx.losses.linear_loss, rounds, jnp.ones(2) / 2
    >>> check_mutants(olx.hedge(0.5), *game, comparators=(jnp.array([0.0, 1.0]),))
    """
    found = breaking_games(learner, loss, rounds, params, comparators)
    if safe := [name for name, games in found.items() if not games]:
        fail(
            f"no mutant breaks {', '.join(f'`{name}`' for name in safe)} on these rounds: either "
            "these `comparators` are too weak, or the theorem does not look at the play"
        )


def breaking_games(
    learner: Learner,
    loss: Loss,
    rounds: Rounds,
    params: PyTree,
    comparators: tuple,
    games: Sequence[Mutant] | None = None,
) -> dict[str, list[Mutant]]:
    """By the name of a theorem, the games in which a mutant breaks it and the learner does not.

    A game that diverged, or broke a condition of the theorem before, does not break it.

    games: those to play; all combinations if None.
    """
    games = all_games(learner, len(comparators)) if games is None else games
    right = list(dict.fromkeys(one._replace(mutant="itself") for one in games))
    numbers = [_numbers(one, rounds, comparators) for one in (*right, *games)]
    stacked = jax.tree.map(
        lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *numbers
    )
    fails = np.asarray(_play(learner, loss, rounds, params, stacked)) > 0
    itself = {one[1:]: at for at, one in enumerate(right)}
    return {
        theorem.name: [
            one
            for one, wrong in zip(games, own[len(right) :], strict=True)
            if wrong and not own[itself[one[1:]]]
        ]
        for theorem, own in zip(learner.theorems, fails, strict=True)
    }


def all_games(learner: Learner, comparators: int) -> list[Mutant]:
    """Each mutant on each stream, against each comparator."""
    wrong = [name for name in CHANGES if name != "itself"]
    factors = (1.0,) if any(one.sequence for one in learner.theorems) else FACTORS
    return [Mutant(*each) for each in product(wrong, ORDERS, SIZES, range(comparators), factors)]


def _numbers(game: Mutant, rounds: Rounds, comparators: tuple) -> Numbers:
    count = jax.tree.leaves(rounds)[0].shape[0]
    u = jax.tree.map(lambda leaf: game.factor * leaf, comparators[game.comparator])
    return Numbers(CHANGES[game.mutant], ORDERS[game.order](np.arange(LENGTH), count), game.size, u)


def _play(
    learner: Learner, loss: Loss, rounds: Rounds, params: PyTree, games: Numbers
) -> Int[Array, "theorems games"]:
    """The first round after which each game breaks each theorem; 0 for none."""

    @jax.jit
    def play(learner: Learner, rounds: Rounds, games: Numbers) -> Array:
        def one(game: Numbers) -> Array:
            own = mutant(learner, game.change)
            chosen = jax.tree.map(lambda leaf: jnp.asarray(leaf)[game.order], rounds)
            rows = jax.tree.map(lambda leaf: _scale(game.size, leaf), chosen.context)
            judged = with_theorems(own, own.theorems, game.u)
            run = rollout(judged, loss, chosen._replace(context=rows), params)
            return jnp.stack([one.so_far.failed for one in run.state.ledger.sides])

        return jax.vmap(one, out_axes=1)(games)

    return play(learner, rounds, games)


def init(hp: MutantHparams, params: PyTree) -> PyTree:
    return hp.inner.init(params)


def predict(hp: MutantHparams, state: PyTree, context: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf: _changed(hp.change, leaf), hp.inner.predict(state, context))


def update(hp: MutantHparams, state: PyTree, feedback: Feedback) -> PyTree:
    factor = hp.change.loss
    wrong = feedback._replace(
        loss=Partial(_scaled, factor, feedback.loss),
        value=_scale(factor, feedback.value),
        grad=jax.tree.map(lambda leaf: _scale(factor, leaf), feedback.grad),
    )
    new = hp.inner.update(state, wrong)
    return jax.tree.map(lambda new, old: _moved(hp.change.step, new, old), new, state)


def _changed(change: Change, action: Array) -> Array:
    if not _is_real(action):
        return action
    opposite = _reversed(action) if action.ndim else -action
    chosen = jnp.where(change.action > 0, action, opposite)
    return jnp.where(change.own > 0, chosen, _fixed(action))


def _reversed(action: Array) -> Array:
    """A distribution with its weights in opposite order; minus the action, if it is none."""
    flat = action.reshape(-1)
    order = jnp.argsort(flat)
    back = jnp.zeros_like(flat).at[order].set(flat[order[::-1]]).reshape(action.shape)
    return jnp.where(_is_distribution(action), back, -action)


def _fixed(action: Array) -> Array:
    """All weight on the first entry of a distribution; 5 everywhere, if it is none."""
    first = (jnp.arange(action.size) == 0).astype(action.dtype).reshape(action.shape)
    five = jnp.full_like(action, 5.0)
    return jnp.where(_is_distribution(action), first, five) if action.ndim else five


def _is_distribution(action: Array) -> Array:
    return jnp.all(action >= 0) & (jnp.abs(jnp.sum(action) - 1) < 1e-3)


def _moved(factor: Scalar, new: Array, old: Array) -> Array:
    """The old number and `factor` times its change; clocks and keys go on."""
    if not _is_real(new):
        return new
    factor = jnp.asarray(factor, new.dtype)
    return jnp.where(factor == 1, new, old + factor * (new - old))


def _scale(factor: Scalar, leaf: Array) -> Array:
    return jnp.asarray(factor, leaf.dtype) * leaf if _is_real(leaf) else leaf


def _scaled(factor: Scalar, loss: Partial, action: PyTree) -> Array:
    return _scale(factor, loss(action))


def _is_real(leaf: Array) -> bool:
    return jnp.issubdtype(jnp.result_type(leaf), jnp.floating)


def _same(state: PyTree) -> PyTree:
    return state


SELF = WrapperView(state=None)
