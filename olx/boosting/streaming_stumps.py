r"""Decision stumps learned online: one threshold per feature, and the best stump so far votes.

Stump $i$ compares feature $i$ with the mean $\theta_{t,i}$ of its values so far. The votes of its
two sides are the mean labels there,

$$h_{t,i}(x) = \frac{\sum_{s < t} p_s y_s [s \text{ on the side of } x]}{\sum_{s < t} p_s [s
  \text{ on the side of } x]} \in [-1, 1],$$

where round $s$ of weight $p_s$ was counted on the side $x_{s,i} > \theta_{s,i}$ or on the other
one, and an empty side votes 0. The prediction is that of the stump of fewest mistakes,
$$i_t = \arg\min_i E_{t,i}, \qquad E_{t,i} = \sum_{s < t} p_s [y_s h_{s,i}(x_s) \le 0],$$
the first one if several have as few. A mistake counts when it is made, before the stump learns from
it. So $E_{t,i} / \sum_s p_s$ is the progressive error of stump $i$ under the weights of a booster.

A round costs $O(d)$, and no step size is needed. The scale of a feature changes nothing.

Iba, Langley, Induction of One-Level Decision Trees, 1992, for batches; the online form, with the
running mean as threshold, is ours.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import own_name, public
from olx.core import Feedback, Learner
from olx.losses.score import signs


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
    return Learner(None, init, predict, update, needs=(signs("streaming_stumps"),))


def init(hp: None, params: PyTree) -> StumpsState:
    zeros = jnp.zeros_like(ravel_pytree(params)[0])
    side = Side(zeros, zeros)
    return StumpsState(jnp.zeros_like(zeros[0]), zeros, side, side, zeros)


def predict(hp: None, state: StumpsState, context: PyTree) -> Array:
    votes, _ = every(state, _row(state, context))
    best = jnp.arange(votes.size) == jnp.argmin(state.mistakes)
    return jnp.sum(jnp.where(best, votes, 0.0))


def update(hp: None, state: StumpsState, feedback: Feedback) -> StumpsState:
    x = _row(state, feedback.context)
    votes, above = every(state, x)
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


def every(
    state: StumpsState, x: Float[Array, " d"]
) -> tuple[Float[Array, " d"], Bool[Array, " d"]]:
    """The vote of every stump on a row, and which features are above their threshold."""
    above = x > state.mean
    low, high = (safe.divide(side.labels, side.weight) for side in (state.low, state.high))
    return jnp.where(above, high, low), above


def _counted(side: Side, here: Bool[Array, " d"], weight: Array, label: Array) -> Side:
    share = jnp.where(here, weight, 0.0)
    return Side(side.weight + share, side.labels + share * label)


@own_name("streaming_stumps")
def _row(state: StumpsState, context: PyTree) -> Float[Array, " d"]:
    x = ravel_pytree(context)[0]
    check.same_shape("the context", x, "`params`", state.mean)
    return x
