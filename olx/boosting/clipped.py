r"""A predictor whose predictions are clipped to $[-D, D]$, as gradient boosting asks of its copies.

The learner plays $c = \mathrm{clip}_{[-D, D]}(a)$ where `inner` plays $a$. In a round with loss
$\ell$, `inner` pays

$$\tilde\ell(a) = \ell(c) + \max\big(0, \ell'(c)\, \mathrm{sign}(a)\big)\, |a - c|,$$

the loss continued beyond $\pm D$ by its tangent where it rises, and flat where it would fall. It is
convex if $\ell$ is, and $\tilde\ell(a) \ge \ell(c)$: a regret of `inner` to predictions in
$[-D, D]$ is also one of this learner. For the squared loss and labels in $[-D, D]$ the slope of
$\tilde\ell$ is that of $\ell$ at the clipped prediction, as in Vowpal Wabbit.
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
class ClippedHparams:
    inner: Learner
    bound: Scalar


@public
def clipped(inner: Learner, bound: Scalar = 1.0) -> Learner:
    """Clip the predictions of `inner` to [-`bound`, `bound`].

    inner: a predictor of real numbers.
    bound: positive; for regression the largest size of an outcome.

    >>> import jax.numpy as jnp, olx
    >>> learner = olx.boosting.clipped(olx.linear(olx.ogd(1.0)), 0.5)
    >>> rounds = olx.Rounds(jnp.ones((3, 1)), jnp.array([2.0, 2.0, -1.0]))
    >>> run = olx.rollout(
    ...     learner, olx.losses.squared, rounds, jnp.zeros(1), record=olx.record.actions
    ... )
    >>> run.trace.tolist()
    [0.0, 0.5, 0.5]
    """
    check.instance("inner", inner, Learner)
    bound = check.positive("bound", bound)
    facts, needs = of_wrapper(inner), lift_needs(INNER, inner)
    return Learner(ClippedHparams(inner, bound), init, predict, update, facts=facts, needs=needs)


def init(hp: ClippedHparams, params: PyTree) -> PyTree:
    return hp.inner.init(params)


def predict(hp: ClippedHparams, state: PyTree, context: PyTree) -> Array:
    return jnp.clip(hp.inner.predict(state, context), -hp.bound, hp.bound)


def update(hp: ClippedHparams, state: PyTree, feedback: Feedback) -> PyTree:
    a = hp.inner.predict(state, feedback.context)
    paid = Partial(continued, feedback.loss, hp.bound)
    falls = (jnp.abs(a) > hp.bound) & (feedback.grad * jnp.sign(a) < 0)
    grad = jnp.where(falls, 0.0, feedback.grad)
    seen = feedback._replace(action=a, loss=paid, value=paid(a), grad=grad)
    return hp.inner.update(state, seen)


def continued(loss: Partial, bound: Scalar, a: Array) -> Array:
    r"""$\tilde\ell$."""
    c = jnp.clip(a, -bound, bound)
    value, slope = jax.value_and_grad(loss)(c)
    return value + jnp.maximum(slope * jnp.sign(a), 0.0) * jnp.abs(a - c)
