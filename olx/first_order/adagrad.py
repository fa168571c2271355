r"""Diagonal AdaGrad as follow the regularized leader.

$$w_t = \arg\min_w\; \eta \Big\langle \sum_{s < t} g_s, w \Big\rangle + \eta t F(w) +
  \frac12 \sum_i \sqrt{\delta + \textstyle\sum_{s < t} g_{s,i}^2}\; w_i^2.$$

This is the dual averaging form of the paper: the whole sum of gradients is divided by the root of
the sum of their squares. Most libraries use another form, $w_{t+1} = w_t - \eta g_t /
\sqrt{\sum_{s \le t} g_s^2}$, in which earlier steps are not rescaled. That form is
`optax_gradient(optax.adagrad(eta))`.

Duchi, Hazan, Singer, Adaptive Subgradient Methods for Online Learning and Stochastic
Optimization, 2011; Orabona, Crammer, Cesa-Bianchi, 2015, corollary 1.
"""

import dataclasses

from olx import _check as check
from olx.convex.prox import Penalty
from olx.core import Learner, Scalar
from olx.frameworks.corollaries import composite_regret
from olx.frameworks.ftrl import ftrl
from olx.regularizers.adagrad import adagrad as regularizer


def adagrad(eta: Scalar, delta: Scalar = 1.0, penalty: Penalty | None = None) -> Learner:
    r"""AdaGrad, a step size per coordinate: `ftrl` with `olx.regularizers.adagrad`.

    eta: positive; in hindsight $\max_i |u_i| / \sqrt 2$ is best.
    delta: positive. The theorem `composite_regret` holds for any; the closed form of the paper
        needs at least the square of the largest gradient.
    penalty: a separable one, such as `olx.convex.l1(strength)`, added to every loss.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[4.0, 0.5], [4.0, 0.5]]))
    >>> learner = olx.first_order.adagrad(1.0, delta=9.0)
    >>> run = olx.rollout(
    ...     learner, olx.losses.linear_loss, rounds, jnp.zeros(2), record=olx.record.actions
    ... )
    >>> run.trace[1, 0].item()
    -0.8
    """
    eta = check.positive("adagrad", "eta", eta)
    learner = ftrl(eta, regularizer(delta, penalty, rate=eta))
    more = composite_regret(regularizer(delta), None if penalty is None else penalty.value)
    return dataclasses.replace(learner, theorems=(*learner.theorems, more))
