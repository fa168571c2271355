r"""Stumps learned online, as weak learners: for labels, and for any loss of a score.

`streaming_stumps`, for labels $\pm 1$: stump $i$ compares feature $i$ with the mean $\theta_{t,i}$
of its values so far. The votes of its two sides are the mean labels there,

$$h_{t,i}(x) = \frac{\sum_{s < t} p_s y_s [s \text{ on the side of } x]}{\sum_{s < t} p_s [s
  \text{ on the side of } x]} \in [-1, 1],$$

where round $s$ of weight $p_s$ was counted on the side $x_{s,i} > \theta_{s,i}$ or on the other
one, and an empty side votes 0. The prediction is that of the stump of fewest mistakes,
$$i_t = \arg\min_i E_{t,i}, \qquad E_{t,i} = \sum_{s < t} p_s [y_s h_{s,i}(x_s) \le 0],$$
the first one if several have as few. A mistake counts when it is made, before the stump learns from
it. So $E_{t,i} / \sum_s p_s$ is the progressive error of stump $i$ under the weights of a booster.
A round costs $O(d)$, and no step size is needed. The scale of a feature changes nothing.

`regression_stumps`: every feature $i$ has its own copy of a predictor in one dimension, such as
$w_{t,i} x_{t,i}$ with a slope $w_{t,i}$ that is learned by gradient descent. Copy $i$ predicts
$a_{t,i}$ and learns from its own loss, in the rounds where $x_{t,i} \ne 0$ only. With

$$L_{t,i} = \frac{\sum_{s < t, x_{s,i} \ne 0} p_s \ell_s(a_{s,i})}{\sum_{s < t, x_{s,i} \ne 0} p_s},
  \qquad i_t = \arg\min_{i : x_{t,i} \ne 0} L_{t,i},$$

the prediction is $a_{t,i_t}$. Features without a round so far come last; the first feature is taken
if several are best. The prediction is 0 for a row of zeros. On binary features, such as the words
of a text, this is a depth-one rule: the mean outcome given the most informative word of the row. A
feature that is always 1 gives the constant predictions.

Iba, Langley, Induction of One-Level Decision Trees, 1992, for stumps of batches; the online form,
with the running mean as threshold, is ours. Luo, Optimal and Adaptive Online Learning, 2016,
section 3.2.5, and Beygelzimer, Hazan, Kale, Luo, Online Gradient Boosting, 2015, section 6, for
regression. They leave open how a performance is averaged; here it is the mean loss over the rounds
of the feature.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree
from olx._refusal import RefusedType, own_name, public
from olx.core import Feedback, Learner
from olx.losses.score import signs
from olx.wrapper import OUTCOME, lift_needs


class Side(NamedTuple):
    """What the rounds on one side of each threshold have shown."""

    weight: Float[Array, " d"]
    labels: Float[Array, " d"]  # the sum of labels times weights


class StumpsState(NamedTuple):
    weight: Float[Array, ""]  # of all rounds so far
    mean: Float[Array, " d"]  # the thresholds
    low: Side
    high: Side
    mistakes: Float[Array, " d"]


@public
def streaming_stumps() -> Learner:
    """A weak learner for labels +1 and -1, with nothing to tune.

    The context is shaped like `params`; only the shape of `params` is used. The score lies in
    [-1, 1]: its sign is the vote.

    >>> import jax, jax.numpy as jnp, olx
    >>> rows = jax.random.normal(jax.random.key(0), (200, 5))
    >>> rounds = olx.Rounds(rows, jnp.where(rows[:, 3] > 0.1, 1.0, -1.0))
    >>> run = olx.rollout(streaming_stumps(), olx.losses.zero_one, rounds, jnp.zeros(5))
    >>> bool(run.losses[50:].mean() < 0.1), int(run.state.mistakes.argmin())
    (True, 3)
    """
    needs = (signs("streaming_stumps"),)
    return Learner(None, streaming_init, streaming_predict, streaming_update, needs=needs)


def streaming_init(hp: None, params: PyTree) -> StumpsState:
    zeros = jnp.zeros_like(ravel_pytree(params)[0])
    side = Side(zeros, zeros)
    return StumpsState(jnp.zeros_like(zeros[0]), zeros, side, side, zeros)


def streaming_predict(hp: None, state: StumpsState, context: PyTree) -> Array:
    votes, _ = stump_votes(state, _row("streaming_stumps", state.mean, context))
    best = jnp.arange(votes.size) == jnp.argmin(state.mistakes)
    return jnp.sum(jnp.where(best, votes, 0.0))


def streaming_update(hp: None, state: StumpsState, feedback: Feedback) -> StumpsState:
    x = _row("streaming_stumps", state.mean, feedback.context)
    votes, above = stump_votes(state, x)
    own = jnp.asarray(feedback.weight, x.dtype)
    total = state.weight + own
    wrong = feedback.outcome * votes <= 0
    return StumpsState(
        total,
        state.mean + safe.divide(own, total) * (x - state.mean),
        _counted(state.low, ~above, own, feedback.outcome),
        _counted(state.high, above, own, feedback.outcome),
        state.mistakes + own * wrong.astype(x.dtype),
    )


def stump_votes(
    state: StumpsState, x: Float[Array, " d"]
) -> tuple[Float[Array, " d"], Bool[Array, " d"]]:
    """The vote of every stump on a row, and which features are above their threshold."""
    above = x > state.mean
    low, high = (safe.divide(side.labels, side.weight) for side in (state.low, state.high))
    return jnp.where(above, high, low), above


def _counted(side: Side, here: Bool[Array, " d"], weight: Array, label: Array) -> Side:
    share = jnp.where(here, weight, 0.0)
    return Side(side.weight + share, side.labels + share * label)


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
    return Learner(hparams, regression_init, regression_predict, regression_update, needs=needs)


def regression_init(hp: RegressionStumpsHparams, params: PyTree) -> RegressionStumpsState:
    start = ravel_pytree(params)[0]
    zeros = jnp.zeros_like(start)
    return RegressionStumpsState(jax.vmap(hp.inner.init)(start), zeros, zeros)


def regression_predict(
    hp: RegressionStumpsHparams, state: RegressionStumpsState, context: PyTree
) -> Array:
    x = _row("regression_stumps", state.paid, context)
    last = jnp.finfo(x.dtype).max
    costs = safe.divide(state.paid, state.weight, otherwise=last / 2)
    best = jnp.argmin(jnp.where(x != 0, costs, last))
    return jnp.sum(jnp.where(jnp.arange(x.size) == best, feature_predictions(hp, state, x), 0.0))


def regression_update(
    hp: RegressionStumpsHparams, state: RegressionStumpsState, feedback: Feedback
) -> RegressionStumpsState:
    x = _row("regression_stumps", state.paid, feedback.context)
    scores = feature_predictions(hp, state, x)
    losses, slopes = jax.vmap(jax.value_and_grad(feedback.loss))(scores)
    weights = jnp.where(x != 0, jnp.asarray(feedback.weight, x.dtype), 0.0)

    def learn(own: PyTree, *parts: Array) -> PyTree:
        x, score, value, slope, weight = parts
        seen = feedback._replace(context=x, action=score, value=value, grad=slope, weight=weight)
        return hp.inner.update(own, seen)

    inner = jax.vmap(learn)(state.inner, x, scores, losses, slopes, weights)
    paid = state.paid + jnp.where(weights != 0, weights * losses, 0.0)
    return RegressionStumpsState(inner, state.weight + weights, paid)


@own_name("regression_stumps")
def feature_predictions(
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


def _row(owner: str, like: Float[Array, " d"], context: PyTree) -> Float[Array, " d"]:
    x = ravel_pytree(context)[0]
    with own_name(owner):
        check.same_shape("the context", x, "`params`", like)
    return x
