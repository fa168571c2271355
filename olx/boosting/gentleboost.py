r"""GentleBoost: the coefficient is twice the edge.

$$p_{t,i} \propto e^{-\sum_{s < t} \alpha_s y_i h_s(x_i)}, \qquad
  \alpha_t = [\langle p_t, v_t\rangle]_+ , \qquad v_{t,i} = y_i h_t(x_i).$$

For hypotheses $\pm 1$ it is the least squares fit of the labels by $\alpha h_t$. It needs no
logarithm, so a hypothesis without an error has a finite coefficient, and it takes real hypotheses
in $[-1, 1]$. Each round multiplies the exponential loss by at most $e^{-\langle p_t, v_t\rangle^2 /
2}$, as AdaBoost does: see `olx.boosting.exponential`.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 6.1.
"""

import jax.numpy as jnp
from jaxtyping import Array

from olx._refusal import public
from olx.boosting.booster import Coefficient, weighted
from olx.boosting.exponential import EXPONENTIAL
from olx.core import Learner
from olx.frameworks.omd import hedge


@public
def gentleboost() -> Learner:
    """GentleBoost, for hypotheses in [-1, 1].

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, -0.5, 1.0], [0.2, 1.0, -0.3]]))
    >>> run = olx.rollout(gentleboost(), olx.losses.linear_loss, rounds, jnp.ones(3) / 3)
    >>> [round(float(loss), 3) for loss in run.losses]
    [0.5, 0.49]
    """
    return weighted("gentleboost", hedge(2.0), Coefficient(None, alpha, pace), *EXPONENTIAL)


def alpha(_, p: Array, v: Array) -> Array:
    return pace(None, jnp.vdot(p, v))


def pace(_, edge: Array) -> Array:
    return jnp.maximum(edge, 0.0)
