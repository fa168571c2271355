r"""Regression stumps: one regression per feature, and the best feature of the row predicts.

Every feature $i$ has its own copy of a predictor in one dimension, such as $w_{t,i} x_{t,i}$ with a
slope $w_{t,i}$ that is learned by gradient descent. Copy $i$ predicts $a_{t,i}$ and learns from its
own loss, in the rounds where $x_{t,i} \ne 0$ only. With

$$L_{t,i} = \frac{\sum_{s < t, x_{s,i} \ne 0} p_s \ell_s(a_{s,i})}{\sum_{s < t, x_{s,i} \ne 0} p_s},
  \qquad i_t = \arg\min_{i : x_{t,i} \ne 0} L_{t,i},$$

the prediction is $a_{t,i_t}$. Features without a round so far come last; the first
feature is taken if several are best. The prediction is 0 for a row of zeros.

On binary features, such as the words of a text, this is a depth-one rule: the mean outcome given
the most informative word of the row. A feature that is always 1 gives the constant predictions.

Luo, Optimal and Adaptive Online Learning, 2016, section 3.2.5; Beygelzimer, Hazan, Kale, Luo,
Online Gradient Boosting, 2015, section 6. They leave open how a performance is averaged; here it is
the mean loss over the rounds of the feature.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree
from olx._refusal import RefusedType, own_name, public
from olx.core import Feedback, Learner
from olx.wrapper import OUTCOME, lift_needs


@pytree
class RegressionStumpsHparams:
    inner: Learner  # predicts from one feature


class RegressionStumpsState(NamedTuple):
    inner: PyTree  # stacked: one state per feature
    weight: Float[Array, " d"]  # of the rounds in which the feature is not zero
    paid: Float[Array, " d"]  # the losses of these rounds, times their weights


@public
def regression_stumps(inner: Learner) -> Learner:
    """The best of one-dimensional regressions, a weak learner for any loss of a score.

    inner: a predictor whose context is one number: `olx.linear` of a point learner, or
        `olx.first_order.normalized_adagrad`, which does not depend on the scales of features.

    The context is shaped like `params`.

    >>> import jax, jax.numpy as jnp, olx
    >>> rows = jax.random.bernoulli(jax.random.key(0), 0.5, (300, 4)).astype(float)
    >>> rounds = olx.Rounds(rows, 2 * rows[:, 2] - 1)
    >>> learner = regression_stumps(olx.linear(olx.ogd(0.1)))
    >>> run = olx.rollout(learner, olx.losses.squared, rounds, jnp.zeros(4))
    >>> (run.state.paid / run.state.weight).argmin().item()
    2
    """
    check.instance("inner", inner, Learner)
    hparams, needs = RegressionStumpsHparams(inner), lift_needs(OUTCOME, inner)
    return Learner(hparams, init, predict, update, needs=needs)


def init(hp: RegressionStumpsHparams, params: PyTree) -> RegressionStumpsState:
    start = ravel_pytree(params)[0]
    zeros = jnp.zeros_like(start)
    return RegressionStumpsState(jax.vmap(hp.inner.init)(start), zeros, zeros)


def predict(hp: RegressionStumpsHparams, state: RegressionStumpsState, context: PyTree) -> Array:
    x = _row(state, context)
    last = jnp.finfo(x.dtype).max
    costs = safe.divide(state.paid, state.weight, otherwise=last / 2)
    best = jnp.argmin(jnp.where(x != 0, costs, last))
    return jnp.sum(jnp.where(jnp.arange(x.size) == best, every(hp, state, x), 0.0))


def update(
    hp: RegressionStumpsHparams, state: RegressionStumpsState, feedback: Feedback
) -> RegressionStumpsState:
    x = _row(state, feedback.context)
    scores = every(hp, state, x)
    losses, slopes = jax.vmap(jax.value_and_grad(feedback.loss))(scores)
    weights = jnp.where(x != 0, jnp.asarray(feedback.weight, x.dtype), 0.0)

    def learn(own: PyTree, x: Array, score: Array, value: Array, slope: Array, weight: Array):
        seen = feedback._replace(context=x, action=score, value=value, grad=slope, weight=weight)
        return hp.inner.update(own, seen)

    inner = jax.vmap(learn)(state.inner, x, scores, losses, slopes, weights)
    paid = state.paid + jnp.where(weights != 0, weights * losses, 0.0)
    return RegressionStumpsState(inner, state.weight + weights, paid)


@own_name("regression_stumps")
def every(
    hp: RegressionStumpsHparams, state: RegressionStumpsState, x: Float[Array, " d"]
) -> Float[Array, " d"]:
    """The prediction of every feature."""
    scores = jax.vmap(hp.inner.predict)(state.inner, x)
    if np.shape(scores) != x.shape:
        raise RefusedType(
            "`inner` must be a predictor, whose action for one number is one "
            "score. `olx.linear` makes a point learner a predictor."
        )
    return scores


@own_name("regression_stumps")
def _row(state: RegressionStumpsState, context: PyTree) -> Float[Array, " d"]:
    x = ravel_pytree(context)[0]
    check.same_shape("the context", x, "`params`", state.paid)
    return x
