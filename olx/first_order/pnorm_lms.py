r"""p-norm least mean squares: an adaptive filter in the geometry of a q-norm.

$$w_t = \nabla f_t^*(\theta_t), \quad f_t = X_t^2 f, \quad X_t = \max_{s \le t} \|x_s\|_*, \qquad
  \theta_{t+1} = \theta_t + (y_t - \langle w_t, x_t\rangle)\, x_t.$$

A filter must follow the clean signal $\langle u, x_t\rangle$ but sees only the noisy $y_t$. For
every $u$ and rounds of weight 1

$$\sum_{s \le t} \langle w_s - u, x_s\rangle^2 \le \frac{2 X_t^2}{\beta} f(u) +
  \sum_{s \le t} (y_s - \langle u, x_s\rangle)^2.$$

The last sum is the noise. $p = 2$ is normalized LMS.

Kivinen, Warmuth, Hassibi, The p-norm Generalization of the LMS Algorithm for Adaptive Filtering,
2006; Orabona, Crammer, Cesa-Bianchi, 2015, for step sizes that need no bound on the $x_t$.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx._refusal import public
from olx._words import computed
from olx.certificate import DOMAIN, UNIT_WEIGHTS, Certificate
from olx.core import Feedback, Learner, Scalar
from olx.frameworks.ftrl import FTRLHparams, FTRLState, ftrl
from olx.frameworks.lift import dot
from olx.mirrors.base import MirrorMap
from olx.mirrors.pnorm import pnorm
from olx.regularizers.growing import largest_context
from olx.theorem import MET, ZERO, latest, summed


@public
def pnorm_lms(p: Scalar = 2.0) -> Learner:
    r"""Least mean squares with $f = \|w\|_q^2 / (2(q - 1))$, to be used inside `olx.linear`.

    p: at least 2, with $\frac1p + \frac1q = 1$; 2 for a dense filter, $2 \ln d$ for a sparse one.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(jnp.array([[2.0, 0.0], [2.0, 0.0]]), jnp.array([6.0, 6.0]))
    >>> learner = olx.linear(olx.first_order.pnorm_lms())
    >>> run = olx.rollout(
    ...     learner, olx.losses.squared, rounds, jnp.zeros(2), record=olx.record.actions
    ... )
    >>> run.trace.tolist()
    [0.0, 6.0]
    """
    p = check.between("p", p, 2, float("inf"))
    return computed(adaptive_filter(pnorm(p / (p - 1))), p=_p_of)


def _p_of(learner: Learner) -> Scalar:
    return learner.hparams.regularizer.hparams.norm.dual.args[0]


@public
def adaptive_filter(mirror: MirrorMap) -> Learner:
    """The filter of `pnorm_lms` with any mirror map that states its norm and modulus.

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
    return ftrl(1.0, largest_context(mirror), residual).carrying(filtering)


def residual(feedback: Feedback) -> PyTree:
    """The residual of the decision times the context and the weight of the round."""
    missed = feedback.outcome - tree.vdot(feedback.action, feedback.context)
    return tree.scale(feedback.weight * missed, feedback.context)


class Account(NamedTuple):
    left: Float[Array, ""]
    noise: Float[Array, ""]
    largest: Float[Array, ""]  # X_t
    unit: Bool[Array, ""]  # whether all weights were 1


def start(hp: FTRLHparams, state: FTRLState, u: PyTree) -> Account:
    check.comparator(u, state.theta.value)
    return Account(ZERO, ZERO, ZERO, MET)


def terms(hp: FTRLHparams, state: FTRLState, feedback: Feedback, u: PyTree) -> Account:
    clean = dot(u, feedback.context)
    return Account(
        (dot(feedback.action, feedback.context) - clean) ** 2,
        (feedback.outcome - clean) ** 2,
        latest(hp.regularizer.update(state.stats, feedback)),
        jnp.asarray(feedback.weight) == 1,
    )


def both_sides(hp: FTRLHparams, account: Account, u: PyTree) -> Certificate:
    mirror = hp.regularizer.hparams
    paid = 2 * account.largest**2 * mirror.potential(u) / mirror.modulus
    right = paid + account.noise
    proof = Certificate(account.left, right, account.left + right)
    return proof.under({DOMAIN: mirror.outside(u) == 0, UNIT_WEIGHTS: account.unit})


filtering = summed("filtering", "Orabona et al. 2015, adaptive filtering", terms, both_sides, start)
