r"""AdaNormalHedge.TV with a logarithmic number of copies.

A copy that starts in round $\tau = r 2^k$, $r$ odd, lives until round $\tau + 2^{k+2}$. At most
three copies of each $k$ are then alive, which have three places to themselves, and a round costs
$O(N \ln t)$. For its lifetime a copy has the regret of `ada_normal_hedge_tv`; a longer interval is
covered by copies each of which lives four times as long as the one before, so regret on an interval
grows by a factor of order $\sqrt{\ln(t_2 - t_1)}$ at most.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.3.3; Hazan, Seshadhri, Efficient Learning
Algorithms for Changing Environments, 2009.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from olx import _check as check
from olx._pytree import pytree, static
from olx.certificate import Certificate
from olx.core import Learner, Scalar, Trace
from olx.experts import _normal
from olx.experts.base import ExpertHparams, Seen, Weights, expert_learner
from olx.experts.history import certificate, history, mixture
from olx.experts.tracking import price, together


@pytree
class StreamingHparams:
    levels: int = static()


class StreamingStats(NamedTuple):
    regret: Float[Array, "M N"]  # of M = 3 levels copies
    size: Float[Array, "M N"]
    start: Int[Array, " M"]  # the round each copy started in, 0 if there is none
    now: Int[Array, ""]  # the round to be played


def ada_normal_hedge_streaming(
    rounds: int, prior: PyTree = None, *, low: Scalar | None = None, high: Scalar | None = None
) -> Learner:
    """AdaNormalHedge.TV on a long stream, with three copies for every power of two.

    rounds: at least how many are played; sets the number of powers.
    prior: non-negative, of any sum; `params` if None.
    low, high: the range of losses, 0 and 1 if None.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 6 + [[0.0, 1.0]] * 6))
    >>> learner = ada_normal_hedge_streaming(12)
    >>> run = olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.ones(2))
    >>> run.losses[jnp.array([5, 6, 11])].round(2).tolist()
    [0.05, 0.97, 0.04]
    """
    check.count("ada_normal_hedge_streaming", "rounds", rounds)
    own = StreamingHparams(int(rounds).bit_length())
    return expert_learner(
        "ada_normal_hedge_streaming",
        own,
        start,
        weigh,
        learn,
        bound,
        prior=prior,
        low=low,
        high=high,
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


def bound(hp: ExpertHparams, trace: Trace, u: PyTree) -> Certificate:
    """The certificate of the interval from the first round on."""
    return chained_bound(hp, trace, u, 0)


def chained_bound(hp: ExpertHparams, trace: Trace, u: PyTree, begin: int) -> Certificate:
    """Regret on the rounds from `begin`, counted from 0, on: a sum over the copies that cover it.

    begin: a Python integer, since it decides which copies do. From each copy on the next is the one
        in its lifetime with the longest life.
    """
    past, flat = history(hp, trace), mixture(trace, u)
    total = past.regret.shape[0]
    past = past._replace(regret=jnp.where(past.rounds[:, None] > begin, past.regret, 0.0))
    right, at = jnp.zeros(total, flat.dtype), begin + 1
    while at <= total:
        level = _level(at)
        after = (at + (4 << level)) >> (level + 2) << (level + 2)
        inside = (past.rounds >= at) & (past.rounds < after)
        size = jnp.cumsum(jnp.where(inside, jnp.abs(past.regret) @ flat, 0.0))
        cost = jnp.sqrt(price(past, flat, at - 1) * size)
        ended = cost[min(after, total + 1) - 2]
        right += jnp.where(past.rounds < at, 0.0, jnp.where(past.rounds < after, cost, ended))
        at = after
    return certificate(past, flat, right, "Luo 2016, AdaNormalHedge.TV, streaming")


def _renewed(hp: StreamingHparams, stats: StreamingStats) -> StreamingStats:
    """A new copy for the round to be played, in the place of the oldest of its level."""
    level, place = _places(hp)
    ours = (stats.now & ((2 << level) - 1)) == (1 << level)
    new = ours & ((stats.now >> (level + 1)) % 3 == place)
    clear = lambda table: jnp.where(new[:, None], 0.0, table)
    begun = jnp.where(new, stats.now, stats.start)
    return StreamingStats(clear(stats.regret), clear(stats.size), begun, stats.now)


def _places(hp: StreamingHparams) -> tuple[Int[Array, " M"], Int[Array, " M"]]:
    places = jnp.arange(3 * hp.levels, dtype=jnp.int32)
    return places // 3, places % 3


def _level(t: int) -> int:
    return (t & -t).bit_length() - 1
