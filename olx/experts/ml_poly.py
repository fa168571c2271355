r"""ML-Poly: polynomial weights with one learning rate per expert, and no range of losses.

$$p_{t,i} \propto q_i \eta_{t-1,i} [R_{t-1,i}]_+, \qquad
  \frac1{\eta_{t,i}} = B_t + \sum_{s \le t} r_{s,i}^2, \qquad B_t = \max_{s \le t,\, j} r_{s,j}^2.$$

The rates follow the regrets, so the unit of the losses does not matter: losses times a constant
give the same weights. This is the rule of the R package opera (`MLpol`). The paper has losses in
$[0, 1]$ and 1 in place of $B_t$.

With $W_t = \sum_i q_i \eta_{t,i} [R_{t,i}]_+^2$, the choice of $p_t$ and $2 a b \le a^2 + b^2$ give
$W_t \le W_{t-1} + \sum_i q_i \eta_{t-1,i} r_{t,i}^2$. That is large if a regret exceeds all earlier
ones by far. Without the choice of $p_t$, since $\eta_{t-1,i} - \eta_{t,i}$ pays for the product of
$R_{t-1,i}$ and $r_{t,i}$, also $W_t \le W_{t-1} + \sum_i q_i r_{t,i}^2 / (r_{t,i}^2 + B_t -
B_{t-1})$, where the sum is at most 1. So, by Cauchy and Schwarz, for every mixture $u$

$$R_T(u) \le \sqrt{E_T \sum_i \frac{u_i^2}{q_i \eta_{T,i}}}, \qquad E_T = \sum_{t \le T} \min\Big(
  \sum_i q_i \eta_{t-1,i} r_{t,i}^2, \; \sum_i \frac{q_i r_{t,i}^2}{r_{t,i}^2 + B_t - B_{t-1}}
  \Big).$$

As $B$ doubles at most $\log_2 (B_T / B_1)$ times, $E_T \le 1 + \log_2 \frac{B_T}{B_1} + \frac2{\ln
3} \ln \frac{(1 + T) B_T}{B_1}$, with $B_1$ the first that is not 0.

Gaillard, Stoltz, van Erven, A Second-order Bound with Excess Losses, 2014; the bound for rates
without a range is shown above.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from olx import _numeric as safe
from olx._refusal import public
from olx.certificate import Certificate
from olx.core import Learner
from olx.experts.account import Account, certificate_of_any_range, expert_theorem, mixture
from olx.experts.base import ExpertHparams, ExpertState, Seen, Weights, expert_learner
from olx.theorem import ZERO, latest


class MLPolyStats(NamedTuple):
    regret: Float[Array, " N"]
    squares: Float[Array, " N"]  # sums of squared regrets
    largest: Float[Array, ""]  # B, the largest squared regret


@public
def ml_poly(prior: PyTree = None) -> Learner:
    """ML-Poly with a prior over the experts; losses may have any range.

    prior: non-negative weights of the experts; `params` if None.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, 1e6 * jnp.array([[1.0, 0.0], [1.0, 0.0], [0.0, 3.0]]))
    >>> run = olx.rollout(
    ...     ml_poly(), olx.losses.linear_loss, rounds, jnp.ones(2), record=olx.record.actions
    ... )
    >>> run.trace.round(3).tolist()
    [[0.5, 0.5], [0.0, 1.0], [0.0, 1.0]]
    """
    parts = None, start, weigh, learn, ml_poly_regret
    return expert_learner("ml_poly", *parts, prior=prior, any_range=True)


def start(_: PyTree, prior: Array) -> MLPolyStats:
    zeros = jnp.zeros_like(prior)
    return MLPolyStats(zeros, zeros, jnp.zeros((), prior.dtype))


def weigh(_: PyTree, prior: Array, stats: MLPolyStats) -> Weights:
    ahead = jnp.maximum(stats.regret, 0.0)
    factor = prior * safe.divide(ahead, stats.squares + stats.largest)
    return Weights(jnp.zeros_like(factor), factor)


def learn(_: PyTree, prior: Array, stats: MLPolyStats, seen: Seen) -> MLPolyStats:
    squares = seen.regret**2
    largest = jnp.maximum(stats.largest, jnp.max(squares))
    return MLPolyStats(stats.regret + seen.regret, stats.squares + squares, largest)


class Sums(NamedTuple):
    growth: Float[Array, ""]  # E
    inverse: Float[Array, " N"]  # 1 / eta
    largest: Float[Array, ""]  # B
    first: Float[Array, ""]  # the first B that is not 0


def open_sums(hp: ExpertHparams, prior: Array) -> Sums:
    return Sums(ZERO, jnp.zeros_like(prior), ZERO, ZERO)


def terms(hp: ExpertHparams, account: Account, state: ExpertState, seen: Seen) -> Sums:
    prior, before, first = account.flat_prior, state.stats, account.own.first
    after, squares = learn(None, prior, before, seen), seen.regret**2
    old, jump = before.squares + before.largest, after.largest - before.largest
    slow = prior @ safe.divide(squares, old)
    fast = prior @ safe.divide(squares, squares + jump)
    return Sums(
        jnp.minimum(jnp.where(before.largest > 0, slow, jnp.inf), fast),
        latest(after.squares + after.largest),
        latest(after.largest),
        latest(jnp.where(first > 0, first, after.largest)),
    )


def both_sides(hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    """The inequality above; `published` has the bound on $E_T$."""
    flat, prior, own = mixture(account, u), account.flat_prior, account.own
    spread = safe.divide(flat**2, prior) @ own.inverse
    known = ~jnp.any((flat > 0) & (prior == 0))
    ratio = safe.divide(own.largest, own.first, 1.0)
    logs = 2 / np.log(3) * jnp.log((1 + account.rounds) * ratio)
    right = lambda growth: jnp.where(known, jnp.sqrt(growth * spread), jnp.inf)
    rights = right(own.growth), right(1 + jnp.log2(ratio) + logs)
    return certificate_of_any_range(account, u, jnp.sqrt(own.largest), *rights)


ml_poly_regret = expert_theorem(
    "second_order", "Gaillard, Stoltz, van Erven 2014, ML-Poly", both_sides, terms, open_sums
)
