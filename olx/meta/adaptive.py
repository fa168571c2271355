r"""Copies of a learner, restarted at dyadic times: what `saol` and `flh` share.

A copy that started when the world last changed knows nothing stale. $O(\log t)$ of them are alive
at a time, each in its slot; slot $k$ restarts whenever the number of the round is `phase[k]` modulo
`period[k]`. The mixture plays the mean of the copies. On the life of any copy it loses little to
it, and every interval is a union of few such lives; so what the base learner guarantees on a whole
run holds on every interval, up to logarithms.

Hazan, Seshadhri, Efficient Learning Algorithms for Changing Environments, 2009; Daniely, Gonen,
Shalev-Shwartz, Strongly Adaptive Online Learning, 2015.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.nn import softmax
from jaxtyping import Array, Bool, Float, Int, PyTree

from olx import _check as check
from olx._pytree import pytree, static
from olx.certificate import DOMAIN, Certificate
from olx.convex import _domain
from olx.core import Feedback, Learner, Scalar, Trace
from olx.meta.mix import its_own, mean

NEVER = -1e30  # the logarithm of no weight: finite, so that differences and gradients are


@pytree
class AdaptiveHparams:
    inner: Learner
    number: Scalar  # of the algorithm that mixes
    period: tuple[int, ...] = static()
    phase: tuple[int, ...] = static()


class AdaptiveState(NamedTuple):
    copies: PyTree  # a leading axis of slots
    log_weights: Float[Array, " K"]  # NEVER before a slot is first used
    fresh: PyTree  # the state of a copy that starts
    now: Int[Array, ""]  # the number of the round about to be played, from 1


def check_arguments(owner: str, inner: Learner, levels: int) -> None:
    check.instance(owner, "inner", inner, Learner)
    check.count(owner, "levels", levels)
    if levels > 29:
        raise ValueError(f"{owner}: `levels` must be at most 29, got {levels}.")


def start(hp: AdaptiveHparams, params: PyTree, log_weights: Float[Array, " K"]) -> AdaptiveState:
    """The state before round 1; `log_weights` are those with which a copy enters."""
    fresh = jax.tree.map(jnp.asarray, hp.inner.init(params))
    copies = jax.tree.map(lambda leaf: jnp.stack([leaf] * len(hp.period)), fresh)
    now = jnp.ones((), int)
    return AdaptiveState(copies, jnp.where(begins(hp, now), log_weights, NEVER), fresh, now)


def predict(hp: AdaptiveHparams, state: AdaptiveState, context: PyTree) -> PyTree:
    actions = jax.vmap(lambda own: hp.inner.predict(own, context))(state.copies)
    return mean(softmax(state.log_weights), actions)


def learn(
    hp: AdaptiveHparams, state: AdaptiveState, feedback: Feedback
) -> tuple[PyTree, Float[Array, " K"]]:
    """Every copy learns from its own action; the copies and what they lost."""

    def one(own: PyTree):
        seen = its_own(hp.inner, own, feedback)
        return hp.inner.update(own, seen), seen.value

    return jax.vmap(one)(state.copies)


def proceed(
    hp: AdaptiveHparams, state: AdaptiveState, copies: PyTree, log_weights: Float[Array, " K"]
) -> AdaptiveState:
    """The state before the next round: the copies whose time it is start afresh."""
    now = begins(hp, state.now + 1)
    replace = lambda own, new: jnp.where(now.reshape(-1, *(1,) * new.ndim), new, own)
    copies = jax.tree.map(replace, copies, state.fresh)
    return AdaptiveState(copies, log_weights, state.fresh, state.now + 1)


def begins(hp: AdaptiveHparams, now: Int[Array, "..."]) -> Bool[Array, "... K"]:
    """Which slots start a copy in a round."""
    return now[..., None] % jnp.asarray(hp.period) == jnp.asarray(hp.phase)


def used(state: AdaptiveState) -> Bool[Array, "... K"]:
    """Which slots hold a copy that has started."""
    return state.log_weights > NEVER / 2


def history(hp: AdaptiveHparams, trace: Trace) -> tuple[Float[Array, "T K"], Float[Array, "T 1"]]:
    """What every copy lost in every round of a run, and the weights of the rounds."""
    of_copy = lambda own, feedback: feedback.loss(hp.inner.predict(own, feedback.context))
    every = lambda state, feedback: jax.vmap(lambda own: of_copy(own, feedback))(state.copies)
    losses = jax.vmap(every)(trace.state, trace.feedback)
    return losses, jnp.broadcast_to(trace.feedback.weight, losses.shape[:1])[:, None]


def since_start(hp: AdaptiveHparams, trace: Trace, terms: Array) -> Float[Array, "T K"]:
    """Sums over the life of each copy so far.

    Rounds of weight 0 are not counted by the state, so that a start may be met twice; what was
    added in between is 0.
    """

    def add(total, one):
        term, fresh = one
        total = jnp.where(fresh, 0.0, total) + term
        return total, total

    fresh = begins(hp, trace.state.now)
    return lax.scan(add, jnp.zeros(len(hp.period), terms.dtype), (terms, fresh))[1]


def certificate(
    hp: AdaptiveHparams,
    trace: Trace,
    u: Float[Array, " K"],
    right: Float[Array, "T K"],
    printed: Float[Array, "T K"],
    theorem: str,
) -> Certificate:
    """The regret to the copies in the slots `u`, each since it started; 0 before that."""
    u = check.comparator("certify", u, trace.state.log_weights[0])
    losses, weight = history(hp, trace)
    value = trace.feedback.value[:, None]
    alive = used(trace.state)
    at = lambda curves: jnp.where(alive, curves, 0.0) @ u
    regret = since_start(hp, trace, weight * (value - losses))
    size = since_start(hp, trace, weight * (jnp.abs(value) + jnp.abs(losses)))
    proof = Certificate(at(regret), at(right), at(size + jnp.abs(right)), at(printed), theorem)
    return proof.given(DOMAIN, _domain.simplex(0.0, 1.0, u))
