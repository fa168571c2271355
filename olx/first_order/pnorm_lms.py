r"""p-norm least mean squares: a filter in the geometry of a q-norm.

$$w_t = \nabla f_t^*(\theta_t), \quad f_t = X_t^2 f, \quad X_t = \max_{s \le t} \|x_s\|_*, \qquad
  \theta_{t+1} = \theta_t + (y_t - \langle w_t, x_t\rangle)\, x_t.$$

A filter is judged by how well it follows the clean signal $\langle u, x_t\rangle$, of which it sees
only $y_t$: for every $u$

$$\sum_t \langle w_t - u, x_t\rangle^2 \le 2 X_T^2 f(u) + \sum_t (y_t - \langle u, x_t\rangle)^2,$$

the price of the noise and no more; this is `olx.hindsight.filtering_bound`. With $q = 2$ it is
normalized LMS.

Kivinen, Warmuth, Hassibi, The p-norm Generalization of the LMS Algorithm for Adaptive Filtering,
2006; Orabona, Crammer, Cesa-Bianchi, 2015, for steps that need no bound on the $x_t$.
"""

from jaxtyping import PyTree
from optax import tree

from olx.core import Feedback, Learner, Scalar
from olx.frameworks.ftrl import ftrl
from olx.mirrors.base import MirrorMap
from olx.mirrors.pnorm import pnorm
from olx.regularizers.largest_context import largest_context


def pnorm_lms(q: Scalar = 2.0) -> Learner:
    r"""Least mean squares with $f = \|w\|_q^2 / (2(q - 1))$, for `olx.linear`.

    q: in (1, 2]; 2 for a dense filter, $2 \ln d / (2 \ln d - 1)$ for a sparse one.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(jnp.array([[2.0, 0.0], [2.0, 0.0]]), jnp.array([6.0, 6.0]))
    >>> learner = olx.linear(olx.first_order.pnorm_lms())
    >>> run = olx.rollout(
    ...     learner, olx.losses.squared, rounds, jnp.zeros(2), record=olx.record.actions
    ... )
    >>> run.trace.tolist()
    [0.0, 6.0]
    """
    return adaptive_filter(pnorm(q))


def adaptive_filter(mirror: MirrorMap) -> Learner:
    """The same filter with any strongly convex potential that states its norm and modulus.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(jnp.array([[2.0, 0.0], [2.0, 0.0]]), jnp.array([6.0, 6.0]))
    >>> ball = olx.mirrors.euclidean(olx.convex.sets.ball(1.0))
    >>> learner = olx.linear(olx.first_order.adaptive_filter(ball))
    >>> run = olx.rollout(
    ...     learner, olx.losses.squared, rounds, jnp.zeros(2), record=olx.record.actions
    ... )
    >>> run.trace.tolist()
    [0.0, 2.0]
    """
    return ftrl(1.0, largest_context(mirror), residual)


def residual(feedback: Feedback) -> PyTree:
    """What the decision missed of the outcome, times the context, as much as the round weighs."""
    missed = feedback.outcome - tree.vdot(feedback.action, feedback.context)
    return tree.scale(feedback.weight * missed, feedback.context)
