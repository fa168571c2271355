r"""Theorems about comparators that change: on intervals, and sequences of any variation.

A sequence of non-negative vectors $u_1, \dots, u_T$ has regret $\sum_t \langle u_t, r_t\rangle$ and
variation $V = \sum_t \sum_i [u_{t,i} - u_{t-1,i}]_+$ with $u_0 = 0$. It is a weighted sum of
intervals, with total weight at least $V$, and $V$ is attained. So a learner with regret at most
$\sqrt{A \sum_{t \in J} |r_{t,i}|}$ to every expert on every interval $J$ has, by Cauchy and
Schwarz, regret at most

$$\sqrt{A V \textstyle\sum_t \langle u_t, |r_t|\rangle}.$$

Luo, Optimal and Adaptive Online Learning, 2016, section 2.3.3, theorem 7, lemma 5.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx._refusal import RefusedType, public
from olx.core import Feedback, Learner
from olx.experts import streaming, tracking
from olx.experts.account import (
    Account,
    add_round,
    expert_theorem,
    has_own,
    in_units,
    mixture,
    open_account,
)
from olx.experts.base import ExpertHparams, ExpertState, Seen, seen
from olx.experts.streaming import StreamingHparams
from olx.experts.tracking import COPIED, TrackingHparams
from olx.theorem import About, Certificate, Theorem


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
    parts = (Partial(part, start) for part in (_open_interval, _add_interval, _interval_sides))
    return expert_theorem("interval", "Luo 2016, section 2.3.3", *parts, about=_INTERVALS)


def _covers(learner: Learner) -> bool:
    return has_own(learner, TrackingHparams) or has_own(learner, StreamingHparams)


def _tracks(learner: Learner) -> bool:
    return has_own(learner, TrackingHparams)


_INTERVALS = About("an `ada_normal_hedge_tv` or `ada_normal_hedge_streaming`", _covers)
_TRACKING = About("an `ada_normal_hedge_tv`", _tracks)


def _open_interval(start: Array, hp: ExpertHparams, prior: Array) -> Any:
    exact = isinstance(hp.own, TrackingHparams)
    return (tracking.open_since if exact else streaming.open_chain)(start, hp, prior)


def _add_interval(
    start: Array, hp: ExpertHparams, account: Account, state: ExpertState, seen: Seen
) -> Any:
    add = tracking.add_since if isinstance(hp.own, TrackingHparams) else streaming.add_link
    return add(start, hp, account, state, seen)


def _interval_sides(start: Array, hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    exact = isinstance(hp.own, TrackingHparams)
    sides = tracking.interval_sides if exact else streaming.chained_sides
    return sides(start, hp, account, u)


class Changes(NamedTuple):
    last: Float[Array, " N"]  # u of the last round, 0 before the first
    variation: Float[Array, ""]
    regret: Float[Array, ""]
    size: Float[Array, ""]
    below: Float[Array, ""]
    positive: Bool[Array, ""]
    copied: Bool[Array, ""]  # whether copies start where intervals do


def open_changes(hp: ExpertHparams, state: ExpertState, u: PyTree) -> Account:
    account = open_account(state)
    mixture(account, u)
    zero, met = jnp.zeros((), account.regret.dtype), jnp.ones((), bool)
    return account._replace(own=Changes(account.regret, zero, zero, zero, zero, met, met))


def add_change(
    hp: ExpertHparams, account: Account, state: ExpertState, feedback: Feedback, u: PyTree
) -> Account:
    what, here, past = seen(hp, state, feedback), mixture(account, u), account.own
    moved = jnp.sum(jnp.maximum(here - past.last, 0.0))
    changes = Changes(
        here,
        past.variation + moved,
        past.regret + what.regret @ here,
        past.size + jnp.abs(what.regret) @ here,
        past.below + jnp.maximum(-what.regret, 0.0) @ here,
        past.positive & jnp.all(here >= 0),
        past.copied & ((moved == 0) | (account.clock.rounds < hp.own.rounds)),
    )
    return add_round(account, what, changes)


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
changing = Theorem(
    "changing",
    "Luo 2016, theorem 7",
    open_changes,
    add_change,
    changing_sides,
    about=_TRACKING,
    sequence=True,
)
