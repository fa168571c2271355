r"""Play another learner and keep the weighted mean of its decisions.

$$\bar w_T = \frac{\sum_{t \le T} a_t w_t}{\sum_{t \le T} a_t}.$$

For convex losses, independent rounds and $a_t = 1$, the expected risk of $\bar w_T$ is at most that
of the best fixed decision plus the regret divided by $T$. Rising weights give early decisions less
influence, and suit learners with small weighted regret.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section B.3; Zhang,
Mathematical Analysis of Machine Learning Algorithms, 2023, chapter 14.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _clock as clock
from olx import _safe as safe
from olx._clock import Clock
from olx._pytree import pytree
from olx.core import WEIGHT, Feedback, Learner, Process, Scalar
from olx.needs import PARTS, within
from olx.schedules.decay import as_schedule
from olx.theorem import INNER, through


@pytree
class AverageHparams:
    inner: Learner
    weights: Process


class AverageState(NamedTuple):
    inner: PyTree
    mean: PyTree
    total: Float[Array, ""]  # the sum of the weights so far
    stats: PyTree


def average(inner: Learner, weights: Scalar | Process = 1.0) -> Learner:
    r"""Play `inner` and keep the mean of its decisions, one per round, before its update.

    inner: a learner of points; for a predictor, lift the result: `olx.linear(average(inner))`.
    weights: $a_t$, multiplied by the weight of the round; a number for equal weights, `rising()`,
        or any schedule.

    >>> import jax.numpy as jnp, olx
    >>> learner = average(olx.ogd(1.0))
    >>> rounds = olx.Rounds(None, jnp.ones((4, 1)))
    >>> run = olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.zeros(1))
    >>> run.losses.tolist(), averaged(run.state).tolist()
    ([0.0, -1.0, -2.0, -3.0], [-1.5])
    """
    check.instance("average", "inner", inner, Learner)
    hparams = AverageHparams(inner, as_schedule("average", "weights", weights, WEIGHT))
    needs = within(inner, "inner", *PARTS)
    theorems = tuple(through(INNER, one) for one in inner.theorems)
    return Learner(hparams, init, predict, update, needs=needs, theorems=theorems)


def averaged(state: AverageState) -> PyTree:
    """The mean decision, from the state of an `average`, lifted or not; 0 before round 1."""
    return state.mean


def rising(shift: Scalar = 1.0) -> Process:
    r"""Weights $a_t = t + $ `shift`; `shift` = 1 gives those of `strongly_convex_ogd`.

    >>> import jax.numpy as jnp
    >>> weights = rising()
    >>> float(weights.at(weights.init(jnp.zeros(2))))
    2.0
    """
    shift = check.non_negative("rising", "shift", shift)
    return Process(shift, clock.start, clock.tick, _later, WEIGHT)


def init(hp: AverageHparams, params: PyTree) -> AverageState:
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(params)))
    return AverageState(
        hp.inner.init(params), tree.zeros_like(params), zero, hp.weights.init(params)
    )


def predict(hp: AverageHparams, state: AverageState, context: PyTree) -> PyTree:
    return hp.inner.predict(state.inner, context)


def update(hp: AverageHparams, state: AverageState, feedback: Feedback) -> AverageState:
    check.same_shape("average", "the action", feedback.action, "`params`", state.mean)
    own = feedback.weight * hp.weights.at(state.stats, feedback.context)
    total = state.total + own
    share = own / safe.or_one(total)
    return AverageState(
        hp.inner.update(state.inner, feedback),
        jax.tree.map(lambda mean, w: mean + share * (w - mean), state.mean, feedback.action),
        total,
        hp.weights.update(state.stats, feedback),
    )


def _later(shift: Scalar, stats: Clock, context: PyTree) -> Array:
    return stats.now + shift
