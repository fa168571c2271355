r"""One learning rate per expert, which decreases with the squared regrets to that expert.

For rates $\eta_{t,i} \le \frac12$ that never increase, and any sums with
$e^{\eta_{t-1,i} (S_{t,i} - S_{t-1,i})} \le 1 + \eta_{t-1,i} r_{t,i}$, the weights
$p_{t,i} \propto q_i \eta_{t-1,i} e^{\eta_{t-1,i} S_{t-1,i}}$ ensure

$$\sum_i q_i e^{\eta_{T,i} S_{T,i}} \le W_T = 1 + \frac1e \sum_i q_i \sum_{t \le T} \Big(
  \frac{\eta_{t-1,i}}{\eta_{t,i}} - 1 \Big), \qquad \text{so} \quad
  S_{T,i} \le \frac1{\eta_{T,i}} \ln \frac{W_T}{q_i},$$

because $x \le x^a + (a - 1) / e$ for $a \ge 1$.

Gaillard, Stoltz, van Erven, A Second-order Bound with Excess Losses, 2014.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx.experts.account import Account, certificate, expert_theorem, mixture
from olx.experts.base import ExpertHparams, ExpertState, Seen, Weights
from olx.theorem import Certificate, Theorem


class RatesStats(NamedTuple):
    total: Float[Array, " N"]  # S
    squares: Float[Array, " N"]  # sums of squared regrets


def start(_: PyTree, prior: Array) -> RatesStats:
    return RatesStats(jnp.zeros_like(prior), jnp.zeros_like(prior))


def weigh(_: PyTree, prior: Array, stats: RatesStats) -> Weights:
    eta = rates(prior, stats.squares)
    return Weights(eta * stats.total, prior * eta)


def rates(prior: Array, squares: Array) -> Array:
    r"""$\min(\frac12, \sqrt{\ln(1 / q_i) / (1 + \sum_t r_{t,i}^2)})$, with $q_i$ at most 1/2."""
    known = jnp.where(prior > 0, jnp.minimum(prior, 0.5), 0.5)
    return jnp.minimum(0.5, jnp.sqrt(-jnp.log(known) / (1 + squares)))


class RatesSums(NamedTuple):
    last: Float[Array, " N"]  # the rates after the last round
    grown: Float[Array, ""]  # e (W - 1)
    cost: Float[Array, " N"]  # the sums of eta_{t-1,i} r_{t,i}^2


def second_order(source: str) -> Theorem:
    r"""$R_T(u) \le \sum_i u_i \big( \frac1{\eta_{T,i}} \ln \frac{W_T}{q_i} + \sum_t \eta_{t-1,i}
    r_{t,i}^2 \big)$, as $S_{t,i} - S_{t-1,i} \ge r_{t,i} - \eta_{t-1,i} r_{t,i}^2$."""
    return expert_theorem("second_order", source, open_sums, add_sums, both_sides)


def open_sums(hp: ExpertHparams, prior: Array) -> RatesSums:
    zeros = jnp.zeros_like(prior)
    return RatesSums(rates(prior, zeros), jnp.zeros((), prior.dtype), zeros)


def add_sums(hp: ExpertHparams, account: Account, state: ExpertState, seen: Seen) -> RatesSums:
    prior, before, squares = account.flat_prior, state.stats.squares, seen.regret**2
    old, new = rates(prior, before), rates(prior, before + squares)
    grown = account.own.grown + (old / new - 1) @ prior
    return RatesSums(new, grown, account.own.cost + old * squares)


def both_sides(hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    flat, own = mixture(account, u), account.own
    logs = jnp.log(1 + own.grown / jnp.e) - jnp.log(account.flat_prior)
    right = jnp.where(flat > 0, logs / own.last + own.cost, 0.0) @ flat
    return certificate(hp, account, u, right)
