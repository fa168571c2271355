r"""Follow one expert at a time, drawn from the distribution of an expert learner.

In round $t$ the learner draws $i_t \sim p_t$ and pays $\ell_{t, i_t}$. The action is the vertex
$e_{i_t}$, so `olx.losses.linear_loss` gives the loss of the expert drawn, and regret is defined as
for distributions.

`sampled` updates the expert learner as if it had played $p_t$. Its bounds for $p_t$ then hold for
the draws up to a random deviation. `committed` updates the expert learner with the draw itself: the
regrets are $\ell_{t,i_t} - \ell_{t,i}$. The theorems about both are in `olx.experts.draws`.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.1.5.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import public
from olx.core import Feedback, Learner
from olx.losses.points import linear_feedback
from olx.wrapper import INNER, lift_needs


@pytree
class SampledHparams:
    inner: Learner
    key: Array


class SampledState(NamedTuple):
    inner: PyTree
    key: Array  # for the draw of this round; predicting twice draws the same


@public
def sampled(inner: Learner, key: Array) -> Learner:
    """Play a vertex drawn from the distribution of `inner`; update `inner` on the distribution.

    inner: any learner whose action is a distribution.
    key: a key of `jax.random`; a batch over keys repeats the game with new draws.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 8))
    >>> learner = sampled(olx.hedge(2.0), jax.random.key(0))
    >>> olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.ones(2) / 2).losses.tolist()[-4:]
    [0.0, 0.0, 0.0, 0.0]
    """
    check.key(key)
    check.instance("inner", inner, Learner)
    needs = lift_needs(INNER, inner)
    return Learner(SampledHparams(inner, key), init, predict, update, needs=needs)


@public
def committed(inner: Learner, key: Array) -> Learner:
    """Like `sampled`, but `inner` is updated as if it had played the vertex drawn."""
    check.key(key)
    check.instance("inner", inner, Learner)
    needs = lift_needs(INNER, inner)
    return Learner(SampledHparams(inner, key), init, predict, update_committed, needs=needs)


def init(hp: SampledHparams, params: PyTree) -> SampledState:
    return SampledState(hp.inner.init(params), hp.key)


def predict(hp: SampledHparams, state: SampledState, context: PyTree) -> Float[Array, " N"]:
    return draw(state.key, hp.inner.predict(state.inner, context))


def update(hp: SampledHparams, state: SampledState, feedback: Feedback) -> SampledState:
    return _next(hp, state, on_average(hp, state, feedback))


def update_committed(hp: SampledHparams, state: SampledState, feedback: Feedback) -> SampledState:
    return _next(hp, state, feedback)


def draw(key: Array, p: Float[Array, " N"]) -> Float[Array, " N"]:
    """A vertex drawn with probabilities `p`; 0 if all are 0, NaN if one is NaN."""
    vertex = jax.nn.one_hot(jax.random.categorical(key, jnp.log(p)), p.shape[0], dtype=p.dtype)
    total = jnp.sum(p)
    return jnp.where(jnp.isnan(total), jnp.nan, jnp.where(total == 0, 0.0, vertex))


def on_average(hp: SampledHparams, state: SampledState, feedback: Feedback) -> Feedback:
    p = hp.inner.predict(state.inner, feedback.context)
    return linear_feedback(p, feedback.outcome, feedback.weight, feedback.context)


def _next(hp: SampledHparams, state: SampledState, feedback: Feedback) -> SampledState:
    return SampledState(hp.inner.update(state.inner, feedback), jax.random.split(state.key, 1)[0])
