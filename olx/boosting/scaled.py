r"""A multiple of a learner: it plays $\lambda a$, and `inner` pays $\ell(\lambda a) / \lambda$.

A linear loss stays as it is, and so does the Lipschitz constant of any loss. The base functions are
$\lambda$ times as large, so $D$ and the regret are too, and a function $f$ needs coefficients of a
smaller sum: $\|f\|_1$ becomes $\max(1, \|f\|_1 / \lambda)$. With $\lambda D$ in place of $D$ the
theorem of `gradient_boost` is then corollary 4; it is better than for $\lambda = 1$ if $B$ grows
slowly with $\lambda$, as it does for common losses.

Luo, Optimal and Adaptive Online Learning, 2016, appendix B.2.2.
"""

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, PyTree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import public
from olx.core import Feedback, Learner, Scalar
from olx.facts import of_wrapper
from olx.wrapper import INNER, lift_needs


@pytree
class ScaledHparams:
    inner: Learner
    factor: Scalar


@public
def scaled(inner: Learner, factor: Scalar) -> Learner:
    r"""Play `factor` times the predictions of `inner`.

    inner: a predictor of real numbers.
    factor: $\lambda$, positive. Give `factor` times the bound of `inner` to the booster.

    >>> import jax.numpy as jnp, olx
    >>> weak = olx.linear(olx.ogd(0.05, olx.convex.sets.ball(0.1)))
    >>> strong = olx.boosting.scaled(weak, 10.0)
    >>> rounds = olx.Rounds(jnp.ones((40, 1)), jnp.full(40, 0.7))
    >>> run = olx.rollout(
    ...     strong, olx.losses.squared, rounds, jnp.zeros(1), record=olx.record.actions
    ... )
    >>> round(float(run.trace[-1]), 3)
    0.7
    """
    check.instance("inner", inner, Learner)
    return multiple(inner, check.positive("factor", factor))


def multiple(inner: Learner, factor: Scalar) -> Learner:
    r"""The same for any factor that is not 0; `inner` pays $\ell(\lambda a) / |\lambda|$."""
    facts, needs = of_wrapper(inner), lift_needs(INNER, inner)
    return Learner(ScaledHparams(inner, factor), init, predict, update, facts=facts, needs=needs)


def init(hp: ScaledHparams, params: PyTree) -> PyTree:
    return hp.inner.init(params)


def predict(hp: ScaledHparams, state: PyTree, context: PyTree) -> Array:
    return hp.factor * hp.inner.predict(state, context)


def update(hp: ScaledHparams, state: PyTree, feedback: Feedback) -> PyTree:
    loss = Partial(_rescaled, feedback.loss, hp.factor)
    action = hp.inner.predict(state, feedback.context)
    value, grad = jax.value_and_grad(loss)(action)
    return hp.inner.update(
        state, feedback._replace(action=action, loss=loss, value=value, grad=grad)
    )


def _rescaled(loss: Partial, factor: Scalar, action: Array) -> Array:
    return loss(factor * action) / jnp.abs(factor)
