r"""Wrappers that make a learner fit for gradient boosting: `clipped`, `scaled`, `symmetrized`.

Gradient boosting asks its copies for predictions in $[-D, D]$, from a class of functions that holds
$-f$ with each $f$, and zero.

`clipped` plays $c = \mathrm{clip}_{[-D, D]}(a)$ where `inner` plays $a$. In a round with loss
$\ell$, `inner` pays

$$\tilde\ell(a) = \ell(c) + \max\big(0, \ell'(c)\, \mathrm{sign}(a)\big)\, |a - c|,$$

the loss continued beyond $\pm D$ by its tangent where it rises, and flat where it would fall. It is
convex if $\ell$ is, and $\tilde\ell(a) \ge \ell(c)$: a regret of `inner` to predictions in
$[-D, D]$ is also one of this learner. For the squared loss and labels in $[-D, D]$ the slope of
$\tilde\ell$ is that of $\ell$ at the clipped prediction, as in Vowpal Wabbit.

`scaled` plays $\lambda a$, and `inner` pays $\ell(\lambda a) / \lambda$. A linear loss stays as it
is, and so does the Lipschitz constant of any loss. The base functions are $\lambda$ times as large,
so $D$ and the regret are too, and a function $f$ needs coefficients of a smaller sum: $\|f\|_1$
becomes $\max(1, \|f\|_1 / \lambda)$. With $\lambda D$ in place of $D$ the theorem of
`gradient_boost` is then corollary 4; it is better than for $\lambda = 1$ if $B$ grows slowly with
$\lambda$, as it does for common losses.

`symmetrized` competes with a class of functions, with their negatives and with zero. One copy of a
learner gets the losses $\ell$, the other one $a \mapsto \ell(-a)$. An expert learner mixes $A_+(x)$
and $-A_-(x)$: $y = p_+ A_+(x) - p_- A_-(x)$. Its regret to $f$ and to $-f$ is that of a copy plus
that of the expert learner. It is then no larger to their mean, which is zero, for convex losses.
Linear functions with weights in a ball or a box around 0 have these properties already.

Luo, Optimal and Adaptive Online Learning, 2016, appendix B.2.2 and section 3.2.1, footnote 11.
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
from olx.meta.mix import mix
from olx.wrapper import INNER, lift_needs


@pytree
class ClippedHparams:
    inner: Learner
    bound: Scalar


@pytree
class ScaledHparams:
    inner: Learner
    factor: Scalar


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
    hparams = ClippedHparams(inner, check.positive("bound", bound))
    facts, needs = of_wrapper(inner), lift_needs(INNER, inner)
    return Learner(hparams, inner_init, clipped_predict, clipped_update, facts=facts, needs=needs)


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
    return _multiple(inner, check.positive("factor", factor))


@public
def symmetrized(inner: Learner, mixer: Learner) -> Learner:
    r"""Mix the predictions of `inner` and the negative ones of a second copy.

    inner: a predictor of real numbers.
    mixer: a learner whose action is a distribution, such as `olx.hedge(rate)`. Losses of a booster
        at $|y| \le D$ lie in $[-D, D]$.

    Weights from 0 to 1, whose sum is 1, cannot follow a negative target; with a sign they can:

    >>> import jax.numpy as jnp, olx
    >>> from olx.boosting import symmetrized
    >>> weak = olx.linear(olx.omd(0.5, olx.mirrors.negative_entropy()))
    >>> rounds = olx.Rounds(jnp.array([[0.2, 0.9]] * 300), jnp.full(300, -0.5))
    >>> play = lambda one: olx.rollout(one, olx.losses.squared, rounds, jnp.ones(2) / 2)
    >>> both = play(symmetrized(weak, olx.hedge(0.5)))
    >>> bool(both.losses[-1] < 0.01 < 0.2 < play(weak).losses[-1])
    True
    """
    check.instance("inner", inner, Learner)
    return mix((inner, _multiple(inner, -1.0)), mixer)


def inner_init(hp: ClippedHparams | ScaledHparams, params: PyTree) -> PyTree:
    return hp.inner.init(params)


def clipped_predict(hp: ClippedHparams, state: PyTree, context: PyTree) -> Array:
    return jnp.clip(hp.inner.predict(state, context), -hp.bound, hp.bound)


def clipped_update(hp: ClippedHparams, state: PyTree, feedback: Feedback) -> PyTree:
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


def _multiple(inner: Learner, factor: Scalar) -> Learner:
    r"""`factor` times `inner`, for any factor but 0; `inner` pays $\ell(\lambda a) / |\lambda|$."""
    hparams = ScaledHparams(inner, factor)
    facts, needs = of_wrapper(inner), lift_needs(INNER, inner)
    return Learner(hparams, inner_init, scaled_predict, scaled_update, facts=facts, needs=needs)


def scaled_predict(hp: ScaledHparams, state: PyTree, context: PyTree) -> Array:
    return hp.factor * hp.inner.predict(state, context)


def scaled_update(hp: ScaledHparams, state: PyTree, feedback: Feedback) -> PyTree:
    loss = Partial(_rescaled, feedback.loss, hp.factor)
    action = hp.inner.predict(state, feedback.context)
    value, grad = jax.value_and_grad(loss)(action)
    return hp.inner.update(
        state, feedback._replace(action=action, loss=loss, value=value, grad=grad)
    )


def _rescaled(loss: Partial, factor: Scalar, action: Array) -> Array:
    return loss(factor * action) / jnp.abs(factor)
