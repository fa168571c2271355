r"""Hedge with a step that may change, for experts that may sleep.

$$p_{t,i} \propto q_i e^{\eta_t R_{t-1,i}}, \qquad
  \delta_t = \frac1{\eta_t} \ln \sum_i \tilde p_{t,i} e^{\eta_t r_{t,i}} \le \frac{\eta_t}8,$$

with $\tilde p$ the distribution before confidences. As long as steps never grow,

$$R_T(u) \le \frac{\mathrm{RE}(u \| q)}{\eta_T} + \sum_{t \le T} \delta_t,$$

because $\frac1\eta \ln \sum_i q_i e^{\eta R_i}$ rises by $\delta_t$ in a round, falls as $\eta$
shrinks, and is at least $\langle u, R\rangle - \mathrm{RE}(u \| q) / \eta$. Steps of
$2 \sqrt{\ln N / t}$ give $\sqrt{T \ln N}$ on an unknown horizon. Where all are awake and the step
is fixed, `olx.hedge` is the same.

Cesa-Bianchi, Lugosi, Prediction, Learning, and Games, 2006, section 2.3.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx.certificate import Certificate
from olx.core import Learner, Process, Scalar, Trace
from olx.experts._mix_gap import mix_gap
from olx.experts.base import ExpertHparams, Seen, Weights, expert_learner
from olx.experts.history import certificate, history, mixture, relative_entropy
from olx.schedules.decay import as_schedule


class HedgeStats(NamedTuple):
    regret: Float[Array, " N"]
    step: PyTree  # statistics of the schedule


def anytime_hedge(
    eta: Scalar | Process,
    prior: PyTree = None,
    *,
    low: Scalar | None = None,
    high: Scalar | None = None,
) -> Learner:
    r"""Weigh experts by the exponential of their regret times `eta`.

    eta: a number or a schedule such as `olx.schedules.decay`, in units of the range of losses;
        $2 \sqrt{\ln N}$ decaying by the root of time suits every horizon.
    prior: non-negative, of any sum; `params` if None.
    low, high: the range of losses, 0 and 1 if None.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 4))
    >>> learner = anytime_hedge(olx.schedules.decay(1.0))
    >>> olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.ones(2)).losses.round(3).tolist()
    [0.5, 0.33, 0.24, 0.182]
    """
    if not isinstance(eta, Process):
        eta = check.positive("anytime_hedge", "eta", eta)
    return expert_learner(
        "anytime_hedge",
        as_schedule(eta),
        start,
        weigh,
        learn,
        bound,
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


def bound(hp: ExpertHparams, trace: Trace, u: PyTree) -> Certificate:
    r"""The inequality above, as long as no step grew; printed with $\delta_t \le \eta_t / 8$."""
    past, flat = history(hp, trace), mixture(trace, u)
    step = lambda stats, _: jnp.asarray(hp.own.at(stats.step), flat.dtype)
    eta = jax.vmap(step)(trace.state.stats, past.rounds)
    grew = eta > jnp.concatenate([eta[:1], eta[:-1]])
    paid = relative_entropy(flat, past.prior) / eta
    gaps = jax.vmap(mix_gap)(past.log_share, past.regret, eta)
    right, printed = paid + jnp.cumsum(gaps), paid + jnp.cumsum(eta) / 8
    proof = certificate(past, flat, right, "Hedge with steps that never grow", printed)
    return proof.given("steps must not grow", ~grew)
