r"""AdaNormalHedge.TV: small regret on every interval, and so against competitors that change.

Every expert is copied in every round $\tau$; the copy sleeps before that round and has the prior
$q_i / \tau^2$. With the weights $w$ of AdaNormalHedge and regrets from $\tau$ on,

$$p_{t,i} \propto q_i \sum_{\tau \le t} \tau^{-2}\, w\big( R_{[\tau, t-1], i}, C_{[\tau, t-1], i}
  \big), \qquad R_{[t_1, t_2]}(u) \le \sqrt{3 \langle u, C_{[t_1, t_2]}\rangle \Big(
  \mathrm{RE}(u \| q) + \ln \frac{\pi^2 t_1^2}6 + \ln B \Big)},$$

$B = \frac52 + \frac32 \ln(1 + t_2)$. A round costs as many copies as there are. See
`ada_normal_hedge_streaming` for a logarithmic number, and `olx.hindsight` for the certificates of
intervals and of competitors that change.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.3.3.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import pytree, static
from olx.certificate import Certificate
from olx.core import Learner, Scalar, Trace
from olx.experts import _normal
from olx.experts.base import ExpertHparams, Seen, Weights, expert_learner
from olx.experts.history import History, certificate, history, mixture, relative_entropy


@pytree
class TrackingHparams:
    rounds: int = static()


class TrackingStats(NamedTuple):
    regret: Float[Array, "M N"]  # from round 1, 2, ..., M on
    size: Float[Array, "M N"]
    rounds: Float[Array, ""]  # finished so far


def ada_normal_hedge_tv(
    rounds: int, prior: PyTree = None, *, low: Scalar | None = None, high: Scalar | None = None
) -> Learner:
    """AdaNormalHedge.TV with new copies in the first `rounds` rounds.

    rounds: how many are played; more may be, but intervals that start later are not covered.
    prior: non-negative, of any sum; `params` if None.
    low, high: the range of losses, 0 and 1 if None.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 6 + [[0.0, 1.0]] * 6))
    >>> run = olx.rollout(ada_normal_hedge_tv(12), olx.losses.linear_loss, rounds, jnp.ones(2))
    >>> run.losses[jnp.array([5, 6, 11])].round(2).tolist()
    [0.01, 0.99, 0.56]
    """
    check.count("ada_normal_hedge_tv", "rounds", rounds)
    own = TrackingHparams(rounds)
    return expert_learner(
        "ada_normal_hedge_tv", own, start, weigh, learn, bound, prior=prior, low=low, high=high
    )


def start(hp: TrackingHparams, prior: Array) -> TrackingStats:
    empty = jnp.zeros((hp.rounds, prior.size), prior.dtype)
    return TrackingStats(empty, empty, jnp.zeros((), prior.dtype))


def weigh(hp: TrackingHparams, prior: Array, stats: TrackingStats) -> Weights:
    starts = jnp.arange(1, hp.rounds + 1, dtype=prior.dtype)[:, None]
    copies = jnp.where(starts <= stats.rounds + 1, 1 / starts**2, 0.0)
    return together(prior, _normal.weigh(copies, stats.regret, stats.size))


def together(prior: Array, copies: Weights) -> Weights:
    """The weight of every expert, added up over its copies."""
    top = lax.stop_gradient(jnp.max(copies.log, axis=0))
    return Weights(top, prior * jnp.sum(copies.factor * jnp.exp(copies.log - top), axis=0))


def learn(hp: TrackingHparams, prior: Array, stats: TrackingStats, seen: Seen) -> TrackingStats:
    starts = jnp.arange(1, hp.rounds + 1, dtype=prior.dtype)[:, None]
    regret = jnp.where(starts <= stats.rounds + 1, seen.regret, 0.0)
    return TrackingStats(stats.regret + regret, stats.size + jnp.abs(regret), stats.rounds + 1)


def bound(hp: ExpertHparams, trace: Trace, u: PyTree) -> Certificate:
    """The inequality above for the interval from the first round on."""
    return interval_bound(hp, trace, u, 0)


def interval_bound(hp: ExpertHparams, trace: Trace, u: PyTree, begin: int | Array) -> Certificate:
    r"""Regret on the rounds from `begin`, counted from 0, on; nothing before.

    Printed with 1 more beside the logarithms, as in the source.
    """
    past, flat = history(hp, trace), mixture(trace, u)
    begin = jnp.asarray(begin, flat.dtype)
    past = past._replace(regret=jnp.where(past.rounds[:, None] > begin, past.regret, 0.0))
    size, cost = jnp.cumsum(jnp.abs(past.regret) @ flat), price(past, flat, begin)
    right, printed = jnp.sqrt(cost * size), jnp.sqrt((cost + 3) * size)
    return certificate(past, flat, right, "Luo 2016, AdaNormalHedge.TV", printed)


def price(past: History, u: Array, begin: int | Array) -> Float[Array, " T"]:
    r"""$A = 3 (\mathrm{RE}(u \| q) + \ln(\pi^2 t_1^2 / 6) + \ln B)$, with $t_1$ = `begin` + 1."""
    copies = jnp.log((jnp.asarray(begin, u.dtype) + 1) ** 2 * (np.pi**2 / 6))
    b = 2.5 + 1.5 * jnp.log1p(past.rounds)
    return 3 * (relative_entropy(u, past.prior) + copies + jnp.log(b))
