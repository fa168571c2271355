"""The rule that the six algorithms of label ranking share; see `olx.ranking.label_ranking`."""

import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx._pytree import pytree
from olx.core import Feedback, Scalar
from olx.mirrors.base import MirrorMap
from olx.ranking._entropic import ENTROPIC
from olx.ranking._euclidean import EUCLIDEAN
from olx.ranking._round import Geometry, Ranked, Update, ranked


@pytree
class LabelRankingHparams:
    eta: Scalar
    mirror: MirrorMap
    update: Update
    margin: Scalar


def geometry_of(hp: LabelRankingHparams) -> Geometry:
    return EUCLIDEAN if hp.mirror.identity else ENTROPIC


def learn(hp: LabelRankingHparams, state: PyTree, feedback: Feedback) -> PyTree:
    now = round_of(hp, feedback)
    steps = signed(now, dual_variables(hp, now))
    return geometry_of(hp).move(now.c, state, now.x, now.scores, steps)


def coefficients(hp: LabelRankingHparams, feedback: Feedback) -> Array:
    """The factors of the row in the update of the weights, in Euclidean space."""
    now = round_of(hp, feedback)
    return signed(now, dual_variables(hp, now)) / now.c


def round_of(hp: LabelRankingHparams, feedback: Feedback) -> Ranked:
    x, y = feedback.context, feedback.outcome
    return ranked(feedback.action, y, x, hp.margin, rate(hp), feedback.weight)


def rate(hp: LabelRankingHparams) -> Scalar:
    r"""$c = 1 / \eta$, times the modulus of the potential."""
    assert hp.mirror.modulus is not None  # both potentials state it
    return hp.mirror.modulus / hp.eta


def dual_variables(hp: LabelRankingHparams, now: Ranked) -> Array:
    """The dual variable of each label, 0 in a round that does not count or has no loss."""
    counts = hp.update.counts_fn(now) & (now.gap > 0) & (now.weight > 0)
    alpha = jnp.where(counts, hp.update.pick_fn(geometry_of(hp), now), 0.0)
    return jnp.where(jnp.isnan(now.gap), now.gap, alpha)  # a margin that is not legal shows


def signed(now: Ranked, alpha: Array) -> Array:
    return jnp.where(now.relevant, alpha, -alpha)
