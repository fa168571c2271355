r"""Hedge with a step size that may change, for experts that may sleep.

$$p_{t,i} \propto q_i e^{\eta_t R_{t-1,i}}, \qquad
  \delta_t = \frac1{\eta_t} \ln \sum_i \tilde p_{t,i} e^{\eta_t r_{t,i}} \le \frac{\eta_t}8,$$

with $\tilde p$ the distribution before confidences. If steps never grow,

$$R_T(u) \le \frac{\mathrm{RE}(u \| q)}{\eta_T} + \sum_{t \le T} \delta_t,$$

because $\frac1\eta \ln \sum_i q_i e^{\eta R_i}$ rises by $\delta_t$ in a round, falls as $\eta$
shrinks, and is at least $\langle u, R\rangle - \mathrm{RE}(u \| q) / \eta$. Steps of
$2 \sqrt{\ln N / t}$ give $\sqrt{T \ln N}$ on an unknown horizon. If all experts are awake and the
step is fixed, `olx.hedge` is the same.

Cesa-Bianchi, Lugosi, Prediction, Learning, and Games, 2006, section 2.3.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, PyTree

from olx._refusal import public
from olx.core import Learner, Process, Scalar
from olx.experts._mix_gap import mix_gap
from olx.experts.account import Account, certificate, expert_theorem, mixture, relative_entropy
from olx.experts.base import ExpertHparams, ExpertState, Seen, Weights, expert_learner
from olx.schedules.fixed import as_schedule, no_stats
from olx.theorem import Certificate


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

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 4))
    >>> learner = anytime_hedge(olx.schedules.decay(1.0))
    >>> olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.ones(2)).losses.round(3).tolist()
    [0.5, 0.33, 0.24, 0.182]
    """
    return expert_learner(
        "anytime_hedge",
        as_schedule("eta", eta),
        start,
        weigh,
        learn,
        mixability_gaps,
        prior=prior,
        low=low,
        high=high,
        unbounded=True,
    )


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
    zero = jnp.zeros((), prior.dtype)
    return HedgeSums(zero + jnp.inf, zero, zero, jnp.ones((), bool))


def add_sums(hp: ExpertHparams, account: Account, state: ExpertState, seen: Seen) -> HedgeSums:
    past, eta = account.own, step_of(hp, state)
    gaps = past.gaps + mix_gap(seen.log_share, seen.regret, eta)
    return HedgeSums(eta, gaps, past.steps + eta, past.shrinks & ~(eta > past.eta))


def both_sides(hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    r"""The inequality above, while no step grows; `published` uses $\delta_t \le \eta_t / 8$."""
    own = account.own
    paid = relative_entropy(mixture(account, u), account.flat_prior) / own.eta
    proof = certificate(hp, account, u, paid + own.gaps, paid + own.steps / 8)
    return proof.given("steps must not grow", own.shrinks)


mixability_gaps = expert_theorem(
    "mixability_gaps", "Hedge with steps that never grow", open_sums, add_sums, both_sides
)


def step_of(hp: ExpertHparams, state: ExpertState) -> Float[Array, ""]:
    """The step of the round about to be played."""
    return jnp.asarray(hp.own.at(state.stats.step), ravel_pytree(state.prior)[0].dtype)


def has_fixed_step(learner: Learner) -> bool:
    """Whether `learner` is an `anytime_hedge` with a fixed step."""
    hp = learner.hparams
    return isinstance(hp, ExpertHparams) and hp.learn_fn is learn and hp.own.init_fn is no_stats
