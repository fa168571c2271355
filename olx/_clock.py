"""A counter of rounds, for processes that depend on the number of the round only."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree, UInt32

from olx._pytree import pytree, static


@pytree
class Clock:
    rounds: UInt32[Array, ""]  # finished so far; a float32 counter would stop at 2^24
    dtype: Any = static()  # of the decisions

    @property
    def past(self) -> Float[Array, ""]:
        """The number of finished rounds, in the dtype of the decisions."""
        return self.rounds.astype(self.dtype)

    @property
    def now(self) -> Float[Array, ""]:
        """The number of the next round, counted from 1."""
        return self.past + 1


def start(hparams: PyTree, params: PyTree) -> Clock:
    dtype = jnp.result_type(*(jax.tree.leaves(params) or [float]))
    return Clock(jnp.zeros((), jnp.uint32), dtype)


def tick(hparams: PyTree, clock: Clock, feedback: object) -> Clock:
    return advance(clock, True)


def advance(clock: Clock, counts: Any) -> Clock:
    """Count one more round if `counts` is true; the count stops at the largest uint32."""
    last = jnp.asarray(np.iinfo(np.uint32).max, jnp.uint32)
    more = counts & (clock.rounds < last)
    return Clock(clock.rounds + more.astype(jnp.uint32), clock.dtype)
