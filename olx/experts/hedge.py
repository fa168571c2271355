r"""Hedge for experts that may sleep, with steps that are given, or set by the mixability gaps.

`anytime_hedge` has a step size that may change,

$$p_{t,i} \propto q_i e^{\eta_t R_{t-1,i}}, \qquad
  \delta_t = \frac1{\eta_t} \ln \sum_i \tilde p_{t,i} e^{\eta_t r_{t,i}} \le \frac{\eta_t}8,$$

with $\tilde p$ the distribution before confidences. If steps never grow,

$$R_T(u) \le \frac{\mathrm{RE}(u \| q)}{\eta_T} + \sum_{t \le T} \delta_t,$$

because $\frac1\eta \ln \sum_i q_i e^{\eta R_i}$ rises by $\delta_t$ in a round, falls as $\eta$
shrinks, and is at least $\langle u, R\rangle - \mathrm{RE}(u \| q) / \eta$. Steps of
$2 \sqrt{\ln N / t}$ give $\sqrt{T \ln N}$ on an unknown horizon. If all experts are awake and the
step is fixed, `olx.hedge` is the same.

`adahedge` sets the step by the gaps so far,

$$p_{t,i} \propto q_i e^{\eta_t R_{t-1,i}}, \qquad \eta_t = \frac{\ln N}{\Delta_{t-1}}, \qquad
  \Delta_t = \Delta_{t-1} + \delta_t,$$

While $\Delta = 0$ it follows the leaders. With losses in $[0, 1]$

$$R_T(u) \le \frac{\mathrm{RE}(u \| q)}{\ln N} \Delta_{T-1} + \Delta_T, \qquad
  \Delta_T \le \frac12 \sqrt{T \ln N} + \frac23 \ln N + 1.$$

The mixability gap $\delta$ is the loss of a mixture minus its mix loss. As $\sum_i p_i r_i = 0$,

$$\delta = \frac1\eta \ln \sum_i p_i e^{\eta r_i} = \frac1\eta \ln \Big( 1 + \sum_i p_i
  \varphi(\eta r_i) \Big), \qquad \varphi(x) = e^x - 1 - x \ge 0.$$

The first form is used where one expert of small weight dominates the sum: $p_i$ may underflow
there, but $\ln p_i + \eta r_i$ does not. The second form is used everywhere else: it has no
cancellation, and the gap is never negative.

Cesa-Bianchi, Lugosi, Prediction, Learning, and Games, 2006, section 2.3; de Rooij, van Erven,
Grünwald, Koolen, Follow the Leader If You Can, Hedge If You Must, 2014.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, PyTree

from olx import _numeric as safe
from olx._refusal import public
from olx.certificate import Certificate
from olx.core import Learner, Process, Scalar
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
from olx.schedules.fixed import as_schedule, no_stats
from olx.theorem import MET, ZERO, latest


class HedgeStats(NamedTuple):
    regret: Float[Array, " N"]
    step: PyTree  # statistics of the schedule


@public
def anytime_hedge(
    eta: Scalar | Process,
    prior: PyTree = None,
    *,
    low: Scalar | None = None,
    high: Scalar | None = None,
) -> Learner:
    r"""Weigh experts by the exponential of their regret times `eta`.

    eta: a number or a schedule such as `olx.schedules.decay`, in units of the range of losses;
        $2 \sqrt{\ln N}$ divided by the root of the round suits every horizon.
    prior: non-negative weights of the experts; `params` if None.
    low: the least loss; 0 if None.
    high: the largest loss; 1 if None.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 4))
    >>> learner = anytime_hedge(olx.schedules.decay(1.0))
    >>> olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.ones(2)).losses.round(3).tolist()
    [0.5, 0.33, 0.24, 0.182]
    """
    parts = as_schedule("eta", eta), start, weigh, learn, mixability_gaps
    return expert_learner("anytime_hedge", *parts, prior=prior, low=low, high=high, unbounded=True)


def start(eta: Process, prior: Array) -> HedgeStats:
    return HedgeStats(jnp.zeros_like(prior), eta.init(prior))


def weigh(eta: Process, prior: Array, stats: HedgeStats) -> Weights:
    return Weights(eta.at(stats.step) * stats.regret, prior)


def learn(eta: Process, prior: Array, stats: HedgeStats, seen: Seen) -> HedgeStats:
    return HedgeStats(stats.regret + seen.regret, eta.update(stats.step, seen.feedback))


class HedgeSums(NamedTuple):
    eta: Float[Array, ""]  # the last step, infinite before the first round
    gaps: Float[Array, ""]
    steps: Float[Array, ""]
    shrinks: Bool[Array, ""]  # whether no step grew


def open_sums(hp: ExpertHparams, prior: Array) -> HedgeSums:
    return HedgeSums(ZERO + jnp.inf, ZERO, ZERO, MET)


def terms(hp: ExpertHparams, account: Account, state: ExpertState, seen: Seen) -> HedgeSums:
    eta = step_of(hp, state)
    gap = mix_gap(seen.log_share, seen.regret, eta)
    return HedgeSums(latest(eta), gap, eta, ~(eta > account.own.eta))


def both_sides(hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    r"""The inequality above, while no step grows; `published` uses $\delta_t \le \eta_t / 8$."""
    own = account.own
    paid = relative_entropy(mixture(account, u), account.flat_prior) / own.eta
    proof = certificate(hp, account, u, paid + own.gaps, paid + own.steps / 8)
    return proof.given("steps must not grow", own.shrinks)


mixability_gaps = expert_theorem(
    "mixability_gaps", "Hedge with steps that never grow", both_sides, terms, open_sums
)


def step_of(hp: ExpertHparams, state: ExpertState) -> Float[Array, ""]:
    """The step of the round about to be played."""
    return jnp.asarray(hp.own.at(state.stats.step), ravel_pytree(state.prior)[0].dtype)


def has_fixed_step(learner: Learner) -> bool:
    """Whether `learner` is an `anytime_hedge` with a fixed step."""
    hp = learner.hparams
    return isinstance(hp, ExpertHparams) and hp.learn_fn is learn and hp.own.init_fn is no_stats


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
    parts = None, start_adahedge, weigh_adahedge, learn_adahedge, adahedge_gaps
    return expert_learner("adahedge", *parts, prior=prior, low=low, high=high)


def start_adahedge(_: PyTree, prior: Array) -> AdaHedgeStats:
    return AdaHedgeStats(jnp.zeros_like(prior), jnp.zeros((), prior.dtype))


def weigh_adahedge(_: PyTree, prior: Array, stats: AdaHedgeStats) -> Weights:
    begun, eta = _step(stats)
    best = highest(stats.regret, prior > 0)
    behind = stats.regret - lax.stop_gradient(best)
    left_out = ~begun & (behind < 0)
    return Weights(jnp.where(begun, eta, 0.0) * behind, jnp.where(left_out, 0.0, prior))


def learn_adahedge(_: PyTree, prior: Array, stats: AdaHedgeStats, seen: Seen) -> AdaHedgeStats:
    gap = _gap(stats, seen.log_share, seen.regret)
    return AdaHedgeStats(stats.regret + seen.regret, stats.gap + gap)


class Gaps(NamedTuple):
    before: Float[Array, ""]  # Delta before the last round
    after: Float[Array, ""]


def open_gaps(hp: ExpertHparams, prior: Array) -> Gaps:
    return Gaps(ZERO, ZERO)


def gap_terms(hp: ExpertHparams, account: Account, state: ExpertState, seen: Seen) -> Gaps:
    before = state.stats.gap
    gap = _gap(state.stats, seen.log_share, seen.regret)
    return Gaps(latest(before), latest(before + gap))


def adahedge_sides(hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    r"""The inequality above; `published` uses the bound on $\Delta_T$."""
    log_n = _log_size(account.regret)
    entropy = relative_entropy(mixture(account, u), account.flat_prior) / log_n
    paid = jnp.where(jnp.isinf(entropy), jnp.inf, entropy * account.own.before)
    most = jnp.sqrt(account.rounds * log_n) / 2 + 2 / 3 * log_n + 1
    return certificate(hp, account, u, paid + account.own.after, (1 + entropy) * most)


adahedge_gaps = expert_theorem(
    "mixability_gaps", "de Rooij et al. 2014, AdaHedge", adahedge_sides, gap_terms, open_gaps
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


def mix_gap(
    log_share: Float[Array, " N"], regret: Float[Array, " N"], eta: Scalar
) -> Float[Array, ""]:
    """The mixability gap of a distribution, given by its logarithms, with mean regret 0.

    log_share: the logarithms; the lowest finite number for an expert without weight.
    """
    x = jnp.where(log_share > lowest(log_share), eta * regret, 0.0)
    share, grown = jnp.exp(log_share), log_share + x
    most = lax.stop_gradient(jnp.max(grown))
    decided = most > 1
    top = jnp.where(decided, most, 0.0)

    far = x > 30  # p_i e^x is computed as e^(log p_i + x); 1 + x is negligible
    power = jnp.exp(jnp.where(far, grown - top, x))
    mass = jnp.where(far, power, share * power * jnp.exp(-top))
    mixed = top + jnp.log(jnp.sum(mass))

    near = jnp.abs(x) < 0.5
    over = jnp.where(near, _series(jnp.where(near, x, 0.0)), jnp.where(far, 0.0, power) - 1 - x)
    excess = jnp.sum(share * over + jnp.where(far, mass, 0.0))
    return jnp.where(decided, mixed, jnp.log1p(jnp.where(decided, 0.0, excess))) / eta


def _series(x: Array) -> Array:
    r"""$\varphi$ to full precision for $|x| < \frac12$."""
    total = jnp.zeros_like(x)
    for k in range(14, 1, -1):
        total = total * x + 1 / math.factorial(k)
    return total * x**2
