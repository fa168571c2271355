r"""NormalHedge.DT: NormalHedge with a potential for discrete time, without root finding.

$$p_{t,i} \propto q_i \big( e^{[R_{t-1,i} + 1]_+^2 / (3 t)} - e^{[R_{t-1,i} - 1]_+^2 / (3 t)}
  \big).$$

It needs no horizon and no step size, and gives no weight to an expert with regret at most $-1$. Its
bound holds for all mixtures at once: with $S$ the support of $u$,

$$R_T(u) \le \sqrt{3 T \big( \mathrm{RE}(u \| q) + \ln(D_T + q(S)) \big)}, \qquad
  D_T = \frac12 \sum_{t \le T} (e^{4 / (3 t)} - 1).$$

Luo, Optimal and Adaptive Online Learning, 2016, lemma 2, corollary 2.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from olx import _clock as clock
from olx._clock import Clock
from olx._refusal import public
from olx.core import Learner, Scalar
from olx.experts import _normal
from olx.experts.account import Account, certificate, expert_theorem, mixture
from olx.experts.base import ExpertHparams, ExpertState, Seen, Weights, expert_learner
from olx.theorem import Certificate


class NormalHedgeDTStats(NamedTuple):
    regret: Float[Array, " N"]
    clock: Clock
    beyond: Float[Array, ""]  # the sum of [weight - 1]_+ over rounds


@public
def normal_hedge_dt(
    prior: PyTree = None, *, low: Scalar | None = None, high: Scalar | None = None
) -> Learner:
    """NormalHedge.DT with a prior over the experts.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 4))
    >>> run = olx.rollout(normal_hedge_dt(), olx.losses.linear_loss, rounds, jnp.ones(2))
    >>> run.losses.round(2).tolist()
    [0.5, 0.09, 0.0, 0.0]
    """
    parts = start, weigh, learn, normal_hedge_dt_regret
    return expert_learner("normal_hedge_dt", None, *parts, prior=prior, low=low, high=high)


def start(_: PyTree, prior: Array) -> NormalHedgeDTStats:
    zero = jnp.zeros((), prior.dtype)
    return NormalHedgeDTStats(jnp.zeros_like(prior), clock.start(None, prior), zero)


def weigh(_: PyTree, prior: Array, stats: NormalHedgeDTStats) -> Weights:
    return _normal.weigh(prior, stats.regret, stats.clock.past + stats.beyond)


def learn(_: PyTree, prior: Array, stats: NormalHedgeDTStats, seen: Seen) -> NormalHedgeDTStats:
    beyond = jnp.maximum(seen.feedback.weight - 1, 0.0)  # so that |R| <= C
    return NormalHedgeDTStats(
        stats.regret + seen.regret,
        clock.tick(None, stats.clock, seen.feedback),
        stats.beyond + beyond,
    )


def open_excess(hp: ExpertHparams, prior: Array) -> Array:
    return jnp.zeros((), prior.dtype)


def add_excess(hp: ExpertHparams, account: Account, state: ExpertState, seen: Seen) -> Array:
    """$D_T$."""
    return account.own + jnp.expm1(4 / (3 * account.clock.now)) / 2


def both_sides(hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    r"""Corollary 2 for mixtures; `published` uses $D_T \le \frac12 (e^{4/3} - 1)(1 + \ln T)$."""
    t = account.rounds
    most = float(np.expm1(4 / 3)) / 2 * (1 + jnp.log(t))
    right = lambda excess: _normal.regret_bound(
        mixture(account, u), account.flat_prior, t * jnp.ones_like(account.regret), excess
    )
    return certificate(hp, account, u, right(account.own), right(most))


normal_hedge_dt_regret = expert_theorem(
    "normal_hedge_dt_regret", "Luo 2016, corollary 2", open_excess, add_excess, both_sides
)
