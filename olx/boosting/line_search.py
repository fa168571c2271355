r"""The exact line search: the best coefficient for real hypotheses.

$$p_{t,i} \propto e^{-\sum_{s < t} \alpha_s y_i h_s(x_i)}, \qquad
  \alpha_t = \arg\min_{0 \le \alpha \le c} \sum_i p_{t,i} e^{-\alpha v_{t,i}}, \qquad
  v_{t,i} = y_i h_t(x_i).$$

The logarithm of the sum is convex. Its derivative is minus the mean of $v$ under the weights after
the step, which a root finder makes 0. For hypotheses $\pm 1$ the rule is AdaBoost, and its theorem
is that of AdaBoost.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, (3.12) and section 6.1;
Schapire, Singer, Improved Boosting Algorithms Using Confidence-rated Predictions, 1999.
"""

import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array

from olx._refusal import public
from olx.boosting.adaboost import exact, rounding_error
from olx.boosting.booster import largest, weighted
from olx.boosting.exponential import EXPONENTIAL
from olx.convex.roots import root
from olx.core import Learner, Scalar
from olx.frameworks.omd import hedge


@public
def line_search(cap: Scalar | None = None) -> Learner:
    r"""Boosting with the best coefficient, for hypotheses in [-1, 1].

    cap: the largest coefficient. Without it a hypothesis that is wrong on no example, whose
        coefficient would be infinite, has $\frac12 \ln(1 / \epsilon)$, with $\epsilon$ the rounding
        error, divided by its largest value.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, -0.5, 1.0], [0.2, 1.0, -0.3]]))
    >>> run = olx.rollout(line_search(), olx.losses.linear_loss, rounds, jnp.ones(3) / 3)
    >>> [round(float(loss), 3) for loss in run.losses]
    [0.5, 0.65]
    """
    rule = exact(largest(cap), alpha)
    return weighted("line_search", hedge(2.0), rule, *EXPONENTIAL)


def alpha(cap: Scalar | None, p: Array, v: Array) -> Array:
    edge, errs = jnp.vdot(p, v), jnp.any((p > 0) & (v < 0))
    top = jnp.max(jnp.where(p > 0, v, 0.0))
    free = jnp.where(errs, jnp.inf, rounding_error(p) / jnp.where(top > 0, top, 1.0))
    end = free if cap is None else jnp.asarray(cap, p.dtype)
    ahead = edge > 0
    end, scores = jnp.where(ahead, end, 1.0), jnp.where(ahead, v, 0.0)  # no search without an edge
    start = jnp.minimum(jnp.where(ahead, edge, 0.0), end)
    best = root(Partial(minus_mean, p, scores), jnp.zeros_like(start), end, start)
    # At the end of the bracket the coefficient does not depend on the hypothesis.
    return jnp.where(ahead, jnp.where(best < end, best, end), 0.0)


def minus_mean(p: Array, v: Array, alpha: Array) -> Array:
    """Minus the mean of v under the weights after a step of length alpha."""
    least = jnp.min(jnp.where(p > 0, v, 1.0))
    tilted = p * jnp.exp(-alpha * jnp.maximum(v - least, 0.0))
    return -jnp.sum(tilted * v) / jnp.sum(tilted)
