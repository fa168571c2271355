r"""Fixed Share: Hedge that returns a share of all weight to the prior in every round.

$$p_{t+1} = (1 - \alpha) v_t + \alpha q, \qquad v_{t,i} \propto p_{t,i} e^{-\eta \ell_{t,i}}.$$

It is Hedge over all sequences of experts. Their prior $\pi$ is a Markov chain that draws a new
expert with probability $\alpha$. So for every sequence $i_1, \dots, i_T$

$$\sum_{t \le T} r_{t, i_t} \le \frac1\eta \ln \frac1{\pi(i_1, \dots, i_T)} + \sum_{t \le T}
  \delta_t, \qquad \delta_t = \frac1\eta \ln \sum_i p_{t,i} e^{\eta r_{t,i}} \le \frac\eta8,$$

and for one mixture $u$ throughout, $\mathrm{RE}(u \| q) - (T - 1) \ln(1 - \alpha)$ takes the place
of the logarithm. The learner carries the theorem about one mixture, `one_mixture`. The theorem
`fixed_share_path` is about sequences: its `u` has one row per round.

Herbster, Warmuth, Tracking the Best Expert, 1998.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import public
from olx.certificate import Certificate
from olx.core import Learner, Scalar
from olx.experts.account import (
    Account,
    certificate,
    expert_theorem,
    has_own,
    in_units,
    mixture,
    relative_entropy,
    sequence_theorem,
)
from olx.experts.base import ExpertHparams, ExpertState, Seen, Weights, expert_learner, lowest
from olx.experts.hedge import mix_gap
from olx.theorem import MET, ZERO, About, latest


@pytree
class FixedShareHparams:
    eta: Scalar
    alpha: Scalar


@public
def fixed_share(
    eta: Scalar,
    alpha: Scalar,
    prior: PyTree = None,
    *,
    low: Scalar | None = None,
    high: Scalar | None = None,
) -> Learner:
    r"""Fixed Share with step `eta`; a share `alpha` of all weight returns to the prior per round.

    eta: positive, in units of the range of losses.
    alpha: above 0 and up to 1; $K / T$ suits $K$ shifts in $T$ rounds.
    prior: non-negative weights of the experts; `params` if None.
    low: the least loss; 0 if None.
    high: the largest loss; 1 if None.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]]))
    >>> run = olx.rollout(fixed_share(1.0, 0.1), olx.losses.linear_loss, rounds, jnp.ones(2))
    >>> run.losses.round(3).tolist()
    [0.5, 0.292, 0.169, 0.888]
    """
    own = FixedShareHparams(check.positive("eta", eta), check.above("alpha", alpha, 0, 1))
    parts = own, start, weigh, learn, one_mixture
    return expert_learner("fixed_share", *parts, prior=prior, low=low, high=high)


def start(hp: FixedShareHparams, prior: Array) -> Float[Array, " N"]:
    return prior


def weigh(hp: FixedShareHparams, prior: Array, share: Array) -> Weights:
    return Weights(jnp.zeros_like(share), share)


def learn(hp: FixedShareHparams, prior: Array, share: Array, seen: Seen) -> Array:
    gain = jnp.where(share > 0, hp.eta * seen.regret, lowest(share))
    grown = share * jnp.exp(gain - lax.stop_gradient(jnp.max(gain)))
    return (1 - hp.alpha) * grown / jnp.sum(grown) + hp.alpha * prior


def open_gaps(hp: ExpertHparams, prior: Array) -> Array:
    return ZERO


def gap(hp: ExpertHparams, account: Account, state: ExpertState, seen: Seen) -> Array:
    r"""$\delta_t$."""
    return mix_gap(seen.log_share, seen.regret, hp.own.eta)


def both_sides(hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    r"""The inequality above for one mixture; `published` uses $\delta_t \le \eta / 8$."""
    flat, t = mixture(account, u), account.rounds
    stay = -jnp.log1p(-jnp.asarray(hp.own.alpha, flat.dtype))
    moves = jnp.where(t > 1, (t - 1) * stay, 0.0)
    paid = (relative_entropy(flat, account.flat_prior) + moves) / hp.own.eta
    return certificate(hp, account, u, paid + account.own, paid + hp.own.eta * t / 8)


one_mixture = expert_theorem(
    "one_mixture", "Herbster, Warmuth 1998, one expert", both_sides, gap, open_gaps
)


class Path(NamedTuple):
    gaps: Float[Array, ""]
    last: Float[Array, " N"]  # the expert of the last round, 0 before the first
    regret: Float[Array, ""]
    chance: Float[Array, ""]  # the logarithm of the prior probability of the path
    vertices: Bool[Array, ""]  # whether `u` is a single expert in every round


def open_path(hp: ExpertHparams, prior: Array) -> Path:
    return Path(ZERO, jnp.zeros_like(prior), ZERO, ZERO, MET)


def path_terms(
    hp: ExpertHparams, account: Account, state: ExpertState, seen: Seen, here: Array
) -> Path:
    alpha, arrive = hp.own.alpha, account.flat_prior @ here
    chance = alpha * arrive + (1 - alpha) * (here @ account.own.last)
    return Path(
        gap(hp, account, state, seen),
        latest(here),
        seen.regret @ here,
        jnp.log(jnp.where(account.rounds == 0, arrive, chance)),
        (jnp.max(here) == 1) & (jnp.sum(jnp.abs(here)) == 1),
    )


def path_sides(hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    own, eta = account.own, hp.own.eta
    paid = -own.chance / eta
    published = paid + eta * account.rounds / 8
    proof = in_units(hp, account, own.regret, paid + own.gaps, published)
    return proof.given("`u` must follow one expert in every round", own.vertices)


# About a sequence of experts: `u[t]` is 1 for the expert of round t and 0 for all others.
fixed_share_path = sequence_theorem(
    "fixed_share_path",
    "Herbster, Warmuth 1998",
    path_sides,
    path_terms,
    open_path,
    About("a `fixed_share`", lambda one: has_own(one, FixedShareHparams)),
)
