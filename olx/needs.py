"""Demands of learners and losses on their data; every driver checks them.

Demands on gradients are another matter: a gradient depends on the action, so it is known only after
the round is played. A learner that has one keeps a `Breach` in its state.
"""

# Strict, but for what a tree holds: `PyTree` is of no known type.
# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, PyTree, UInt32

from olx._pytree import pytree, static
from olx._refusal import RefusedValue

PARTS = ("params", "context", "outcome", "weight")


class Need(NamedTuple):
    """One demand on the data of a game; a driver refuses data that does not meet it.

    where: the part of the data that it is about, one of `PARTS`.
    legal_fn: `(hparams, params, rounds)` -> whether the data is legal. For "params", `rounds` is
        None and the result is one boolean. Else it is one boolean per entry of that part of
        `rounds`, in a tree like the part, or one boolean for the whole part. The function uses
        operators only, because it gets NumPy arrays of a chunk as well as tracers. If `hparams`
        are those of a batch, an entry is legal if it is legal for one of the learners.
    demand: what must hold, in words.
    owner: the learner or loss that demands it.
    remedy: what to do instead.
    unknown: what must hold of a round with NaN there, in words, if NaN is legal as long as the
        round does not need that number. A round that does has a loss that is not finite.

    Drivers check for finite numbers only where there is no need; a need decides about NaN itself.
    """

    where: str
    legal_fn: Callable[..., Any]
    demand: str
    owner: str
    remedy: str = ""
    unknown: str = ""


def in_range(values: Any, low: Any, high: Any) -> Any:
    """Which values lie between `low` and `high`; just True if all values of an array do."""
    bounds = isinstance(low, np.generic | float) and isinstance(high, np.generic | float)
    host = isinstance(values, np.ndarray) and values.size > 0
    if bounds and host and low <= values.min() and values.max() <= high:  # NaN fails both
        return True
    return (values >= low) & (values <= high)


@pytree
class Breach:
    """The first number that broke a demand of a learner on its rounds, kept in its state.

    The learner plays NaN from the next round on. A driver of one learner refuses such a state. In a
    sweep, in `certify` and inside of `jit` it stays, and says when it happened.

    round: the number of the round, from 1 on; 0 if the demand was met. Rounds of weight 0 do not
        count.
    size: the number.
    """

    round: UInt32[Array, "*n"]
    size: Float[Array, "*n"]
    owner: str = static()
    demand: str = static()
    remedy: str = static()

    def after(self, is_broken: Bool[Array, ""], size: Array, now: Array) -> "Breach":
        """The same demand after round number `now`; `size` is what it was about in that round."""
        first = is_broken & (self.round == 0)
        number = jnp.where(first, now.astype(self.round.dtype), self.round)
        size = jnp.where(first, size, self.size).astype(self.size.dtype)
        return Breach(number, size, self.owner, self.demand, self.remedy)


def no_breach(params: PyTree, owner: str, demand: str, remedy: str) -> Breach:
    """A demand that is met so far.

    params: their dtype is that of the numbers which the demand is about.
    owner, demand, remedy: as in `Need`; `demand` ends in "must be at most ...".
    """
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(params)))
    return Breach(jnp.zeros((), jnp.uint32), zero, owner, demand, remedy)


def breaches_of(state: PyTree) -> list[Breach]:
    """The records of a state that say which demands were broken."""
    is_one = lambda node: isinstance(node, Breach)
    return list(filter(is_one, jax.tree.leaves(state, is_leaf=is_one)))


def refuse_breach(state: PyTree) -> None:
    """Refuse the state of a learner of which a demand was broken; traced states pass."""
    for one in breaches_of(state):
        if isinstance(one.round, Tracer) or not np.any(one.round):
            continue
        rounds, sizes = np.ravel(one.round), np.ravel(one.size)
        first = int(np.argmin(np.where(rounds > 0, rounds.astype(float), np.inf)))
        raise RefusedValue(
            f"{one.owner}: {one.demand}, got {sizes[first]:.4g} in its round {rounds[first]}; "
            f"{one.remedy}."
        )
