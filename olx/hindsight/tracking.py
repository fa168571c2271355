r"""Competitors that change: intervals, shifts, and sequences of any variation.

A sequence of non-negative vectors $u_1, \dots, u_T$ has regret $\sum_t \langle u_t, r_t\rangle$ and
variation $V = \sum_t \sum_i [u_{t,i} - u_{t-1,i}]_+$ with $u_0 = 0$: the least total weight of
intervals that it is a sum of. So a learner with regret at most $\sqrt{A \sum_{t \in J} |r_{t,i}|}$
to every expert on every interval $J$ has, by Cauchy and Schwarz, regret at most

$$\sqrt{A V \textstyle\sum_t \langle u_t, |r_t|\rangle}.$$

Luo, Optimal and Adaptive Online Learning, 2016, section 2.3.3, theorem 7, lemma 5.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PyTree

from olx import _check as check
from olx.certificate import Certificate
from olx.core import Learner, Run
from olx.experts import streaming, tracking
from olx.experts.fixed_share import mix_gaps
from olx.experts.history import LIGHT, History, history
from olx.experts.tracking import TrackingHparams
from olx.hindsight.about import FIXED_SHARE, INTERVALS, TRACKING
from olx.hindsight.game import Game, judged, played

POSITIVE = "comparators must not be negative"


class Piece(NamedTuple):
    """The `weight` of the rounds from `start` up to, not including, `stop`."""

    weight: float
    start: int
    stop: int


def interval_bound(learner: Learner, run: Run, u: PyTree, start: int) -> Certificate:
    """The regret to the mixture `u` on the rounds from `start` on, counted from 0.

    learner: `ada_normal_hedge_tv`, for which `start` may be traced; or
        `ada_normal_hedge_streaming`, for which it is a Python integer.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.switching_losses(jax.random.key(0), rounds=40, experts=3)
    >>> learner = olx.experts.ada_normal_hedge_tv(40)
    >>> run = olx.rollout(
    ...     learner, olx.losses.linear_loss, rounds, jnp.ones(3), record=olx.record.trace
    ... )
    >>> bool(interval_bound(learner, run, jnp.array([0.0, 1.0, 0.0]), start=16).holds)
    True
    """
    game, hp = played("interval_bound", INTERVALS, learner, run, u), learner.hparams
    before = jnp.concatenate([jnp.zeros(1, game.count.dtype), game.count])  # rounds that count
    if isinstance(hp.own, TrackingHparams):
        return judged(game, tracking.interval_bound(hp, game.trace, game.u, before[start]))
    if not isinstance(game.count, Tracer):
        return judged(game, streaming.chained_bound(hp, game.trace, game.u, int(before[start])))
    proof = judged(game, streaming.chained_bound(hp, game.trace, game.u, start))
    return proof.given("weights must not be 0 before `start`", before[start] == start)


def shifting_bound(learner: Learner, run: Run, us: PyTree) -> Certificate:
    r"""Theorem 7 for `ada_normal_hedge_tv`, against `us[t]` in round t, after every round.

    us: non-negative, a leading axis of rounds on every leaf. For $K$ experts one after the other,
        which `olx.hindsight.best_shifting_expert` finds, the variation is $K$.

    Printed in the form for small losses, $\sqrt{2 V A \tilde L} + V A$, where
    $\tilde L = \sum_t \langle u_t, [-r_t]_+\rangle$.
    """
    game = played("shifting_bound", TRACKING, learner, run, us)
    past = history(learner.hparams, game.trace)
    flat = _rows("shifting_bound", game, past)
    moved = _cumulative_variation(flat)
    rarest = jnp.min(past.prior)  # an expert at a time, each from some round on
    copies = jnp.log(past.rounds**2 * (np.pi**2 / 6) / rarest)
    price = 3 * (copies + jnp.log(2.5 + 1.5 * jnp.log1p(past.rounds)))
    sizes = jnp.cumsum(jnp.sum(flat * jnp.abs(past.regret), axis=1))
    excess = jnp.cumsum(jnp.sum(flat * jnp.maximum(-past.regret, 0.0), axis=1))
    small = jnp.sqrt(2 * moved * price * excess) + moved * price
    right = jnp.sqrt(price * moved * sizes)
    return _certificate(game, past, flat, right, small, "Luo 2016, theorem 7")


def fixed_share_bound(learner: Learner, run: Run, path: Int[Array, " T"]) -> Certificate:
    r"""Regret of `fixed_share` to the sequence of experts `path`, after every round.

    Printed with $\eta / 8$ for what mixing costs in a round.
    """
    game, hp = played("fixed_share_bound", FIXED_SHARE, learner, run), learner.hparams
    past, path = history(hp, game.trace), _path(game, path)
    flat = jax.nn.one_hot(path, past.prior.size, dtype=past.prior.dtype)
    alpha, arrive = hp.own.alpha, past.prior[path]
    stays = jnp.concatenate([jnp.zeros(1, bool), path[1:] == path[:-1]])
    chance = alpha * arrive + jnp.where(stays, 1 - alpha, 0.0)
    first = jnp.arange(path.size) == 0
    paid = -jnp.cumsum(jnp.log(jnp.where(first, arrive, chance))) / hp.own.eta
    right, printed = paid + mix_gaps(hp, game.trace), paid + hp.own.eta * past.rounds / 8
    return _certificate(game, past, flat, right, printed, "Herbster, Warmuth 1998")


def upward_variation(us: PyTree) -> Array:
    r"""$\sum_t \sum_i [u_{t,i} - u_{t-1,i}]_+$ with $u_0 = 0$."""
    return _cumulative_variation(jax.vmap(lambda u: ravel_pytree(u)[0])(us))[-1]


def intervals(sequence: Float[Array, " T"]) -> list[Piece]:
    """A non-negative sequence as a sum of intervals of the least total weight: lemma 5.

    >>> intervals(np.array([1.0, 3.0, 2.0, 0.0, 1.0]))
    [Piece(weight=1.0, start=0, stop=3), Piece(weight=1.0, start=1, stop=3), \
Piece(weight=1.0, start=1, stop=2), Piece(weight=1.0, start=4, stop=5)]
    """
    sequence = check.non_negative("intervals", "sequence", np.asarray(sequence, float), each=True)
    pieces, unfinished = [], [(0.0, 0)]  # up to which level, and from where on
    for t, value in enumerate([*sequence.tolist(), 0.0]):
        while unfinished[-1][0] > value:
            top, start = unfinished.pop()
            bottom = max(unfinished[-1][0], value)
            pieces.append(Piece(top - bottom, start, t))
            if bottom > unfinished[-1][0]:
                unfinished.append((bottom, start))
        if unfinished[-1][0] < value:
            unfinished.append((value, t))
    return sorted(pieces, key=lambda piece: (piece.start, -piece.stop))


def _rows(owner: str, game: Game, past: History) -> Float[Array, "T N"]:
    """A comparator for every round, in the order of the game."""
    flat = jax.vmap(lambda u: ravel_pytree(u)[0])(game.u)
    if flat.shape != past.regret.shape:
        raise TypeError(
            f"{owner}: `us` must have a row for every round and a column for every expert, "
            f"{past.regret.shape}, got {flat.shape}."
        )
    return flat[game.order].astype(past.prior.dtype)


def _path(game: Game, path: PyTree) -> Int[Array, " T"]:
    path = jnp.asarray(path)
    if path.shape != game.count.shape or not jnp.issubdtype(path.dtype, jnp.integer):
        raise TypeError(
            "fixed_share_bound: `path` must hold the number of an expert for every round, "
            f"{game.count.shape}, got {path.dtype}{list(path.shape)}."
        )
    return path[game.order]


def _cumulative_variation(flat: Float[Array, "T N"]) -> Float[Array, " T"]:
    before = jnp.concatenate([jnp.zeros_like(flat[:1]), flat[:-1]])
    return jnp.cumsum(jnp.sum(jnp.maximum(flat - before, 0.0), axis=1))


def _certificate(
    game: Game, past: History, flat: Array, right: Array, printed: Array, theorem: str
) -> Certificate:
    left = jnp.cumsum(jnp.sum(flat * past.regret, axis=1))
    size = past.rounds + jnp.abs(left) + jnp.where(jnp.isfinite(right), jnp.abs(right), 0.0)
    sides = (past.unit * side for side in (left, right, size, printed))
    proof = Certificate(*sides, theorem=theorem).given(LIGHT, past.light)
    return judged(game, proof.given(POSITIVE, jnp.all(flat >= 0, axis=1)))
