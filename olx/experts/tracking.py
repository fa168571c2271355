r"""AdaNormalHedge.TV: small regret on every interval, so also to comparators that change.

Every round $\tau$ adds a copy of every expert, which sleeps before that round and has the prior
$q_i / \tau^2$. With the weights $w$ of AdaNormalHedge and regrets from $\tau$ on,

$$p_{t,i} \propto q_i \sum_{\tau \le t} \tau^{-2}\, w\big( R_{[\tau, t-1], i}, C_{[\tau, t-1], i}
  \big), \qquad R_{[t_1, t_2]}(u) \le \sqrt{3 \langle u, C_{[t_1, t_2]}\rangle \Big(
  \mathrm{RE}(u \| q) + \ln \frac{\pi^2 t_1^2}6 + \ln B \Big)},$$

$B = \frac52 + \frac32 \ln(1 + t_2)$. The cost of a round is proportional to the number
of copies. `ada_normal_hedge_streaming` has a logarithmic number of them. `interval_from` and
`changing` are theorems about intervals and about comparators that change.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.3.3.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import public
from olx.core import Learner, Scalar
from olx.experts import _normal
from olx.experts.account import Account, certificate, expert_theorem, mixture, relative_entropy
from olx.experts.base import ExpertHparams, ExpertState, Seen, Weights, expert_learner
from olx.theorem import Certificate

COPIED = "intervals must start in the first `rounds` rounds"


@pytree
class TrackingHparams:
    rounds: int = static()


class TrackingStats(NamedTuple):
    regret: Float[Array, "M N"]  # from round 1, 2, ..., M on
    size: Float[Array, "M N"]
    rounds: Float[Array, ""]  # finished so far


@public
def ada_normal_hedge_tv(
    rounds: int, prior: PyTree = None, *, low: Scalar | None = None, high: Scalar | None = None
) -> Learner:
    """AdaNormalHedge.TV with new copies in the first `rounds` rounds.

    rounds: the number of rounds with new copies; intervals that start later are not covered.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 6 + [[0.0, 1.0]] * 6))
    >>> run = olx.rollout(ada_normal_hedge_tv(12), olx.losses.linear_loss, rounds, jnp.ones(2))
    >>> run.losses[jnp.array([5, 6, 11])].round(2).tolist()
    [0.01, 0.99, 0.56]
    """
    check.count("rounds", rounds)
    own = TrackingHparams(rounds)
    return expert_learner(
        "ada_normal_hedge_tv", own, start, weigh, learn, whole_run, prior=prior, low=low, high=high
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


class Since(NamedTuple):
    """Sums over the rounds after the first `begin`."""

    regret: Float[Array, " N"]
    size: Float[Array, " N"]


def open_since(begin: Scalar, hp: ExpertHparams, prior: Array) -> Since:
    return Since(jnp.zeros_like(prior), jnp.zeros_like(prior))


def add_since(
    begin: Scalar, hp: ExpertHparams, account: Account, state: ExpertState, seen: Seen
) -> Since:
    regret = jnp.where(account.clock.rounds >= begin, seen.regret, 0.0)
    return Since(account.own.regret + regret, account.own.size + jnp.abs(regret))


def interval_sides(begin: Scalar, hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    """`published` adds 1 to the logarithms, as in the source."""
    flat, own = mixture(account, u), account.own
    size, cost = own.size @ flat, price(account.flat_prior, flat, account.rounds, begin)
    account = account._replace(regret=own.regret)
    proof = certificate(hp, account, u, jnp.sqrt(cost * size), jnp.sqrt((cost + 3) * size))
    return proof.given(COPIED, (begin < hp.own.rounds) | (account.clock.rounds <= begin))


def price(prior: Array, u: Array, rounds: Array, begin: Scalar) -> Array:
    r"""$A = 3 (\mathrm{RE}(u \| q) + \ln(\pi^2 t_1^2 / 6) + \ln B)$, with $t_1$ = `begin` + 1."""
    copies = jnp.log((jnp.asarray(begin, u.dtype) + 1) ** 2 * (np.pi**2 / 6))
    b = 2.5 + 1.5 * jnp.log1p(rounds)
    return 3 * (relative_entropy(u, prior) + copies + jnp.log(b))


whole_run = expert_theorem(
    "whole_run",
    "Luo 2016, AdaNormalHedge.TV",
    Partial(open_since, 0),
    Partial(add_since, 0),
    Partial(interval_sides, 0),
)
