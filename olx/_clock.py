"""Counting rounds, for processes that look at the time only."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree, UInt32

from olx._pytree import pytree, static


@pytree
class Clock:
    rounds: UInt32[Array, ""]  # finished so far: a float32 that adds up ones stops at 2^24
    dtype: Any = static()  # of the decisions

    @property
    def past(self) -> Float[Array, ""]:
        """How many rounds are finished, in the decisions' own precision."""
        return self.rounds.astype(self.dtype)

    @property
    def now(self) -> Float[Array, ""]:
        """The number of the round about to be played, from 1."""
        return self.past + 1


def start(hparams: Any, params: PyTree) -> Clock:
    dtype = jnp.result_type(*(jax.tree.leaves(params) or [float]))
    return Clock(jnp.zeros((), jnp.uint32), dtype)


def tick(hparams: Any, clock: Clock, feedback: Any) -> Clock:
    return advance(clock, True)


def advance(clock: Clock, counts: Any) -> Clock:
    """Count the round where `counts` is true; the clock stands still at its last number."""
    last = jnp.asarray(np.iinfo(np.uint32).max, jnp.uint32)
    more = counts & (clock.rounds < last)
    return Clock(clock.rounds + more.astype(jnp.uint32), clock.dtype)
