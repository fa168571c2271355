r"""The linear loss of a score and a real outcome: $\ell = -y s$.

It rewards scores of the sign of the outcome, without end. $\ell^* = 0$ at $\tau = -y$, else
infinite; $|y|$-Lipschitz and smooth with $\beta = 0$.

Luo, Optimal and Adaptive Online Learning, 2016, section 3.2.2.
"""

import jax.numpy as jnp

from olx.losses.ball import BallConstants
from olx.losses.score import ScoreLoss


def _aligned(_, score, outcome):
    return -outcome * score


def _conjugate(_, tau, outcome):
    return jnp.where(tau == -outcome, 0.0 * tau, jnp.inf)


def _prox(_, step, center, outcome):
    return center + step * outcome


def _largest(_, b, top):
    return top + 0 * b


def _none(_, b, top):
    return 0.0 * b


aligned = ScoreLoss(
    value_fn=_aligned,
    conjugate_fn=_conjugate,
    prox_fn=_prox,
    on_ball=BallConstants(_largest, _none, _largest),
)
