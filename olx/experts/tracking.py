r"""AdaNormalHedge.TV: small regret on every interval, so also to comparators that change.

Every round $\tau$ adds a copy of every expert, which sleeps before that round and has the prior
$q_i / \tau^2$. With the weights $w$ of AdaNormalHedge and regrets from $\tau$ on,

$$p_{t,i} \propto q_i \sum_{\tau \le t} \tau^{-2}\, w\big( R_{[\tau, t-1], i}, C_{[\tau, t-1], i}
  \big), \qquad R_{[t_1, t_2]}(u) \le \sqrt{3 \langle u, C_{[t_1, t_2]}\rangle \Big(
  \mathrm{RE}(u \| q) + \ln \frac{\pi^2 t_1^2}6 + \ln B \Big)},$$

$B = \frac52 + \frac32 \ln(1 + t_2)$. The cost of a round is proportional to the number of copies.

`ada_normal_hedge_streaming` has a logarithmic number of them. A copy that starts in round $\tau = r
2^k$, $r$ odd, lives until round $\tau + 2^{k+2}$. So at most three copies per $k$ are alive; the
state has three places per $k$, and a round costs $O(N \ln t)$. Over its lifetime a copy has the
regret above. A longer interval is covered by several copies, each of which lives at least four
times as long as the one before. So the bound on an interval grows by a factor of order
$\sqrt{\ln(t_2 - t_1)}$ at most. The theorem `interval_from` is about an interval.

The theorem `changing` is about a sequence of non-negative vectors $u_1, \dots, u_T$, with regret
$\sum_t \langle u_t, r_t\rangle$ and variation $V = \sum_t \sum_i [u_{t,i} - u_{t-1,i}]_+$, $u_0 =
0$. It is a weighted sum of intervals, with total weight at least $V$, and $V$ is attained. So a
learner with regret at most $\sqrt{A \sum_{t \in J} |r_{t,i}|}$ to every expert on every interval
$J$ has, by Cauchy and Schwarz, regret at most

$$\sqrt{A V \textstyle\sum_t \langle u_t, |r_t|\rangle}.$$

Luo, Optimal and Adaptive Online Learning, 2016, section 2.3.3, theorem 7, lemma 5; Hazan,
Seshadhri, Efficient Learning Algorithms for Changing Environments, 2009.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, Int, PyTree, UInt32

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import RefusedType, public
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
from olx.experts.base import ExpertHparams, ExpertState, Seen, Weights, expert_learner
from olx.experts.normal_hedge import normal_weights
from olx.theorem import MET, ZERO, About, Theorem, latest

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
    prior: non-negative weights of the experts; `params` if None.
    low: the least loss; 0 if None.
    high: the largest loss; 1 if None.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 6 + [[0.0, 1.0]] * 6))
    >>> run = olx.rollout(ada_normal_hedge_tv(12), olx.losses.linear_loss, rounds, jnp.ones(2))
    >>> run.losses[jnp.array([5, 6, 11])].round(2).tolist()
    [0.01, 0.99, 0.56]
    """
    check.count("rounds", rounds)
    own = TrackingHparams(rounds)
    return expert_learner(
        "ada_normal_hedge_tv", own, start, weigh, learn, tv_regret, prior=prior, low=low, high=high
    )


def start(hp: TrackingHparams, prior: Array) -> TrackingStats:
    empty = jnp.zeros((hp.rounds, prior.size), prior.dtype)
    return TrackingStats(empty, empty, jnp.zeros((), prior.dtype))


def weigh(hp: TrackingHparams, prior: Array, stats: TrackingStats) -> Weights:
    starts = jnp.arange(1, hp.rounds + 1, dtype=prior.dtype)[:, None]
    copies = jnp.where(starts <= stats.rounds + 1, 1 / starts**2, 0.0)
    return _summed_copies(prior, normal_weights(copies, stats.regret, stats.size))


def _summed_copies(prior: Array, copies: Weights) -> Weights:
    """The weight of every expert, added up over its copies."""
    top = lax.stop_gradient(jnp.max(copies.log, axis=0))
    return Weights(top, prior * jnp.sum(copies.factor * jnp.exp(copies.log - top), axis=0))


def learn(hp: TrackingHparams, prior: Array, stats: TrackingStats, seen: Seen) -> TrackingStats:
    starts = jnp.arange(1, hp.rounds + 1, dtype=prior.dtype)[:, None]
    regret = jnp.where(starts <= stats.rounds + 1, seen.regret, 0.0)
    return TrackingStats(stats.regret + regret, stats.size + jnp.abs(regret), stats.rounds + 1)


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
    prior: non-negative weights of the experts; `params` if None.
    low: the least loss; 0 if None.
    high: the largest loss; 1 if None.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 6 + [[0.0, 1.0]] * 6))
    >>> learner = ada_normal_hedge_streaming(12)
    >>> run = olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.ones(2))
    >>> run.losses[jnp.array([5, 6, 11])].round(2).tolist()
    [0.05, 0.97, 0.04]
    """
    check.count("rounds", rounds)
    own = StreamingHparams(int(rounds).bit_length())
    parts = start_streaming, weigh_streaming, learn_streaming, streaming_regret
    return expert_learner(
        "ada_normal_hedge_streaming", own, *parts, prior=prior, low=low, high=high
    )


def start_streaming(hp: StreamingHparams, prior: Array) -> StreamingStats:
    empty = jnp.zeros((3 * hp.levels, prior.size), prior.dtype)
    none = jnp.zeros(3 * hp.levels, jnp.int32)
    return _with_new_copies(hp, StreamingStats(empty, empty, none, jnp.ones((), jnp.int32)))


def weigh_streaming(hp: StreamingHparams, prior: Array, stats: StreamingStats) -> Weights:
    level, _ = _places(hp)
    alive = (stats.start > 0) & (stats.now <= stats.start + (4 << level))
    begun = jnp.where(alive, stats.start, 1).astype(prior.dtype)[:, None]
    copies = jnp.where(alive[:, None], 1 / begun**2, 0.0)
    return _summed_copies(prior, normal_weights(copies, stats.regret, stats.size))


def learn_streaming(
    hp: StreamingHparams, prior: Array, stats: StreamingStats, seen: Seen
) -> StreamingStats:
    regret, size = stats.regret + seen.regret, stats.size + jnp.abs(seen.regret)
    return _with_new_copies(hp, StreamingStats(regret, size, stats.start, stats.now + 1))


def _with_new_copies(hp: StreamingHparams, stats: StreamingStats) -> StreamingStats:
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


@public
def interval_from(start: int | Array) -> Theorem:
    """The regret to a mixture on the rounds after the first `start`; both sides are 0 before.

    About `ada_normal_hedge_tv` and `ada_normal_hedge_streaming`.

    start: the number of rounds before the interval; rounds of weight 0 are not counted.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.switching_losses(jax.random.key(0), rounds=40, experts=3)
    >>> learner = olx.experts.ada_normal_hedge_tv(40)
    >>> game = olx.losses.linear_loss, rounds, jnp.ones(3)
    >>> late = olx.theorems.interval_from(16)
    >>> bool(olx.certify(learner, *game, jnp.array([0.0, 1.0, 0.0]), theorems=(late,)).holds)
    True
    """
    if not jnp.issubdtype(jnp.result_type(start), jnp.integer):
        raise RefusedType(f"`start` must be an integer, got {start!r}.")
    if not isinstance(start, Tracer):
        check.non_negative("start", start)
    start = jnp.asarray(start).astype(jnp.uint32)
    about = About("an `ada_normal_hedge_tv` or `ada_normal_hedge_streaming`", _covers)
    return _interval("interval", "Luo 2016, section 2.3.3", start, about)


def _interval(name: str, source: str, begin: int | Array, about: About | None = None) -> Theorem:
    """The regret on the rounds after the first `begin`, for a learner with few copies or many."""
    sides, terms = Partial(interval_sides, begin), Partial(interval_terms, begin)
    return expert_theorem(name, source, sides, terms, open_interval, about=about)


def _covers(learner: Learner) -> bool:
    return _tracks(learner) or has_own(learner, StreamingHparams)


def _tracks(learner: Learner) -> bool:
    return has_own(learner, TrackingHparams)


class Since(NamedTuple):
    """Sums over the rounds after the first `begin`."""

    regret: Float[Array, " N"]
    size: Float[Array, " *K N"]  # of the streaming learner: on the rounds that each copy covers


def open_interval(hp: ExpertHparams, prior: Array) -> Since:
    zeros = jnp.zeros_like(prior)
    exact = isinstance(hp.own, TrackingHparams)
    return Since(zeros, zeros if exact else jnp.stack([zeros] * _length(hp.own)))


def interval_terms(
    begin: Scalar, hp: ExpertHparams, account: Account, state: ExpertState, seen: Seen
) -> Since:
    past = account.clock.rounds
    regret = jnp.where(past >= begin, seen.regret, 0.0)
    if isinstance(hp.own, TrackingHparams):
        return Since(regret, jnp.abs(regret))
    now, (start, stop) = past + 1, _chain(hp.own, begin)
    inside = ((start <= now) & (now < stop))[:, None]
    return Since(regret, jnp.where(inside, jnp.abs(regret), 0.0))


def interval_sides(begin: Scalar, hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    """`published` adds 1 to the logarithms, as in the source."""
    if not isinstance(hp.own, TrackingHparams):
        return _chained_sides(begin, hp, account, u)
    flat, own = mixture(account, u), account.own
    size, cost = own.size @ flat, price(account.flat_prior, flat, account.rounds, begin)
    account = account._replace(regret=own.regret)
    proof = certificate(hp, account, u, jnp.sqrt(cost * size), jnp.sqrt((cost + 3) * size))
    return proof.given(COPIED, (begin < hp.own.rounds) | (account.clock.rounds <= begin))


def _chained_sides(begin: Scalar, hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    """A sum over the copies that cover the interval.

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


def price(prior: Array, u: Array, rounds: Array, begin: Scalar) -> Array:
    r"""$A = 3 (\mathrm{RE}(u \| q) + \ln(\pi^2 t_1^2 / 6) + \ln B)$, with $t_1$ = `begin` + 1."""
    copies = jnp.log((jnp.asarray(begin, u.dtype) + 1) ** 2 * (np.pi**2 / 6))
    b = 2.5 + 1.5 * jnp.log1p(rounds)
    return 3 * (relative_entropy(u, prior) + copies + jnp.log(b))


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


tv_regret = _interval("whole_run", "Luo 2016, AdaNormalHedge.TV", 0)
streaming_regret = _interval("whole_run", "Luo 2016, AdaNormalHedge.TV, streaming", 0)


class Changes(NamedTuple):
    last: Float[Array, " N"]  # u of the last round, 0 before the first
    variation: Float[Array, ""]
    regret: Float[Array, ""]
    size: Float[Array, ""]
    below: Float[Array, ""]
    positive: Bool[Array, ""]
    copied: Bool[Array, ""]  # whether copies start where intervals do


def open_changes(hp: ExpertHparams, prior: Array) -> Changes:
    return Changes(jnp.zeros_like(prior), ZERO, ZERO, ZERO, ZERO, MET, MET)


def changes_terms(
    hp: ExpertHparams, account: Account, state: ExpertState, seen: Seen, here: Array
) -> Changes:
    moved = jnp.sum(jnp.maximum(here - account.own.last, 0.0))
    return Changes(
        latest(here),
        moved,
        seen.regret @ here,
        jnp.abs(seen.regret) @ here,
        jnp.maximum(-seen.regret, 0.0) @ here,
        jnp.all(here >= 0),
        (moved == 0) | (account.clock.rounds < hp.own.rounds),
    )


def changing_sides(hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    r"""Theorem 7; `published` is the form for small losses, $\sqrt{2 V A \tilde L} + V A$, where
    $\tilde L = \sum_t \langle u_t, [-r_t]_+\rangle$."""
    own, t = account.own, account.rounds
    rarest = jnp.min(account.flat_prior)  # intervals have one expert each
    copies = jnp.log(t**2 * (np.pi**2 / 6) / rarest)
    price = 3 * (copies + jnp.log(2.5 + 1.5 * jnp.log1p(t)))
    right = jnp.sqrt(price * own.variation * own.size)
    most = own.variation * price
    small = jnp.sqrt(2 * most * own.below) + most
    proof = in_units(hp, account, own.regret, right, small)
    proof = proof.given("comparators must not be negative", own.positive)
    return proof.given(COPIED, own.copied)


# About `ada_normal_hedge_tv` against the non-negative `u[t]` in round t. A sequence of K single
# experts has variation K; `olx.hindsight.best_shifting_expert` finds the best one.
changing = sequence_theorem(
    "changing",
    "Luo 2016, theorem 7",
    changing_sides,
    changes_terms,
    open_changes,
    About("an `ada_normal_hedge_tv`", _tracks),
)
