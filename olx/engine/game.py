"""A learner and a loss as flat lists of numbers, and what a run must know of them.

To take a learner apart into its numbers and to put it together costs more than a short run. So it
is done once per learner: the engine remembers the last ones by their identity.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.core import Tracer

from olx._cache import Recent
from olx._pytree import as_tree, pytree, static
from olx.core import Learner, Loss
from olx.streams.judge import needs_of


@dataclasses.dataclass(frozen=True, eq=False)
class Structure:
    """The structures of a learner and a loss, in one object: equal trees take long to compare."""

    learner: Any
    loss: Any


@pytree
class Game:
    """A learner and a loss, taken apart into their numbers and their structure."""

    own: list  # the leaves of the learner
    other: list  # the leaves of the loss
    structure: Structure = static()

    @property
    def numbers(self) -> tuple[list, list]:
        """The numbers without the structure: JAX would remember a structure among arguments."""
        return self.own, self.other

    def parts(self) -> tuple[Learner, Loss]:
        """The learner and the loss with these numbers."""
        learner = jax.tree.unflatten(self.structure.learner, self.own)
        return learner, jax.tree.unflatten(self.structure.loss, self.other)


class Known(NamedTuple):
    """What does not change between the runs of a learner."""

    learner: Learner  # kept, so that its `id` is not used again
    loss: Loss
    game: Game
    needs: list  # the result of `needs_of`
    parts: frozenset[str]  # of the rounds that these needs are about


_SEEN: Recent[Known] = Recent()
_STRUCTURES: Recent[Structure] = Recent()


def known(
    owner: str,
    learner: Learner,
    loss: Loss,
    check: Callable[[str, Learner, Loss], object],
    arrange: Callable[[list], list] | None = None,
) -> Known:
    """The game of a learner and a loss.

    check: refuses what the `owner` does not play; a function at module level.
    arrange: changes the leaves of the learner; a function at module level.
    """
    key = check, arrange, id(learner), id(loss)
    found = _SEEN.get(key)
    if found is not None:
        return found
    check(owner, learner, loss)
    found = taken_apart(owner, learner, loss, arrange)
    leaves = jax.tree.leaves((learner, as_tree(loss)))
    if all(isinstance(leaf, int | float | jax.Array) for leaf in leaves):
        _SEEN.put(key, found)  # a NumPy array may change until the next run
    return found


def is_known(learner: Learner, loss: Loss, check: Callable) -> bool:
    return _SEEN.get((check, None, id(learner), id(loss))) is not None


def taken_apart(
    owner: str, learner: Learner, loss: Loss, arrange: Callable[[list], list] | None = None
) -> Known:
    """The same for a learner that is not asked for again."""
    own, first = jax.tree.flatten(learner)
    other, second = jax.tree.flatten(as_tree(loss))
    refuse_tracers(owner, own + other)
    own = list(map(_argument, own)) if arrange is None else arrange(own)
    structure = _STRUCTURES.get((first, second))
    if structure is None:
        structure = _STRUCTURES.put((first, second), Structure(first, second))
    needs = needs_of(learner, loss)
    game = Game(own, list(map(_argument, other)), structure)
    return Known(learner, loss, game, needs, frozenset(need.where for need, _ in needs))


def refuse_tracers(
    owner: str, leaves: list, does: str = "compiles for itself", remedy: str = "`olx.rollout` can"
) -> None:
    if any(isinstance(leaf, Tracer) for leaf in leaves):
        raise TypeError(
            f"{owner}: {does}, so it cannot be called inside jit, vmap or grad; {remedy}."
        )


def _argument(leaf: Any) -> Any:
    """An array, or a Python number as it is: a compiled call converts numbers faster."""
    return leaf if isinstance(leaf, int | float | jax.Array) else jnp.asarray(leaf)
