r"""Losses of the residual $s - y$, for real outcomes.

- squared: $\ell = \frac12 (s - y)^2$, $\ell^* = \frac12 \tau^2 + \tau y$; 1-self-bounded;
- epsilon-insensitive: $\ell = \max(0, |s - y| - \epsilon)$, $\ell^* = \tau y + \epsilon |\tau|$ on
  $|\tau| \le 1$; 1-Lipschitz;
- absolute: the same with $\epsilon = 0$.

The slope at a kink is 0.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 5.3.
"""

import jax.numpy as jnp

from olx import _check as check
from olx.core import Scalar
from olx.losses.ball import BallConstants, one
from olx.losses.score import ScoreLoss


def epsilon_insensitive(epsilon: Scalar) -> ScoreLoss:
    r"""The part of the absolute residual above `epsilon`; smaller residuals cost nothing.

    epsilon: non-negative; 0 is the absolute loss.

    >>> float(epsilon_insensitive(0.5)(3.0, 1.0))
    1.5
    """
    epsilon = check.non_negative("epsilon_insensitive", "epsilon", epsilon)
    return ScoreLoss(
        epsilon,
        lipschitz=1.0,
        value_fn=_tube,
        conjugate_fn=_tube_conjugate,
        prox_fn=_tube_prox,
        on_ball=BallConstants(one),
    )


def _squared(_, score, outcome):
    return (score - outcome) ** 2 / 2


def _squared_conjugate(_, tau, outcome):
    return tau**2 / 2 + tau * outcome


def _squared_prox(_, step, center, outcome):
    return (center + step * outcome) / (1 + step)


def _tube(epsilon, score, outcome):
    excess = jnp.abs(score - outcome) - epsilon
    return jnp.where(excess <= 0, 0.0, excess)


def _tube_conjugate(epsilon, tau, outcome):
    return jnp.where(jnp.abs(tau) <= 1, tau * outcome + epsilon * jnp.abs(tau), jnp.inf)


def _tube_prox(epsilon, step, center, outcome):
    residual = center - outcome
    return center - jnp.sign(residual) * jnp.clip(jnp.abs(residual) - epsilon, 0.0, step)


def _squared_lipschitz(_, b, top):
    return b + top


def _squared_excess(_, b, top):
    return jnp.maximum(top - b, 0.0)


squared = ScoreLoss(
    self_bound=1.0,
    value_fn=_squared,
    conjugate_fn=_squared_conjugate,
    prox_fn=_squared_prox,
    on_ball=BallConstants(_squared_lipschitz, one, _squared_excess),
)
absolute = epsilon_insensitive(0.0)
