"""A learner and a loss as flat lists of numbers, and what a run must know of them.

To take a learner apart into its numbers and to put it together costs more than a short run. So it
is done once per learner: the engine remembers the last ones by their identity.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.core import Tracer

from olx._pytree import as_tree, pytree, static
from olx.core import Learner, Loss
from olx.streams.judge import needs_of

_MOST = 64  # games that are remembered


@pytree
class Game:
    """The numbers of a learner and of a loss; a compiled program takes these."""

    own: list  # the leaves of the learner
    other: list  # the leaves of the loss
    structure: tuple = static()  # of both

    def parts(self) -> tuple[Learner, Loss]:
        """The learner and the loss with these numbers."""
        learner, loss = self.structure
        return jax.tree.unflatten(learner, self.own), jax.tree.unflatten(loss, self.other)


class Known(NamedTuple):
    """What does not change between the runs of a learner."""

    learner: Learner  # kept, so that its `id` is not used again
    loss: Loss
    game: Game
    needs: list  # the result of `needs_of`
    parts: frozenset[str]  # of the rounds that these needs are about


_SEEN: OrderedDict[tuple, Known] = OrderedDict()
_STRUCTURES: dict[Any, Any] = {}  # one object per structure: equal objects take long to compare


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
    if key in _SEEN:
        _SEEN.move_to_end(key)
        return _SEEN[key]
    check(owner, learner, loss)
    found = taken_apart(owner, learner, loss, arrange)
    leaves = jax.tree.leaves((learner, as_tree(loss)))
    if all(isinstance(leaf, int | float | jax.Array) for leaf in leaves):
        _SEEN[key] = found  # a NumPy array may change until the next run
    while len(_SEEN) > _MOST:
        _SEEN.popitem(last=False)
    return found


def taken_apart(
    owner: str, learner: Learner, loss: Loss, arrange: Callable[[list], list] | None = None
) -> Known:
    """The same for a learner that is not asked for again."""
    own, first = jax.tree.flatten(learner)
    other, second = jax.tree.flatten(as_tree(loss))
    refuse_tracers(owner, own + other)
    own = list(map(_argument, own)) if arrange is None else arrange(own)
    structure = first, second
    structure = _STRUCTURES.setdefault(structure, structure)
    while len(_STRUCTURES) > 16 * _MOST:
        _STRUCTURES.pop(next(iter(_STRUCTURES)))
    needs = needs_of(learner, loss)
    game = Game(own, list(map(_argument, other)), structure)
    return Known(learner, loss, game, needs, frozenset(need.where for need, _ in needs))


def refuse_tracers(owner: str, leaves: list) -> None:
    if any(isinstance(leaf, Tracer) for leaf in leaves):
        raise TypeError(
            f"{owner}: compiles for itself, so it cannot be called inside jit, vmap or grad; "
            "`olx.rollout` can."
        )


def _argument(leaf: Any) -> Any:
    """An array, or a Python number as it is: a compiled call converts numbers faster."""
    return leaf if isinstance(leaf, int | float | jax.Array) else jnp.asarray(leaf)
