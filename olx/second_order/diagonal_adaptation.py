r"""Diagonal adaptation: scale each coordinate of the rows before another learner sees them.

The inner learner sees $x_t / \sqrt{D_t}$ in place of $x_t$, entry by entry, where

$$D_t = 0.1 + \sum_{s < t} (\ell_s'(\text{score}_s)\, x_s)^2$$

sums the squared gradients in the raw rows. With `sketched_newton` and Oja's sketch this is the
learner of the experiments in the source; with gradient descent it is close to AdaGrad. (The source
gives $D_1$ only. A sum that starts at 0.1 is also defined for coordinates that were always 0.)

With `current` the inner learner predicts with $x_t / \sqrt{D_t}$ and then learns from
$x_t / \sqrt{D_{t+1}}$, in which this round counts. So no step is long, whatever the units of a
coordinate; this is what Vowpal Wabbit does, and the published errors are attained only so.

Luo, Optimal and Adaptive Online Learning, 2016, section 4.6.2.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import RefusedType, own_name, public
from olx.core import Feedback, Learner, Scalar, without_refresh
from olx.facts import of_wrapper
from olx.wrapper import WrapperView, lift_needs, lift_refresh, lift_theorems


@pytree
class AdaptationHparams:
    inner: Learner
    start: Scalar
    current: bool = static()


class AdaptationState(NamedTuple):
    inner: PyTree
    squares: PyTree  # D


@public
def diagonal_adaptation(inner: Learner, start: Scalar = 0.1, current: bool = False) -> Learner:
    r"""Play `inner` on rows whose entries are divided by the roots of $D_t$.

    inner: a predictor with one score, such as `sketched_newton` or `olx.linear(olx.ogd(0.1))`. Its
        theorems are about the scaled rows, and so is `u`.
    start: the first $D$, positive.
    current: whether a round counts in the scale of its own update. Then no theorem is known.

    A round of weight $c$ counts as the loss $c\, \ell$.

    >>> import jax.numpy as jnp, olx
    >>> learner = diagonal_adaptation(olx.linear(olx.ogd(1.0)), start=1.0)
    >>> rounds = olx.Rounds(jnp.array([[3.0, 0.0], [4.0, 1.0]]), jnp.ones(2))
    >>> run = olx.rollout(learner, olx.losses.squared, rounds, jnp.zeros(2))
    >>> run.state.squares[0] > 1 + 9  # the first slope is -1
    Array(True, dtype=bool)
    """
    check.instance("inner", inner, Learner)
    start = check.positive("start", start)
    check.instance("current", current, bool)
    return Learner(
        AdaptationHparams(inner, start, current),
        init,
        predict,
        update,
        facts=of_wrapper(inner, lift_refresh(VIEW, inner)),
        needs=lift_needs(VIEW, inner),
        theorems=() if current else lift_theorems(VIEW, inner),
    )


def init(hp: AdaptationHparams, params: PyTree) -> AdaptationState:
    squares = jax.tree.map(lambda leaf: jnp.full_like(leaf, hp.start), params)
    return AdaptationState(hp.inner.init(params), squares)


@own_name("diagonal_adaptation")
def predict(hp: AdaptationHparams, state: AdaptationState, context: PyTree) -> Array:
    score = hp.inner.predict(state.inner, _scaled(state, context))
    if np.shape(score) != ():
        raise RefusedType(
            "`inner` must predict one score, got an action of shape "
            f"{np.shape(score)}; lift a learner of points: `olx.linear(inner)`."
        )
    return score


def update(hp: AdaptationHparams, state: AdaptationState, feedback: Feedback) -> AdaptationState:
    inner, slope = without_refresh(hp.inner), feedback.weight * feedback.grad
    squares = jax.tree.map(lambda d, x: d + (slope * x) ** 2, state.squares, feedback.context)
    after = AdaptationState(state.inner, squares)
    scaled = _scaled_feedback(hp, after if hp.current else state, feedback)
    return AdaptationState(inner.update(state.inner, scaled), squares)


@own_name("diagonal_adaptation")
def _scaled(state: AdaptationState, context: PyTree) -> PyTree:
    check.same_shape("the context", context, "`params`", state.squares)
    return jax.tree.map(lambda x, d: x / jnp.sqrt(d), context, state.squares)


def _scaled_feedback(hp: AdaptationHparams, state: AdaptationState, feedback: Feedback) -> Feedback:
    return feedback._replace(context=_scaled(state, feedback.context))


VIEW = WrapperView(parts=("params", "outcome", "weight"), feedback_fn=_scaled_feedback)
