r"""The linear loss of a score and a real outcome: $\ell = -y s$.

It rewards scores of the sign of the outcome, without end. $\ell^* = 0$ at $\tau = -y$, else
infinite; $|y|$-Lipschitz and smooth with $\beta = 0$.

Luo, Optimal and Adaptive Online Learning, 2016, section 3.2.2.
"""

import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx._call import Call
from olx.core import Scalar
from olx.losses.ball import BallConstants
from olx.losses.score import ScoreLoss


def _aligned(_: PyTree, score: Array, outcome: Array) -> Array:
    return -outcome * score


def _conjugate(_: PyTree, tau: Array, outcome: Array) -> Array:
    return jnp.where(tau == -outcome, 0.0 * tau, jnp.inf)


def _prox(_: PyTree, step: Array, center: Array, outcome: Array) -> Array:
    return center + step * outcome


def _largest(_: PyTree, b: Array, top: Scalar) -> Array:
    return top + 0 * b


def _none(_: PyTree, b: Array, top: Scalar) -> Array:
    return 0.0 * b


aligned = ScoreLoss(
    name=Call("aligned"),
    value_fn=_aligned,
    conjugate_fn=_conjugate,
    prox_fn=_prox,
    on_ball=BallConstants(_largest, _none, _largest),
)
