r"""Regularized dual averaging: losses are linearized, the penalty is not.

$$w_t = \arg\min_w\; \eta \Big\langle \sum_{s < t} g_s, w \Big\rangle + \eta t F(w) +
  \frac{t^p}{2} \|w\|^2.$$

With $F = \lambda \|\cdot\|_1$ a coordinate is exactly 0 while its mean gradient is below $\lambda$.
On the losses $\ell_t + F$ the regret is at most $\frac{T^p}{2\eta}\|u\|^2 + \frac\eta2 \sum_t
t^{-p} \|g_t\|^2$ (theorem `composite_regret`; for $p = 1/2$ also `olx.theorems.root_regret`).

Xiao, Dual Averaging Methods for Regularized Stochastic Learning and Online Optimization, 2010;
Orabona, Crammer, Cesa-Bianchi, 2015, corollary 1.
"""

from olx import _check as check
from olx._refusal import public
from olx.convex.prox import Penalty
from olx.core import Learner, Scalar
from olx.frameworks.corollaries import composite_regret
from olx.frameworks.ftrl import ftrl
from olx.mirrors.euclidean import euclidean
from olx.regularizers.growing import composite, growing


@public
def rda(eta: Scalar, penalty: Penalty, power: Scalar = 0.5) -> Learner:
    """Dual averaging with a penalty on every loss: `ftrl` with `olx.regularizers.composite`.

    eta: positive; the larger, the closer decisions follow the average gradient.
    penalty: such as `olx.convex.l1(strength)` or `group_l2(strength)`.
    power: 1/2 for an unknown number of rounds, 0 for a quadratic that does not grow.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[3.0, 1.0], [3.0, 1.0]]))
    >>> learner = olx.first_order.rda(0.5, olx.convex.l1(1.0), power=0.0)
    >>> run = olx.rollout(
    ...     learner, olx.losses.linear_loss, rounds, jnp.zeros(2), record=olx.record.actions
    ... )
    >>> run.trace.tolist()
    [[0.0, 0.0], [-0.5, 0.0]]
    """
    eta = check.positive("eta", eta)
    learner = ftrl(eta, composite(penalty, rate=eta, power=power))  # f_t = b_t + eta t F
    b = growing(euclidean(), power)
    regret = composite_regret(b, penalty.value)  # the theorem asks for b_t and F on their own
    return learner.carrying(regret)
