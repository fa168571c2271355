"""The rule that the six algorithms of label ranking share; see `olx.ranking.label_ranking`."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx._pytree import pytree
from olx.core import Feedback, Process, Scalar
from olx.mirrors.base import MirrorMap
from olx.ranking import _entropic
from olx.ranking._entropic import ENTROPIC
from olx.ranking._euclidean import EUCLIDEAN
from olx.ranking._round import Geometry, Ranked, Update, ranked
from olx.schedules import fixed


@pytree
class LabelRankingHparams:
    eta: Process
    mirror: MirrorMap
    update: Update
    margin: Scalar


class DualState(NamedTuple):
    """The state in Euclidean space, and if $c$ changes with time; else it is `EntropicState`."""

    acc: Float[Array, "k d"]  # minus the sum of all dual vectors, not divided by c
    stats: PyTree  # of the schedule


def geometry_of(hp: LabelRankingHparams) -> Geometry:
    return EUCLIDEAN if hp.mirror.identity else ENTROPIC


def is_fixed(hp: LabelRankingHparams) -> bool:
    return hp.eta.init_fn is fixed.no_stats


def keeps_dual(hp: LabelRankingHparams) -> bool:
    """Whether the state is a `DualState`."""
    return hp.mirror.identity or not is_fixed(hp)


def weights_of(state: PyTree) -> Array:
    """The array of a state that is shaped like the weights."""
    return state.acc if isinstance(state, DualState) else state.theta


def begin(hp: LabelRankingHparams, params: Array) -> PyTree:
    if keeps_dual(hp):
        return DualState(jnp.zeros_like(params), hp.eta.init(params))
    return _entropic.init(params)


def seen(hp: LabelRankingHparams, state: PyTree, x: PyTree) -> PyTree:
    """The state of the geometry with the $c$ of this round."""
    return geometry_of(hp).at(rate(hp, state, x), state.acc) if keeps_dual(hp) else state


def learn(hp: LabelRankingHparams, state: PyTree, feedback: Feedback) -> PyTree:
    now = round_of(hp, state, feedback)
    steps = signed(now, dual_variables(hp, now))
    if not keeps_dual(hp):
        return _entropic.move(now.c, state, now.x, now.scores, steps)
    return DualState(
        state.acc + steps[:, None] * now.x, hp.eta.update(state.stats, _heard(hp, now, feedback))
    )


def coefficients(hp: LabelRankingHparams, feedback: Feedback) -> Array:
    """The factors of the row in the update, in Euclidean space with a fixed c."""
    now = round_of(hp, None, feedback)
    return signed(now, dual_variables(hp, now))


def scaled(hp: LabelRankingHparams, products: Array) -> Array:
    """The scores of a row from its products with `acc`, for a fixed c."""
    return products / rate(hp, None, None)


def round_of(hp: LabelRankingHparams, state: PyTree, feedback: Feedback) -> Ranked:
    x, y = feedback.context, feedback.outcome
    return ranked(feedback.action, y, x, hp.margin, rate(hp, state, x), feedback.weight)


def rate(hp: LabelRankingHparams, state: PyTree, x: PyTree) -> Scalar:
    r"""$c_t = 1 / \eta_t$, times the modulus of the potential."""
    assert hp.mirror.modulus is not None  # both potentials state it
    return hp.mirror.modulus / hp.eta.at(None if is_fixed(hp) else state.stats, x)


def dual_variables(hp: LabelRankingHparams, now: Ranked) -> Array:
    """The dual variable of each label, 0 in a round that does not count or has no loss.

    If x is 0 no step changes the weights, and the whole one gains most.
    """
    counts = hp.update.counts_fn(now) & (now.gap > 0) & (now.weight > 0)
    best = jnp.where(now.moves, hp.update.pick_fn(geometry_of(hp), now), now.weight * now.worst)
    alpha = jnp.where(counts, best, 0.0)
    return jnp.where(jnp.isnan(now.gap), now.gap, alpha)  # a margin that is not legal shows


def signed(now: Ranked, alpha: Array) -> Array:
    return jnp.where(now.relevant, alpha, -alpha)


def _heard(hp: LabelRankingHparams, now: Ranked, feedback: Feedback) -> Feedback:
    """What a schedule sees: the lead of the relevant labels, as the score of a label +1."""
    ahead = hp.margin - now.gap
    loss = Partial(_short, hp.margin)
    value, grad = jax.value_and_grad(loss)(ahead)
    weight = jnp.where(hp.update.counts_fn(now) & now.moves, now.weight, 0.0)
    return feedback._replace(
        action=ahead, outcome=jnp.ones_like(ahead), loss=loss, value=value, grad=grad, weight=weight
    )


def _short(margin: Scalar, ahead: Array) -> Array:
    return jnp.maximum(margin - ahead, 0.0)
