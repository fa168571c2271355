r"""AdaNormalHedge: no step size, no horizon, and a regret that shrinks with the losses.

$$p_{t,i} \propto q_i \big( \Phi(R_{t-1,i} + 1, C_{t-1,i} + 1) - \Phi(R_{t-1,i} - 1,
  C_{t-1,i} + 1) \big), \qquad \Phi(R, C) = e^{[R]_+^2 / (3 C)},$$

with $R$ the regret to an expert and $C = \sum_t |r_t|^d$. With $d = 0$ it is NormalHedge.DT.
Against every mixture at once and after every round

$$R_T(u) \le \sqrt{3 \langle u, C_T\rangle \big( \mathrm{RE}(u \| q) + \ln B \big)}, \qquad
  B = 1 + \frac32 \sum_i q_i \sum_t \frac{|r_{t,i}|}{1 + C_{t-1,i}}
  \le \frac52 + \frac32 \ln(1 + T).$$

Experts that appear later sleep until then: leave room for them in `params`, and give them
confidence 0 while they are not there.

Luo, Optimal and Adaptive Online Learning, 2016, algorithm 6, theorems 4 and 6, which ask for
$\ln(1 + \ln N)$ more; Jensen's inequality shows that it is not needed.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx.certificate import Certificate
from olx.core import Learner, Scalar, Trace
from olx.experts import _normal
from olx.experts.base import ExpertHparams, Seen, Weights, expert_learner
from olx.experts.history import certificate, history, mixture, relative_entropy


class AdaNormalHedgeStats(NamedTuple):
    regret: Float[Array, " N"]
    size: Float[Array, " N"]  # C


def ada_normal_hedge(
    prior: PyTree = None,
    exponent: Scalar | None = None,
    *,
    low: Scalar | None = None,
    high: Scalar | None = None,
) -> Learner:
    r"""AdaNormalHedge from a prior, `params` if None.

    prior: non-negative, of any sum.
    exponent: $d$, from 0 to 1; None is 1 and saves a power for every expert.
    low, high: the range of losses, 0 and 1 if None.

    The third expert appears in the second round:

    >>> import jax.numpy as jnp, olx
    >>> from olx.experts.base import expected_loss
    >>> there = jnp.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    >>> losses = jnp.array([[1.0, 0.0, jnp.nan], [1.0, 0.0, 0.0]])
    >>> run = olx.rollout(ada_normal_hedge(), expected_loss, olx.Rounds(there, losses), jnp.ones(3),
    ...     record=olx.record.actions)
    >>> run.trace.round(2).tolist()
    [[0.5, 0.5, 0.0], [0.05, 0.59, 0.36]]
    """
    if exponent is not None:
        exponent = check.between("ada_normal_hedge", "exponent", exponent, 0.0, 1.0)
    return expert_learner(
        "ada_normal_hedge", exponent, start, weigh, learn, bound, prior=prior, low=low, high=high
    )


def start(exponent: Scalar | None, prior: Array) -> AdaNormalHedgeStats:
    return AdaNormalHedgeStats(jnp.zeros_like(prior), jnp.zeros_like(prior))


def weigh(exponent: Scalar | None, prior: Array, stats: AdaNormalHedgeStats) -> Weights:
    return _normal.weigh(prior, stats.regret, stats.size)


def learn(exponent, prior: Array, stats: AdaNormalHedgeStats, seen: Seen) -> AdaNormalHedgeStats:
    size = stats.size + _size(exponent, seen.regret)
    return AdaNormalHedgeStats(stats.regret + seen.regret, size)


def bound(hp: ExpertHparams, trace: Trace, u: PyTree) -> Certificate:
    r"""Theorems 4 and 6, with the sum in $B$ as it came about.

    Printed with $B \le \frac52 + \frac32 \ln(1 + T)$ and $\ln(1 + \ln N)$ more.
    """
    past, flat = history(hp, trace), mixture(trace, u)
    before = trace.state.stats.size
    size = before + _size(hp.own, past.regret)
    each = jnp.cumsum(jnp.abs(past.regret) / (1 + before), axis=0)
    right = _normal.regret_bound(flat, past.prior, size, 1.5 * each @ past.prior)
    b = 2.5 + 1.5 * jnp.log1p(past.rounds)
    mixtures = jnp.log1p(jnp.log(jnp.asarray(flat.size, flat.dtype)))
    entropy = relative_entropy(flat, past.prior)
    printed = jnp.sqrt(3 * (size @ flat) * (entropy + jnp.log(b) + mixtures))
    return certificate(past, flat, right, "Luo 2016, theorem 4", printed)


def _size(exponent: Scalar | None, regret: Array) -> Array:
    size = jnp.abs(regret)
    if exponent is None:
        return size
    still = size == 0
    zeroth = jnp.where(exponent == 0, 1.0, jnp.zeros_like(size))  # 0^0 = 1
    power = jnp.where(still, zeroth, jnp.where(still, 1.0, size) ** exponent)
    return jnp.maximum(power, size)  # a round of weight above 1 keeps |R| <= C
