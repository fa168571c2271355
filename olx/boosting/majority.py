r"""The majority rule: every hypothesis has the coefficient $2 \gamma$, for a known edge $\gamma$.

$$p_{t,i} \propto e^{-2 \gamma \sum_{s < t} y_i h_s(x_i)}, \qquad \alpha_t = 2 \gamma .$$

It is the subgradient rule of the primal-dual framework with $c = 1 / (2 \gamma)$, on the loss
$[\langle w, v_t\rangle]_+$ and the entropy. `olx.dual_ascent` plays a score of a row that it sees
before it acts. Here the row $v_t$ answers the weights, so the rule is stated as Hedge. A hypothesis
without a positive edge has the coefficient 0.

If every edge is at least $\gamma$, the training error after $T$ rounds is at most $e^{-2 \gamma^2
T}$: see `olx.boosting.exponential`.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 6.1.
"""

import jax.numpy as jnp
from jaxtyping import Array

from olx._refusal import public
from olx.boosting.booster import Coefficient, promised_edge, weighted
from olx.boosting.exponential import EXPONENTIAL
from olx.core import Learner, Scalar
from olx.frameworks.omd import hedge


@public
def majority(gamma: Scalar) -> Learner:
    r"""Boosting by majority vote for weak learners with an edge of at least `gamma`.

    gamma: in (0, 1/2); the weighted error of every hypothesis is at most $1/2 - \gamma$.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, -1.0, 1.0], [1.0, 1.0, -1.0]]))
    >>> run = olx.rollout(majority(0.1), olx.losses.linear_loss, rounds, jnp.ones(3) / 3)
    >>> [round(float(loss), 3) for loss in run.losses]
    [0.333, 0.427]
    """
    gamma = promised_edge("gamma", gamma)
    rule = Coefficient(gamma, alpha, pace, promised)
    return weighted("majority", hedge(2.0), rule, *EXPONENTIAL)


def alpha(gamma: Scalar, p: Array, v: Array) -> Array:
    return pace(gamma, jnp.vdot(p, v))


def pace(gamma: Scalar, edge: Array) -> Array:
    return jnp.where(edge > 0, 2 * jnp.asarray(gamma, edge.dtype), 0.0)


def promised(gamma: Scalar) -> Scalar:
    return gamma
