r"""Diagonal AdaGrad as follow the regularized leader.

$$w_t = \arg\min_w\; \eta \Big\langle \sum_{s < t} g_s, w \Big\rangle + \eta t F(w) +
  \frac12 \sum_i \sqrt{\delta + \textstyle\sum_{s < t} g_{s,i}^2}\; w_i^2.$$

This is the dual averaging form of the paper: the whole sum of gradients is divided by the root of
the sum of their squares. Most libraries use another form, $w_{t+1} = w_t - \eta g_t /
\sqrt{\sum_{s \le t} g_s^2}$, in which earlier steps are not rescaled. That form is
`olx.interop.optax.from_optax(optax.adagrad, learning_rate=eta)`.

With $a_{t,i} = \sqrt{\delta + \sum_{s < t} g_{s,i}^2}$ the regret on the losses $\ell_t + F$, for
rounds of weight 1, is at most

$$\sum_{s \le t} \ell_s(w_s) + F(w_s) - \ell_s(u) - F(u) \le \frac1{2\eta} \sum_i a_{t,i} u_i^2 +
  \frac\eta2 \sum_{s \le t} \sum_i \frac{g_{s,i}^2}{a_{s,i}}.$$

This is (5) of corollary 1, the theorem `composite_regret`, with $b_t(w) = \frac12 \sum_i a_{t,i}
w_i^2$. If $\delta \ge g_{s,i}^2$ for all $s$ and $i$, the right side is at most $\sum_i a_{t+1,i}
(u_i^2 / (2\eta) + \eta)$, the closed form of the paper.

Duchi, Hazan, Singer, Adaptive Subgradient Methods for Online Learning and Stochastic
Optimization, 2011; Orabona, Crammer, Cesa-Bianchi, 2015, corollary 1.
"""

from olx import _check as check
from olx._refusal import public
from olx.convex.prox import Penalty
from olx.core import Learner, Scalar
from olx.frameworks.ftrl import composite_regret, ftrl
from olx.regularizers.adagrad import adagrad as regularizer


@public
def adagrad(eta: Scalar, penalty: Penalty | None = None, delta: Scalar = 1.0) -> Learner:
    r"""AdaGrad, a step size per coordinate: `ftrl` with `olx.regularizers.adagrad`.

    eta: positive; in hindsight $\max_i |u_i| / \sqrt 2$ is best.
    penalty: $F$, a separable one, such as `olx.convex.l1(strength)`, added to every loss; no
        penalty if None.
    delta: positive.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[4.0, 0.5], [4.0, 0.5]]))
    >>> learner = olx.first_order.adagrad(1.0, delta=9.0)
    >>> run = olx.rollout(
    ...     learner, olx.losses.linear_loss, rounds, jnp.zeros(2), record=olx.record.actions
    ... )
    >>> run.trace[1, 0].item()
    -0.8
    """
    eta = check.positive("eta", eta)
    learner = ftrl(eta, regularizer(penalty, delta, rate=eta))  # f_t = b_t + eta t F
    b, value = regularizer(delta=delta), None if penalty is None else penalty.value
    regret = composite_regret(b, value)  # the theorem asks for b_t and F on their own
    return learner.carrying(regret)
