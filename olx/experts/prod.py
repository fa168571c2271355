r"""Prod, and its descendants with one learning rate per expert: Adapt-ML-Prod and BOA.

`prod` has weights that shrink by a factor linear in the loss:

$$p_{t,i} \propto q_i \prod_{s < t} (1 - \eta \ell_{s,i}), \qquad \eta \le \frac12.$$

Since $\prod_t (1 - \eta \hat\ell_t)$ is the $q$-mean of the products, for every mixture $u$

$$R_T(u) \le \frac{\mathrm{RE}(u \| q)}\eta + \sum_{t \le T} \sum_i u_i \Big( {-\frac1\eta} \ln(1 -
  \eta \ell_{t,i}) - \ell_{t,i} \Big) \le \frac{\mathrm{RE}(u \| q)}\eta + \eta \sum_{t \le T}
  \sum_i u_i \ell_{t,i}^2.$$

The two others have rates that decrease with the squared regrets to each expert,

$$p_{t,i} \propto q_i \eta_{t-1,i} e^{\eta_{t-1,i} S_{t-1,i}}, \qquad
  \eta_{t,i} = \min\Big( \frac12, \sqrt{\frac{\ln(1 / q_i)}{1 + \sum_{s \le t} r_{s,i}^2}} \Big).$$

`adapt_ml_prod` is Prod on regrets: $S_t - S_{t-1} = \frac1{\eta_{t-1}} \ln(1 + \eta_{t-1} r_t)$ for
each expert. The paper has a uniform prior and raises it to the power $\eta_{t,i} / \eta_{0,i}$;
here the prior does not change. `boa`, Bernstein online aggregation, subtracts scaled squares from
regrets: $S_t - S_{t-1} = r_t - \eta_{t-1} r_t^2$.

For rates of at most $\frac12$ that never increase, and any sums with
$e^{\eta_{t-1,i} (S_{t,i} - S_{t-1,i})} \le 1 + \eta_{t-1,i} r_{t,i}$, such weights ensure

$$\sum_i q_i e^{\eta_{T,i} S_{T,i}} \le W_T = 1 + \frac1e \sum_i q_i \sum_{t \le T} \Big(
  \frac{\eta_{t-1,i}}{\eta_{t,i}} - 1 \Big), \qquad \text{so} \quad
  S_{T,i} \le \frac1{\eta_{T,i}} \ln \frac{W_T}{q_i},$$

because $x \le x^a + (a - 1) / e$ for $a \ge 1$. So the regret to an expert is of the order of the
root of the sum of squared regrets to that expert: it is constant for random losses with a gap.

Cesa-Bianchi, Mansour, Stoltz, Improved Second-order Bounds for Prediction with Expert Advice, 2007;
Gaillard, Stoltz, van Erven, A Second-order Bound with Excess Losses, 2014; Wintenberger, Optimal
Learning with Bernstein Online Aggregation, 2017.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._refusal import public
from olx.certificate import Certificate
from olx.core import Learner, Scalar
from olx.experts.account import Account, certificate, expert_theorem, mixture, relative_entropy
from olx.experts.base import (
    ExpertHparams,
    ExpertState,
    Seen,
    Units,
    Weights,
    below_top,
    expert_learner,
)
from olx.experts.needs import light
from olx.theorem import ZERO, Theorem, latest


@public
def prod(
    eta: Scalar, prior: PyTree = None, *, low: Scalar | None = None, high: Scalar | None = None
) -> Learner:
    """Prod with one rate for all experts.

    eta: the rate, above 0 and up to 1/2.
    prior: non-negative weights of the experts; `params` if None.
    low: the least loss; 0 if None.
    high: the largest loss; 1 if None.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 3))
    >>> olx.rollout(prod(0.5), olx.losses.linear_loss, rounds, jnp.ones(2)).losses.round(3).tolist()
    [0.5, 0.333, 0.2]
    """
    eta = check.above("eta", eta, 0.0, 0.5)
    parts = start, weigh, learn, prod_regret
    return expert_learner("prod", eta, *parts, prior=prior, low=low, high=high, needs=(_LIGHT,))


def _is_light(hp: ExpertHparams, weight: Scalar) -> Array:
    return weight * jnp.min(jnp.asarray(hp.own)) < 1


_LIGHT = light("prod", _is_light, "`eta` times the weight of a round must be below 1")


def start(eta: Scalar, prior: Array) -> Float[Array, " N"]:
    return jnp.zeros_like(prior)


def weigh(eta: Scalar, prior: Array, logs: Array) -> Weights:
    return Weights(logs, prior)


def learn(eta: Scalar, prior: Array, logs: Array, seen: Seen) -> Array:
    return below_top(logs, prior > 0) + jnp.log1p(-eta * seen.loss)


class ProdSums(NamedTuple):
    over: Float[Array, " N"]
    squares: Float[Array, " N"]


def open_prod(hp: ExpertHparams, prior: Array) -> ProdSums:
    return ProdSums(jnp.zeros_like(prior), jnp.zeros_like(prior))


def prod_terms(hp: ExpertHparams, account: Account, state: ExpertState, seen: Seen) -> ProdSums:
    over = -jnp.log1p(-hp.own * seen.loss) / hp.own - seen.loss
    return ProdSums(over, seen.loss**2)


def prod_sides(hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    """The first inequality above; `published` is the second."""
    flat, own = mixture(account, u), account.own
    entropy = relative_entropy(flat, account.flat_prior) / hp.own
    published = entropy + hp.own * (own.squares @ flat)
    return certificate(hp, account, u, entropy + own.over @ flat, published)


prod_regret = expert_theorem(
    "second_order",
    "Cesa-Bianchi, Mansour, Stoltz 2007, Prod",
    prod_sides,
    prod_terms,
    open_prod,
)


class RatesStats(NamedTuple):
    total: Float[Array, " N"]  # S
    squares: Float[Array, " N"]  # sums of squared regrets


def start_rates(_: PyTree, prior: Array) -> RatesStats:
    return RatesStats(jnp.zeros_like(prior), jnp.zeros_like(prior))


def weigh_rates(_: PyTree, prior: Array, stats: RatesStats) -> Weights:
    eta = rates(prior, stats.squares)
    return Weights(eta * stats.total, prior * eta)


def rates(prior: Array, squares: Array) -> Array:
    r"""$\min(\frac12, \sqrt{\ln(1 / q_i) / (1 + \sum_t r_{t,i}^2)})$, with $q_i$ at most 1/2."""
    known = jnp.where(prior > 0, jnp.minimum(prior, 0.5), 0.5)
    return jnp.minimum(0.5, jnp.sqrt(-jnp.log(known) / (1 + squares)))


@public
def adapt_ml_prod(
    prior: PyTree = None, *, low: Scalar | None = None, high: Scalar | None = None
) -> Learner:
    """Adapt-ML-Prod with a prior over the experts.

    prior: non-negative weights of the experts; `params` if None.
    low: the least loss; 0 if None.
    high: the largest loss; 1 if None.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 3))
    >>> run = olx.rollout(adapt_ml_prod(), olx.losses.linear_loss, rounds, jnp.ones(2))
    >>> run.losses.round(3).tolist()
    [0.5, 0.375, 0.258]
    """
    parts = start_rates, weigh_rates, learn_ml_prod, ml_prod_regret
    return expert_learner(
        "adapt_ml_prod",
        None,
        *parts,
        prior=prior,
        low=low,
        high=high,
        needs=(_BELOW_TWO,),
        units=UNITS,
    )


def _is_below_two(hp: PyTree, weight: Scalar) -> Array | bool:
    return weight < 2  # rates are at most 1/2


_BELOW_TWO = light("adapt_ml_prod", _is_below_two, "the weight of a round must be below 2")


def learn_ml_prod(_: PyTree, prior: Array, stats: RatesStats, seen: Seen) -> RatesStats:
    eta = rates(prior, stats.squares)
    total = stats.total + jnp.log1p(eta * seen.regret) / eta
    return RatesStats(total, stats.squares + seen.regret**2)


@public
def boa(prior: PyTree = None, *, low: Scalar | None = None, high: Scalar | None = None) -> Learner:
    """Bernstein online aggregation with a prior over the experts.

    prior: non-negative weights of the experts; `params` if None.
    low: the least loss; 0 if None.
    high: the largest loss; 1 if None.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 3))
    >>> olx.rollout(boa(), olx.losses.linear_loss, rounds, jnp.ones(2)).losses.round(3).tolist()
    [0.5, 0.378, 0.257]
    """
    parts = None, start_rates, weigh_rates, learn_boa, boa_regret
    return expert_learner("boa", *parts, prior=prior, low=low, high=high, units=UNITS)


def learn_boa(_: PyTree, prior: Array, stats: RatesStats, seen: Seen) -> RatesStats:
    squares = seen.regret**2
    total = stats.total + seen.regret - rates(prior, stats.squares) * squares
    return RatesStats(total, stats.squares + squares)


class RatesSums(NamedTuple):
    last: Float[Array, " N"]  # the rates after the last round
    grown: Float[Array, ""]  # e (W - 1)
    cost: Float[Array, " N"]  # the sums of eta_{t-1,i} r_{t,i}^2


def _second_order(source: str) -> Theorem:
    r"""$R_T(u) \le \sum_i u_i \big( \frac1{\eta_{T,i}} \ln \frac{W_T}{q_i} + \sum_t \eta_{t-1,i}
    r_{t,i}^2 \big)$, as $S_{t,i} - S_{t-1,i} \ge r_{t,i} - \eta_{t-1,i} r_{t,i}^2$."""
    return expert_theorem("second_order", source, rates_sides, rates_terms, open_rates)


def open_rates(hp: ExpertHparams, prior: Array) -> RatesSums:
    zeros = jnp.zeros_like(prior)
    return RatesSums(rates(prior, zeros), ZERO, zeros)


def rates_terms(hp: ExpertHparams, account: Account, state: ExpertState, seen: Seen) -> RatesSums:
    prior, before, squares = account.flat_prior, state.stats.squares, seen.regret**2
    old, new = rates(prior, before), rates(prior, before + squares)
    return RatesSums(latest(new), (old / new - 1) @ prior, old * squares)


def rates_sides(hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    flat, own = mixture(account, u), account.own
    bound = _rates_bound(account.flat_prior, own.last, flat, own.grown / jnp.e)
    return certificate(hp, account, u, bound + own.cost @ flat)


def _rates_bound(prior: Array, eta: Array, u: Array, excess: Array) -> Array:
    r"""The bound on the $S_T$ of a mixture if $W_T$ is 1 + `excess`."""
    used = u > 0
    return jnp.where(used, (jnp.log1p(excess) - jnp.log(prior)) / eta, 0.0) @ u


def _rescale(_: PyTree, stats: RatesStats, ratio: Array) -> RatesStats:
    return RatesStats(ratio * stats.total, ratio**2 * stats.squares)


def _added(
    _: PyTree, prior: Array, stats: RatesStats, regret: Array, ratio: Array
) -> tuple[Array, Array]:
    r"""In one unit for ever, a larger unit is a smaller rate; $x \le x^a + 1$ for large $a$."""
    old, squares = rates(prior, stats.squares), regret**2
    new = ratio * rates(prior, ratio**2 * (stats.squares + squares))
    return jnp.minimum((old / new - 1) / jnp.e, 1.0) @ prior, old * squares


def _units_bound(_: PyTree, prior: Array, stats: RatesStats, u: Array, excess: Array) -> Array:
    return _rates_bound(prior, rates(prior, stats.squares), u, excess)


UNITS = Units(_rescale, _added, _units_bound)


# since ln(1 + x) >= x - x^2 for x >= -1/2
ml_prod_regret = _second_order("Gaillard, Stoltz, van Erven 2014, Adapt-ML-Prod")
# since e^(x - x^2) <= 1 + x for x >= -1/2
boa_regret = _second_order("Wintenberger 2017, BOA")
