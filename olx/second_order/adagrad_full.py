r"""AdaGrad with a full matrix, as follow the regularized leader.

$$w_t = -\eta \big( \delta I + G_t^{1/2} \big)^{-1} \sum_{s < t} g_s, \qquad
  G_t = \sum_{s < t} g_s g_s^\top.$$

For every $u$, convex losses and rounds of weight 1, with $A_s = \delta I + G_s^{1/2}$,

$$\sum_{s \le t} \ell_s(w_s) - \ell_s(u) \le \frac1{2\eta} u^\top A_t u +
  \frac\eta2 \sum_{s \le t} g_s^\top A_s^{-1} g_s.$$

`olx.first_order.adagrad` keeps the diagonal of the matrix alone, at $O(d)$ per round. The root of a
matrix has no rank-one update, so a round costs $O(d^3)$ here: use it for a few hundred coordinates
at most, or `sketched_newton` beyond.

Duchi, Hazan, Singer, Adaptive Subgradient Methods for Online Learning and Stochastic
Optimization, 2011; Orabona, Crammer, Cesa-Bianchi, 2015, corollary 1 (5).
"""

from olx import _check as check
from olx._refusal import public
from olx.core import Learner, Scalar
from olx.frameworks.ftrl import composite_regret, ftrl
from olx.regularizers.adagrad import full_adagrad


@public
def adagrad_full(eta: Scalar, delta: Scalar = 1.0) -> Learner:
    r"""AdaGrad with a full matrix, a point learner for vectors: lift it with `olx.linear`.

    eta: positive; in hindsight $\|u\| / \sqrt 2$ is best.
    delta: positive.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[3.0, 4.0], [3.0, 4.0]]))
    >>> learner = olx.second_order.adagrad_full(1.0, delta=1.0)
    >>> run = olx.rollout(
    ...     learner, olx.losses.linear_loss, rounds, jnp.zeros(2), record=olx.record.actions
    ... )
    >>> [round(w, 5) for w in run.trace[1].tolist()]
    [-0.5, -0.66667]
    """
    eta = check.positive("eta", eta)
    regularizer = full_adagrad(check.positive("delta", delta))
    return ftrl(eta, regularizer).carrying(composite_regret(regularizer))
