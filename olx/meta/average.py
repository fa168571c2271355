r"""Play another learner and keep the weighted mean of its decisions.

$$\bar w_T = \frac{\sum_{t \le T} a_t w_t}{\sum_{t \le T} a_t}.$$

For convex losses, independent rounds and $a_t = 1$, the expected risk of $\bar w_T$ is at most that
of the best fixed decision plus the regret divided by $T$. Rising weights give early decisions less
influence, and suit learners with small weighted regret.

On sparse rows most coordinates have zero gradient. If their decisions stay
(`Separable.keeps_decision`), a coordinate waits: its mean is brought up to date when its gradient
is not zero, and by `averaged`.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section B.3; Zhang,
Mathematical Analysis of Machine Learning Algorithms, 2023, chapter 14.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree
from optax import tree

from olx import _check as check
from olx import _clock as clock
from olx import _numeric
from olx import _numeric as safe
from olx._clock import Clock
from olx._numeric import Sum
from olx._pytree import pytree
from olx._refusal import own_name, public
from olx.core import WEIGHT, Feedback, Learner, Process, Scalar
from olx.facts import Facts, Separable
from olx.meta.anytime import AnytimeState
from olx.schedules.fixed import as_schedule
from olx.wrapper import INNER, lift_needs, lift_theorems


@pytree
class AverageHparams:
    inner: Learner
    weights: Process


class AverageState(NamedTuple):
    inner: PyTree
    mean: PyTree  # of the decisions until `since`
    since: PyTree  # for each coordinate, the sum of the weights that its mean counts
    latest: PyTree  # the decision after `since`
    total: Sum  # the sum of the weights so far
    stats: PyTree


@public
def average(inner: Learner, weights: Scalar | Process = 1.0) -> Learner:
    r"""Play `inner` and keep the mean of its decisions, one per round, before its update.

    inner: a learner of points; for a predictor, lift the result: `olx.linear(average(inner))`.
    weights: $a_t$, multiplied by the weight of the round; a number for equal weights, `rising()`,
        or another process that gives weights. A step size is refused.

    Inside `linear` it plays sparse rows if the coordinates of `inner` are `Separable` and keep
    their decisions, as those of `omd` and `ogd`; other learners need dense rows.

    >>> import jax.numpy as jnp, olx
    >>> learner = average(olx.ogd(1.0))
    >>> rounds = olx.Rounds(None, jnp.ones((4, 1)))
    >>> run = olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.zeros(1))
    >>> run.losses.tolist(), averaged(run.state).tolist()
    ([0.0, -1.0, -2.0, -3.0], [-1.5])
    """
    check.instance("inner", inner, Learner)
    hparams = AverageHparams(inner, as_schedule("weights", weights, WEIGHT))
    needs = lift_needs(INNER, inner)
    theorems = lift_theorems(INNER, inner)
    alone = _keeps_decision(inner) and hparams.weights.separable
    coordinates = Separable(keeps_decision=True) if alone else None
    facts = Facts(coordinates=coordinates, scale_free=inner.facts.scale_free)
    return Learner(hparams, init, predict, update, facts=facts, needs=needs, theorems=theorems)


@public
def averaged(state: AverageState | AnytimeState) -> PyTree:
    """The mean decision, from the state of an `average`, lifted or not; 0 before round 1.

    Also from that of a `schedule_free` or an `anytime`: the start before round 1. The state of a
    sweep gives one mean for each configuration.
    """
    if isinstance(state, AnytimeState):
        return state.mean
    check.state(state, AverageState, "average")
    total = state.total.value
    below = lambda mean: jnp.reshape(total, total.shape + (1,) * (mean.ndim - total.ndim))
    return jax.tree.map(
        lambda mean, since, w: _until(below(mean), mean, since, w),
        state.mean,
        state.since,
        state.latest,
    )


@public
def rising(shift: Scalar = 1.0) -> Process:
    r"""Weights $a_t = t + $ `shift`; `shift` = 1 gives those of `strongly_convex_ogd`.

    >>> import jax.numpy as jnp
    >>> weights = rising()
    >>> float(weights.at(weights.init(jnp.zeros(2))))
    2.0
    """
    shift = check.non_negative("shift", shift)
    return Process(shift, clock.start, clock.tick, _later, WEIGHT, separable=True)


def init(hp: AverageHparams, params: PyTree) -> AverageState:
    inner, zeros = hp.inner.init(params), tree.zeros_like(params)
    latest = hp.inner.predict(inner) if _keeps_decision(hp.inner) else zeros
    total = _numeric.start(jnp.zeros((), jnp.result_type(*jax.tree.leaves(params))))
    return AverageState(inner, zeros, zeros, latest, total, hp.weights.init(params))


def predict(hp: AverageHparams, state: AverageState, context: PyTree) -> PyTree:
    return hp.inner.predict(state.inner, context)


@own_name("average")
def update(hp: AverageHparams, state: AverageState, feedback: Feedback) -> AverageState:
    check.same_shape("the action", feedback.action, "`params`", state.mean)
    inner = hp.inner.update(state.inner, feedback)
    own = feedback.weight * hp.weights.at(state.stats, feedback.context)
    total = _numeric.add(state.total, own)
    stats = hp.weights.update(state.stats, feedback)
    bring = lambda mean, since, w: _until(total.value, mean, since, w)
    if not _keeps_decision(hp.inner):
        w = feedback.action
        mean = jax.tree.map(bring, state.mean, state.since, w)
        since = jax.tree.map(lambda mean: jnp.full_like(mean, total.value), mean)
        return AverageState(inner, mean, since, w, total, stats)
    choose = lambda grad, new, old: jnp.where(grad != 0, new, old)
    mean = jax.tree.map(bring, state.mean, state.since, state.latest)
    return AverageState(
        inner,
        jax.tree.map(choose, feedback.grad, mean, state.mean),
        jax.tree.map(lambda grad, old: choose(grad, total.value, old), feedback.grad, state.since),
        jax.tree.map(choose, feedback.grad, hp.inner.predict(inner), state.latest),
        total,
        stats,
    )


def _keeps_decision(inner: Learner) -> bool:
    """Whether coordinates with zero gradient can wait."""
    coordinates = inner.facts.coordinates
    return isinstance(coordinates, Separable) and coordinates.keeps_decision


def _until(total: Array, mean: Array, since: Array, w: Array) -> Array:
    """The mean of decisions until `total`, if the decision after `since` is `w`."""
    share = (total - since) / safe.or_one(total)
    return mean + share * (w - mean)


def _later(shift: Scalar, stats: Clock, context: PyTree) -> Array:
    return stats.now + shift
