r"""AdaNormalHedge: no step size, no horizon, and small regret if losses are small.

$$p_{t,i} \propto q_i \big( \Phi(R_{t-1,i} + 1, C_{t-1,i} + 1) - \Phi(R_{t-1,i} - 1,
  C_{t-1,i} + 1) \big), \qquad \Phi(R, C) = e^{[R]_+^2 / (3 C)},$$

with $R$ the regret to an expert and $C = \sum_t |r_t|^d$. With $d = 0$ it is NormalHedge.DT.
Against every mixture at once and after every round

$$R_T(u) \le \sqrt{3 \langle u, C_T\rangle \big( \mathrm{RE}(u \| q) + \ln B \big)}, \qquad
  B = 1 + \frac32 \sum_i q_i \sum_t \frac{|r_{t,i}|}{1 + C_{t-1,i}}
  \le \frac52 + \frac32 \ln(1 + T).$$

For experts that appear later, reserve places in `params` and give them confidence 0 until they
appear.

Luo, Optimal and Adaptive Online Learning, 2016, algorithm 6, theorems 4 and 6. Their
bounds have one more term $\ln(1 + \ln N)$; by Jensen's inequality it is not needed.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import public
from olx.certificate import Certificate
from olx.core import Learner, Scalar
from olx.experts.account import Account, certificate, expert_theorem, mixture, relative_entropy
from olx.experts.base import ExpertHparams, ExpertState, Seen, Units, Weights, expert_learner
from olx.experts.normal_hedge import normal_weights, regret_bound
from olx.experts.normal_hedge import price as price_of
from olx.theorem import ZERO, About, Theorem, latest


class AdaNormalHedgeStats(NamedTuple):
    regret: Float[Array, " N"]
    size: Float[Array, " N"]  # C


@public
def ada_normal_hedge(
    exponent: Scalar | None = None,
    prior: PyTree = None,
    *,
    low: Scalar | None = None,
    high: Scalar | None = None,
) -> Learner:
    r"""AdaNormalHedge with a prior over the experts.

    exponent: $d$, from 0 to 1; None means 1 and saves one power per expert.
    prior: non-negative weights of the experts; `params` if None.
    low: the least loss; 0 if None.
    high: the largest loss; 1 if None.

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
        exponent = check.between("exponent", exponent, 0.0, 1.0)
    theorems = ada_normal_hedge_regret, *((small_losses,) if exponent is None else ())
    parts, given = (start, weigh, learn, *theorems), {"prior": prior, "low": low, "high": high}
    return expert_learner("ada_normal_hedge", exponent, *parts, **given, units=UNITS)


def start(exponent: Scalar | None, prior: Array) -> AdaNormalHedgeStats:
    return AdaNormalHedgeStats(jnp.zeros_like(prior), jnp.zeros_like(prior))


def weigh(exponent: Scalar | None, prior: Array, stats: AdaNormalHedgeStats) -> Weights:
    return normal_weights(prior, stats.regret, stats.size)


def learn(
    exponent: Scalar, prior: Array, stats: AdaNormalHedgeStats, seen: Seen
) -> AdaNormalHedgeStats:
    size = stats.size + _size(exponent, seen.regret)
    return AdaNormalHedgeStats(stats.regret + seen.regret, size)


class Sizes(NamedTuple):
    size: Float[Array, " N"]  # C
    excess: Float[Array, ""]  # B - 1
    below: Float[Array, " N"]  # the sums of [-r]_+
    losses: Float[Array, " N"]


def open_sizes(hp: ExpertHparams, prior: Array) -> Sizes:
    zeros = jnp.zeros_like(prior)
    return Sizes(zeros, ZERO, zeros, zeros)


def terms(hp: ExpertHparams, account: Account, state: ExpertState, seen: Seen) -> Sizes:
    before = state.stats.size
    return Sizes(
        latest(before + _size(hp.own, seen.regret)),
        _excess(account.flat_prior, before, seen.regret),
        jnp.maximum(-seen.regret, 0.0),
        seen.loss,
    )


def both_sides(hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    r"""Theorems 4 and 6, with the actual sum in $B$.

    `published` uses $B \le \frac52 + \frac32 \ln(1 + T)$ and adds $\ln(1 + \ln N)$.
    """
    flat, prior, own = mixture(account, u), account.flat_prior, account.own
    right = regret_bound(flat, prior, own.size, own.excess)
    b = 2.5 + 1.5 * jnp.log1p(account.rounds)
    mixtures = jnp.log1p(jnp.log(jnp.asarray(flat.size, flat.dtype)))
    price = relative_entropy(flat, prior) + jnp.log(b) + mixtures
    return certificate(hp, account, u, right, jnp.sqrt(3 * (own.size @ flat) * price))


def small_sides(hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    r"""Theorem 5: regret of the order of the square root of the loss of the comparator.

    From $R(u) \le \sqrt{\langle u, C\rangle A}$ and $C = R + 2 \tilde L$, where $\tilde L_i =
    \sum_t [-r_{t,i}]_+ \le L_i$,

    $$R(u) \le \sqrt{2 \langle u, \tilde L\rangle A} + A \le \sqrt{2 \langle u, L\rangle A} + A.$$
    """
    flat, price = mixture(account, u), _price(account, u)
    known = jnp.where(jnp.isinf(price), 0.0, price)  # 0 times infinity is NaN
    root = lambda size: jnp.sqrt(2 * (size @ flat) * known) + price
    return certificate(hp, account, u, root(account.own.below), root(account.own.losses))


def _gap_sides(gap: Scalar, hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    return certificate(hp, account, u, _price(account, u) / gap)


@public
def random_gap(gap: Scalar) -> Theorem:
    r"""Theorem 5 in expectation: a regret of $A / \alpha$, constant up to $\ln\ln T$.

    Losses are drawn independently in every round, and the mean loss of expert `u` is lower than
    that of every other expert by at least `gap`. The right side bounds the expected regret of
    `ada_normal_hedge()`. A single run may exceed it.
    """
    gap = check.positive("gap", gap)
    parts, source = (Partial(_gap_sides, gap), *SIZES), "Luo 2016, theorem 5, in expectation"
    return expert_theorem("random_gap", source, *parts, about=PLAIN)


SIZES = terms, open_sizes
ada_normal_hedge_regret = expert_theorem(
    "ada_normal_hedge_regret", "Luo 2016, theorem 4", both_sides, *SIZES
)
small_losses = expert_theorem("small_losses", "Luo 2016, theorem 5", small_sides, *SIZES)


def _plain(learner: Learner) -> bool:
    hp = learner.hparams
    return isinstance(hp, ExpertHparams) and hp.weigh_fn is weigh and hp.own is None


PLAIN = About("an `ada_normal_hedge` whose exponent is None", _plain)


def _price(account: Account, u: PyTree) -> Array:
    r"""A, the square of the right side of theorem 4 divided by $\langle u, C\rangle$."""
    flat, own = mixture(account, u), account.own
    price = price_of(flat, account.flat_prior, own.excess)
    return jnp.where(own.size @ flat > 0, 3 * price, 0.0)


def _excess(prior: Array, size: Array, regret: Array) -> Array:
    """What a round adds to B."""
    return 1.5 * ((jnp.abs(regret) / (1 + size)) @ prior)


def _rescale(
    exponent: Scalar | None, stats: AdaNormalHedgeStats, ratio: Array
) -> AdaNormalHedgeStats:
    """The potential does not rise: $[R]_+^2 / C$ is not larger in larger units."""
    size = ratio if exponent is None else ratio**exponent
    return AdaNormalHedgeStats(ratio * stats.regret, size * stats.size)


def _added(
    exponent: Scalar | None, prior: Array, stats: AdaNormalHedgeStats, regret: Array, ratio: Array
) -> tuple[Array, Array]:
    return _excess(prior, stats.size, regret), jnp.zeros_like(prior)


def _units_bound(
    exponent: Scalar | None, prior: Array, stats: AdaNormalHedgeStats, u: Array, excess: Array
) -> Array:
    return regret_bound(u, prior, stats.size, excess)


UNITS = Units(_rescale, _added, _units_bound)


def _size(exponent: Scalar | None, regret: Array) -> Array:
    size = jnp.abs(regret)
    if exponent is None:
        return size
    still = size == 0
    zeroth = jnp.where(exponent == 0, 1.0, jnp.zeros_like(size))  # 0^0 = 1
    power = safe.power(size, exponent, zeroth, ~still)
    return jnp.maximum(power, size)  # so that |R| <= C also for weights above 1
