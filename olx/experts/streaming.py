r"""AdaNormalHedge.TV with a logarithmic number of copies.

A copy that starts in round $\tau = r 2^k$, $r$ odd, lives until round $\tau + 2^{k+2}$. So at most
three copies per $k$ are alive; the state has three places per $k$, and a round costs $O(N \ln t)$.
Over its lifetime a copy has the regret of `ada_normal_hedge_tv`. A longer interval is covered by
several copies, each of which lives at least four times as long as the one before. So the bound on
an interval grows by a factor of order $\sqrt{\ln(t_2 - t_1)}$ at most.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.3.3; Hazan, Seshadhri, Efficient Learning
Algorithms for Changing Environments, 2009.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, Float, Int, PyTree, UInt32

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import public
from olx.core import Learner, Scalar
from olx.experts import _normal
from olx.experts.account import Account, certificate, expert_theorem, mixture
from olx.experts.base import ExpertHparams, ExpertState, Seen, Weights, expert_learner
from olx.experts.tracking import price, together
from olx.theorem import Certificate


@pytree
class StreamingHparams:
    levels: int = static()


class StreamingStats(NamedTuple):
    regret: Float[Array, "M N"]  # of M = 3 * levels copies
    size: Float[Array, "M N"]
    start: Int[Array, " M"]  # the first round of each copy; 0 if the place is empty
    now: Int[Array, ""]  # the number of the next round


@public
def ada_normal_hedge_streaming(
    rounds: int, prior: PyTree = None, *, low: Scalar | None = None, high: Scalar | None = None
) -> Learner:
    """AdaNormalHedge.TV for long streams, with three copies per power of two.

    rounds: the largest number of rounds; sets the number of powers.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 6 + [[0.0, 1.0]] * 6))
    >>> learner = ada_normal_hedge_streaming(12)
    >>> run = olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.ones(2))
    >>> run.losses[jnp.array([5, 6, 11])].round(2).tolist()
    [0.05, 0.97, 0.04]
    """
    check.count("rounds", rounds)
    own = StreamingHparams(int(rounds).bit_length())
    parts = start, weigh, learn, whole_run
    return expert_learner(
        "ada_normal_hedge_streaming", own, *parts, prior=prior, low=low, high=high
    )


def start(hp: StreamingHparams, prior: Array) -> StreamingStats:
    empty = jnp.zeros((3 * hp.levels, prior.size), prior.dtype)
    none = jnp.zeros(3 * hp.levels, jnp.int32)
    return _renewed(hp, StreamingStats(empty, empty, none, jnp.ones((), jnp.int32)))


def weigh(hp: StreamingHparams, prior: Array, stats: StreamingStats) -> Weights:
    level, _ = _places(hp)
    alive = (stats.start > 0) & (stats.now <= stats.start + (4 << level))
    begun = jnp.where(alive, stats.start, 1).astype(prior.dtype)[:, None]
    copies = jnp.where(alive[:, None], 1 / begun**2, 0.0)
    return together(prior, _normal.weigh(copies, stats.regret, stats.size))


def learn(hp: StreamingHparams, prior: Array, stats: StreamingStats, seen: Seen) -> StreamingStats:
    regret, size = stats.regret + seen.regret, stats.size + jnp.abs(seen.regret)
    return _renewed(hp, StreamingStats(regret, size, stats.start, stats.now + 1))


class Chain(NamedTuple):
    """Sums over the rounds after the first `begin`."""

    regret: Float[Array, " N"]
    size: Float[Array, "K N"]  # on the rounds that each copy covers


def open_chain(begin: Scalar, hp: ExpertHparams, prior: Array) -> Chain:
    zeros = jnp.zeros_like(prior)
    return Chain(zeros, jnp.stack([zeros] * _length(hp.own)))


def add_link(
    begin: Scalar, hp: ExpertHparams, account: Account, state: ExpertState, seen: Seen
) -> Chain:
    now, (start, stop) = account.clock.rounds + 1, _chain(hp.own, begin)
    regret = jnp.where(now > begin, seen.regret, 0.0)
    inside = ((start <= now) & (now < stop))[:, None]
    return Chain(
        account.own.regret + regret,
        account.own.size + jnp.where(inside, jnp.abs(regret), 0.0),
    )


def chained_sides(begin: Scalar, hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    """Regret after the first `begin` rounds: a sum over the copies that cover these rounds.

    The next copy of the chain is the longest-lived one that starts in the lifetime of the last.
    """
    flat, now, (start, stop) = mixture(account, u), account.clock.rounds, _chain(hp.own, begin)
    met = jnp.minimum(now, stop - 1).astype(flat.dtype)
    cost = price(account.flat_prior, flat, met, (start - 1).astype(flat.dtype))
    right = jnp.sum(jnp.where(start <= now, jnp.sqrt(cost * (account.own.size @ flat)), 0.0))
    proof = certificate(hp, account._replace(regret=account.own.regret), u, right)
    known = _level(start) < hp.own.levels
    covered = (now <= begin) | jnp.any(known & (start <= now) & (now < stop))
    return proof.given("copies must be made for as many `rounds`", covered)


whole_run = expert_theorem(
    "whole_run",
    "Luo 2016, AdaNormalHedge.TV, streaming",
    Partial(open_chain, 0),
    Partial(add_link, 0),
    Partial(chained_sides, 0),
)


def _length(hp: StreamingHparams) -> int:
    return (hp.levels + 1) // 2  # each copy is at least two levels above the one before


def _chain(hp: StreamingHparams, begin: Scalar) -> tuple[UInt32[Array, " K"], UInt32[Array, " K"]]:
    """The rounds that the copies of a chain cover: from `start` up to, not including, `stop`."""
    starts, start = [], jnp.asarray(begin, jnp.uint32) + 1
    for _ in range(_length(hp) + 1):
        starts.append(start)
        level = jnp.minimum(_level(start), 28)  # so that no number overflows
        start = (start + (jnp.uint32(4) << level)) >> (level + 2) << (level + 2)
    return jnp.stack(starts[:-1]), jnp.stack(starts[1:])


def _level(start: UInt32[Array, "..."]) -> UInt32[Array, "..."]:
    """The exponent of 2 in `start`."""
    return lax.population_count((start & (~start + 1)) - 1)


def _renewed(hp: StreamingHparams, stats: StreamingStats) -> StreamingStats:
    """Start a copy for the next round, in the place of the oldest copy of its level."""
    level, place = _places(hp)
    ours = (stats.now & ((2 << level) - 1)) == (1 << level)
    new = ours & ((stats.now >> (level + 1)) % 3 == place)
    clear = lambda table: jnp.where(new[:, None], 0.0, table)
    begun = jnp.where(new, stats.now, stats.start)
    return StreamingStats(clear(stats.regret), clear(stats.size), begun, stats.now)


def _places(hp: StreamingHparams) -> tuple[Int[Array, " M"], Int[Array, " M"]]:
    places = jnp.arange(3 * hp.levels, dtype=jnp.int32)
    return places // 3, places % 3
