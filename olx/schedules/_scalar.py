"""Functions shared by schedules."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx.core import Feedback


def zero(params: PyTree) -> Float[Array, ""]:
    """0 in the dtype of the decisions."""
    return jnp.zeros((), jnp.result_type(*jax.tree.leaves(params)))


def no_stats(hparams: PyTree, params: PyTree) -> None:
    """The statistics of a constant schedule."""
    return None


def no_news(hparams: PyTree, stats: None, feedback: Feedback) -> None:
    return None
