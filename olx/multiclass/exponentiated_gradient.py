r"""Multiclass exponentiated gradient: after a mistake, multiply the weights of two classes.

$$w_{r,i} \propto e^{\theta_{r,i}}, \qquad \theta_{y_t} \leftarrow \theta_{y_t} + \eta x_t, \quad
  \theta_{\hat y_t} \leftarrow \theta_{\hat y_t} - \eta x_t \text{ after a mistake,}$$

with $\hat y_t$ the best class other than $y_t$. All $k d$ weights are positive and sum to 1. It is
the conservative dual ascent on the multiclass hinge with the entropy, as
`olx.classification.winnow` is on the hinge. For two classes the difference of their weights is that
of balanced Winnow.

For $U$ in the simplex of $k d$ weights and any margin $\gamma$, with $H$ the sum of $\max(0, \gamma
- \min_{r \ne y_s} \langle u_{y_s} - u_r, x_s\rangle)$ and $X$ the largest $\|x_s\|_\infty$, both
over the set $M$ of mistakes,

$$\gamma |M| \le H + \frac{\log(k d)}\eta + \frac\eta2 X^2 |M|.$$

The learner carries the theorem for $\gamma = 1$;
`olx.classification.winnow.winnow_mistakes` makes it for any $\gamma$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, (5.7) and section
5.3.2.
"""

from olx import _check as check
from olx._refusal import public_as
from olx.classification.winnow import winnow_mistakes
from olx.core import Learner, Scalar
from olx.frameworks.ascents.base import conservative
from olx.frameworks.dual_ascent import dual_ascent
from olx.losses.class_hinges import multiclass_hinge
from olx.mirrors.entropy import negative_entropy


@public_as("multiclass.exponentiated_gradient")
def exponentiated_gradient(eta: Scalar) -> Learner:
    r"""Multiclass EG, a predictor for labels 0, ..., k - 1.

    eta: positive. For a comparator with margin $\gamma$ in all rounds, $\gamma / X^2$ gives at most
        $2 X^2 \log(k d) / \gamma^2$ mistakes.

    `params` is an array with one row per class; only its shape is used.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(jnp.eye(3)[jnp.array([0, 1, 2, 0, 1, 2])], jnp.array([0, 1, 2] * 2))
    >>> learner, loss = exponentiated_gradient(0.5), olx.losses.multiclass_zero_one
    >>> olx.rollout(learner, loss, rounds, jnp.zeros((3, 3))).losses.tolist()
    [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    """
    eta = check.positive("eta", eta)
    learner = dual_ascent(eta, negative_entropy(), multiclass_hinge, conservative())
    return learner.carrying(winnow_mistakes(1.0))
