r"""Copies of a learner that restart at dyadic times: the common part of `saol` and `flh`.

A copy that started at the last change of the data has not learned from older data. $O(\log t)$
copies are alive at a time, each in its slot; slot $k$ restarts when the number of the round is
`phase[k]` modulo `period[k]`. The mixture plays the weighted mean of the copies. It has small
regret to every copy over the life of the copy, and every interval is a union of few lives. So the
bound of the base learner on a whole run holds on every interval, up to logarithms.

Hazan, Seshadhri, Efficient Learning Algorithms for Changing Environments, 2009; Daniely, Gonen,
Shalev-Shwartz, Strongly Adaptive Online Learning, 2015.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.nn import softmax
from jaxtyping import Array, Bool, Float, Int, PyTree

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import RefusedValue
from olx.convex import _domain
from olx.core import Feedback, Learner, Scalar
from olx.meta.mix import its_own, mean
from olx.theorem import DOMAIN, Certificate

NEVER = -1e30  # the logarithm of weight 0; finite, so that differences and gradients are finite


@pytree
class AdaptiveHparams:
    inner: Learner
    eta_or_span: Scalar  # `eta` of `flh`, `span` of `saol`
    period: tuple[int, ...] = static()
    phase: tuple[int, ...] = static()


class AdaptiveState(NamedTuple):
    copies: PyTree  # states with a leading axis of slots
    log_weights: Float[Array, " K"]  # NEVER before the first use of a slot
    fresh: PyTree  # the state of a new copy
    now: Int[Array, ""]  # the number of the next round, from 1


def check_arguments(inner: Learner, levels: int) -> None:
    check.instance("inner", inner, Learner)
    check.count("levels", levels)
    if levels > 29:
        raise RefusedValue(f"`levels` must be at most 29, got {levels}.")


def start(hp: AdaptiveHparams, params: PyTree, log_weights: Float[Array, " K"]) -> AdaptiveState:
    """The state before round 1; `log_weights` are the first weights of the copies."""
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
    """Update every copy on its own action; the new copies and their losses."""

    def one(own: PyTree) -> tuple[PyTree, Array]:
        seen = its_own(hp.inner, own, feedback)
        return hp.inner.update(own, seen), seen.value

    return jax.vmap(one)(state.copies)


def proceed(
    hp: AdaptiveHparams, state: AdaptiveState, copies: PyTree, log_weights: Float[Array, " K"]
) -> AdaptiveState:
    """The state before the next round, with the copies restarted that begin in it."""
    now = begins(hp, state.now + 1)
    replace = lambda own, new: jnp.where(now.reshape(-1, *(1,) * new.ndim), new, own)
    copies = jax.tree.map(replace, copies, state.fresh)
    return AdaptiveState(copies, log_weights, state.fresh, state.now + 1)


def begins(hp: AdaptiveHparams, now: Int[Array, "..."]) -> Bool[Array, "... K"]:
    """Which slots start a new copy in round `now`."""
    return now[..., None] % jnp.asarray(hp.period) == jnp.asarray(hp.phase)


def used(state: AdaptiveState) -> Bool[Array, "... K"]:
    """Which slots hold a copy."""
    return state.log_weights > NEVER / 2


class Account(NamedTuple):
    """Per copy: sums over its life so far, and both right sides after the last round."""

    regret: Float[Array, " K"]
    size: Float[Array, " K"]
    sums: tuple[Float[Array, " K"], Float[Array, " K"]]  # sums in the right sides
    right: Float[Array, " K"]
    published: Float[Array, " K"]
    alive: Bool[Array, " K"]
    met: dict[str, Bool[Array, ""]]  # the conditions of the theorem


def open_account(state: AdaptiveState, u: Float[Array, " K"], *conditions: str) -> Account:
    check.comparator(u, state.log_weights)
    zeros, met = jnp.zeros_like(state.log_weights), jnp.ones((), bool)
    sums = zeros, zeros
    return Account(zeros, zeros, sums, zeros, zeros, used(state), dict.fromkeys(conditions, met))


def losses_of(hp: AdaptiveHparams, state: AdaptiveState, feedback: Feedback) -> Float[Array, " K"]:
    """The loss of every copy in a round."""
    lost = lambda own: feedback.loss(hp.inner.predict(own, feedback.context))
    return jax.vmap(lost)(state.copies)


def add_round(
    hp: AdaptiveHparams,
    account: Account,
    state: AdaptiveState,
    feedback: Feedback,
    losses: Float[Array, " K"],
    *terms: Array,
) -> Account:
    """Add a round to the sums over the lives of copies; the caller sets the right sides."""
    fresh, weight, value = begins(hp, state.now), feedback.weight, feedback.value
    since = lambda total, term: jnp.where(fresh, 0.0, total) + term
    return account._replace(
        regret=since(account.regret, weight * (value - losses)),
        size=since(account.size, weight * (jnp.abs(value) + jnp.abs(losses))),
        sums=tuple(since(*pair) for pair in zip(account.sums, terms, strict=True)),
        alive=used(state),
    )


def both_sides(hp: AdaptiveHparams, account: Account, u: Float[Array, " K"]) -> Certificate:
    """The regret to the copies in the slots `u`, each since its start; 0 before the start."""
    at = lambda copies: jnp.where(account.alive, copies, 0.0) @ u
    scale = at(account.size + jnp.abs(account.right))
    proof = Certificate(at(account.regret), at(account.right), scale, at(account.published))
    return proof.given(DOMAIN, _domain.simplex(0.0, 1.0, u)).under(account.met)
