r"""AdaHedge: Hedge with a step size set by the sum of the mixability gaps so far.

$$p_{t,i} \propto q_i e^{\eta_t R_{t-1,i}}, \qquad \eta_t = \frac{\ln N}{\Delta_{t-1}}, \qquad
  \Delta_t = \Delta_{t-1} + \delta_t,$$

where $\delta_t$ is the gap between the loss of the mixture and its mix loss, as in `anytime_hedge`.
While $\Delta = 0$ it follows the leaders. With losses in $[0, 1]$

$$R_T(u) \le \frac{\mathrm{RE}(u \| q)}{\ln N} \Delta_{T-1} + \Delta_T, \qquad
  \Delta_T \le \frac12 \sqrt{T \ln N} + \frac23 \ln N + 1.$$

De Rooij, van Erven, Grünwald, Koolen, Follow the Leader If You Can, Hedge If You Must, 2014.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree

from olx import _numeric as safe
from olx._refusal import public
from olx.core import Learner, Scalar
from olx.experts.account import Account, certificate, expert_theorem, mixture, relative_entropy
from olx.experts.base import (
    ExpertHparams,
    ExpertState,
    Seen,
    Weights,
    expert_learner,
    highest,
    lowest,
)
from olx.experts.hedge import mix_gap
from olx.theorem import ZERO, Certificate, latest


class AdaHedgeStats(NamedTuple):
    regret: Float[Array, " N"]
    gap: Float[Array, ""]  # Delta


@public
def adahedge(
    prior: PyTree = None, *, low: Scalar | None = None, high: Scalar | None = None
) -> Learner:
    """AdaHedge with a prior over the experts.

    prior: non-negative weights of the experts; `params` if None.
    low: the least loss; 0 if None.
    high: the largest loss; 1 if None.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]))
    >>> run = olx.rollout(adahedge(), olx.losses.linear_loss, rounds, jnp.ones(2))
    >>> run.losses.round(3).tolist()
    [0.5, 0.8, 0.5]
    """
    parts = None, start, weigh, learn, mixability_gaps
    return expert_learner("adahedge", *parts, prior=prior, low=low, high=high)


def start(_: PyTree, prior: Array) -> AdaHedgeStats:
    return AdaHedgeStats(jnp.zeros_like(prior), jnp.zeros((), prior.dtype))


def weigh(_: PyTree, prior: Array, stats: AdaHedgeStats) -> Weights:
    begun, eta = _step(stats)
    best = highest(stats.regret, prior > 0)
    behind = stats.regret - lax.stop_gradient(best)
    left_out = ~begun & (behind < 0)
    return Weights(jnp.where(begun, eta, 0.0) * behind, jnp.where(left_out, 0.0, prior))


def learn(_: PyTree, prior: Array, stats: AdaHedgeStats, seen: Seen) -> AdaHedgeStats:
    gap = _gap(stats, seen.log_share, seen.regret)
    return AdaHedgeStats(stats.regret + seen.regret, stats.gap + gap)


class Gaps(NamedTuple):
    before: Float[Array, ""]  # Delta before the last round
    after: Float[Array, ""]


def open_gaps(hp: ExpertHparams, prior: Array) -> Gaps:
    return Gaps(ZERO, ZERO)


def terms(hp: ExpertHparams, account: Account, state: ExpertState, seen: Seen) -> Gaps:
    before = state.stats.gap
    gap = _gap(state.stats, seen.log_share, seen.regret)
    return Gaps(latest(before), latest(before + gap))


def both_sides(hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    r"""The inequality above; `published` uses the bound on $\Delta_T$."""
    log_n = _log_size(account.regret)
    entropy = relative_entropy(mixture(account, u), account.flat_prior) / log_n
    paid = jnp.where(jnp.isinf(entropy), jnp.inf, entropy * account.own.before)
    most = jnp.sqrt(account.rounds * log_n) / 2 + 2 / 3 * log_n + 1
    return certificate(hp, account, u, paid + account.own.after, (1 + entropy) * most)


mixability_gaps = expert_theorem(
    "mixability_gaps", "de Rooij et al. 2014, AdaHedge", both_sides, terms, open_gaps
)


def _gap(stats: AdaHedgeStats, log_share: Array, regret: Array) -> Array:
    begun, eta = _step(stats)
    ahead = jnp.where(log_share > lowest(log_share), regret, 0.0)
    best = jax.nn.one_hot(jnp.argmax(ahead), ahead.size, dtype=ahead.dtype)
    gap = mix_gap(log_share, regret, eta)
    return jnp.where(begun, gap, best @ ahead)  # the limit of steps that grow to infinity


def _step(stats: AdaHedgeStats) -> tuple[Array, Array]:
    """Whether the step is finite, and the step. A gap for which it would overflow counts as 0."""
    log_n = _log_size(stats.regret)
    begun = stats.gap > 1e6 * jnp.finfo(stats.gap.dtype).tiny * log_n
    return begun, log_n / safe.or_one(stats.gap, begun)


def _log_size(regret: Array) -> Array:
    return jnp.log(jnp.asarray(max(regret.size, 2), regret.dtype))
