r"""Fixed Share: Hedge that gives a part of all weight back to the prior in every round.

$$p_{t+1} = (1 - \alpha) v_t + \alpha q, \qquad v_{t,i} \propto p_{t,i} e^{-\eta \ell_{t,i}}.$$

It is Hedge over all sequences of experts, with a Markov chain that moves with chance $\alpha$ as
their prior $\pi$. So for every sequence $i_1, \dots, i_T$

$$\sum_{t \le T} r_{t, i_t} \le \frac1\eta \ln \frac1{\pi(i_1, \dots, i_T)} + \sum_{t \le T}
  \delta_t, \qquad \delta_t = \frac1\eta \ln \sum_i p_{t,i} e^{\eta r_{t,i}} \le \frac\eta8,$$

and for one mixture $u$ throughout, $\mathrm{RE}(u \| q) - (T - 1) \ln(1 - \alpha)$ takes the place
of the logarithm. Shifts are certified by `olx.hindsight.fixed_share_bound`.

Herbster, Warmuth, Tracking the Best Expert, 1998.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import pytree
from olx.certificate import Certificate
from olx.core import Learner, Scalar, Trace
from olx.experts._mix_gap import mix_gap
from olx.experts._vectors import lowest
from olx.experts.base import ExpertHparams, Seen, Weights, expert_learner
from olx.experts.history import certificate, history, mixture, relative_entropy


@pytree
class FixedShareHparams:
    eta: Scalar
    alpha: Scalar


def fixed_share(
    eta: Scalar,
    alpha: Scalar,
    prior: PyTree = None,
    *,
    low: Scalar | None = None,
    high: Scalar | None = None,
) -> Learner:
    r"""Fixed Share with the step `eta`, where `alpha` of all weight is shared in every round.

    eta: positive, in units of the range of losses.
    alpha: above 0 and up to 1; $K / T$ suits $K$ shifts in $T$ rounds.
    prior: non-negative, of any sum; `params` if None.
    low, high: the range of losses, 0 and 1 if None.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]]))
    >>> run = olx.rollout(fixed_share(1.0, 0.1), olx.losses.linear_loss, rounds, jnp.ones(2))
    >>> run.losses.round(3).tolist()
    [0.5, 0.292, 0.169, 0.888]
    """
    own = FixedShareHparams(
        check.positive("fixed_share", "eta", eta), check.above("fixed_share", "alpha", alpha, 0, 1)
    )
    return expert_learner(
        "fixed_share", own, start, weigh, learn, bound, prior=prior, low=low, high=high
    )


def start(hp: FixedShareHparams, prior: Array) -> Float[Array, " N"]:
    return prior


def weigh(hp: FixedShareHparams, prior: Array, share: Array) -> Weights:
    return Weights(jnp.zeros_like(share), share)


def learn(hp: FixedShareHparams, prior: Array, share: Array, seen: Seen) -> Array:
    gain = jnp.where(share > 0, hp.eta * seen.regret, lowest(share))
    grown = share * jnp.exp(gain - lax.stop_gradient(jnp.max(gain)))
    return (1 - hp.alpha) * grown / jnp.sum(grown) + hp.alpha * prior


def bound(hp: ExpertHparams, trace: Trace, u: PyTree) -> Certificate:
    r"""The inequality above for one mixture; printed with $\delta_t \le \eta / 8$."""
    past, flat = history(hp, trace), mixture(trace, u)
    stay = -jnp.log1p(-jnp.asarray(hp.own.alpha, flat.dtype))
    moves = jnp.where(past.rounds > 1, (past.rounds - 1) * stay, 0.0)
    paid = (relative_entropy(flat, past.prior) + moves) / hp.own.eta
    right, printed = paid + mix_gaps(hp, trace), paid + hp.own.eta * past.rounds / 8
    return certificate(past, flat, right, "Herbster, Warmuth 1998, one expert", printed)


def mix_gaps(hp: ExpertHparams, trace: Trace) -> Float[Array, " T"]:
    r"""$\sum_{s \le t} \delta_s$ after every round."""
    past = history(hp, trace)
    gap = lambda log_share, regret: mix_gap(log_share, regret, hp.own.eta)
    return jnp.cumsum(jax.vmap(gap)(past.log_share, past.regret))
