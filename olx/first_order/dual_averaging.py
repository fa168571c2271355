r"""Dual averaging with a penalty, as follow the regularized leader: RDA and diagonal AdaGrad.

Losses are linearized, the penalty $F$ is not. Regularized dual averaging plays

$$w_t = \arg\min_w\; \eta \Big\langle \sum_{s < t} g_s, w \Big\rangle + \eta t F(w) +
  \frac{t^p}{2} \|w\|^2.$$

With $F = \lambda \|\cdot\|_1$ a coordinate is exactly 0 while its mean gradient is below $\lambda$.
AdaGrad has a quadratic per coordinate in place of the last term,

$$\frac12 \sum_i a_{t,i} w_i^2, \qquad a_{t,i} = \sqrt{\delta + \textstyle\sum_{s < t} g_{s,i}^2}.$$

This is the dual averaging form of the paper: the whole sum of gradients is divided by the root of
the sum of their squares. Most libraries use another form, $w_{t+1} = w_t - \eta g_t /
\sqrt{\sum_{s \le t} g_s^2}$, in which earlier steps are not rescaled. That form is
`olx.interop.optax.from_optax(optax.adagrad, learning_rate=eta)`.

For rounds of weight 1, the regret on the losses $\ell_t + F$ is at most

$$\text{RDA: } \frac{T^p}{2\eta}\|u\|^2 + \frac\eta2 \sum_{s \le T} s^{-p} \|g_s\|^2, \qquad
  \text{AdaGrad: } \frac1{2\eta} \sum_i a_{T,i} u_i^2 + \frac\eta2 \sum_{s \le T} \sum_i
  \frac{g_{s,i}^2}{a_{s,i}}.$$

Both are (5) of corollary 1, the theorem `composite_regret`, with $b_t$ the quadratic. For RDA with
$p = 1/2$ there is also `olx.theorems.root_regret`. For AdaGrad, if $\delta \ge g_{s,i}^2$ for all
$s$ and $i$, the right side is at most $\sum_i a_{T+1,i} (u_i^2 / (2\eta) + \eta)$, the closed form
of the paper.

Xiao, Dual Averaging Methods for Regularized Stochastic Learning and Online Optimization, 2010;
Duchi, Hazan, Singer, Adaptive Subgradient Methods for Online Learning and Stochastic Optimization,
2011; Orabona, Crammer, Cesa-Bianchi, 2015, corollary 1.
"""

from olx import _check as check
from olx._refusal import public
from olx.convex.prox import Penalty
from olx.core import Learner, Scalar
from olx.frameworks.ftrl import composite_regret, ftrl
from olx.mirrors.euclidean import euclidean
from olx.regularizers.adagrad import adagrad as regularizer
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
