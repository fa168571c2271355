"""Counting rounds, for processes that look at the time only."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree


class Clock(NamedTuple):
    rounds: Float[Array, ""]  # finished so far; a float of the decisions' own precision

    @property
    def now(self) -> Array:
        """The number of the round about to be played, from 1."""
        return self.rounds + 1


def start(hparams: Any, params: PyTree) -> Clock:
    return Clock(jnp.zeros((), jnp.result_type(*(jax.tree.leaves(params) or [float]))))


def tick(hparams: Any, clock: Clock, feedback: Any) -> Clock:
    return Clock(clock.rounds + 1)
