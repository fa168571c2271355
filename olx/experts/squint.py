r"""Squint: a mixture over many learning rates, for each expert.

$$p_{t,i} \propto q_i \sum_k \eta_k e^{\eta_k R_{t-1,i} - \eta_k^2 V_{t-1,i}}, \qquad
  V_{t,i} = \sum_{s \le t} r_{s,i}^2, \qquad \eta_k = 2^{-k}, \quad k = 1, \dots, K.$$

The paper integrates over rates up to 1/2; here they lie on a geometric grid, which costs $\ln K$
and a factor of at most 1.07 in the bound. As $e^{x - x^2} \le 1 + x$ for $x \ge -\frac12$, the mean
of $e^{\eta_k R_i - \eta_k^2 V_i}$ over the prior and the grid never exceeds 1, and for all $u$

$$R_T(u) \le \min_k \; \eta_k \langle u, V_T\rangle + \frac{\mathrm{RE}(u \| q) + \ln K}{\eta_k}.$$

Koolen, van Erven, Second-order Quantile Methods for Experts and Combinatorial Games, 2015.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import public
from olx.certificate import Certificate
from olx.core import Learner, Scalar
from olx.experts.account import Account, certificate, expert_theorem, mixture, relative_entropy
from olx.experts.base import ExpertHparams, ExpertState, Seen, Units, Weights, expert_learner


@pytree
class SquintHparams:
    rates: int = static()


class SquintStats(NamedTuple):
    regret: Float[Array, " N"]
    squares: Float[Array, " N"]


@public
def squint(
    prior: PyTree = None,
    rates: int = 16,
    *,
    low: Scalar | None = None,
    high: Scalar | None = None,
) -> Learner:
    """Squint with a prior over the experts.

    prior: non-negative weights of the experts; `params` if None.
    rates: the number $K$ of learning rates 1/2, 1/4, ...; 16 are enough for 1e9 rounds.
    low: the least loss; 0 if None.
    high: the largest loss; 1 if None.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 3))
    >>> olx.rollout(squint(), olx.losses.linear_loss, rounds, jnp.ones(2)).losses.round(3).tolist()
    [0.5, 0.419, 0.34]
    """
    check.count("rates", rates)
    parts = SquintHparams(rates), start, weigh, learn, second_order
    return expert_learner("squint", *parts, prior=prior, low=low, high=high, units=UNITS)


def start(hp: SquintHparams, prior: Array) -> SquintStats:
    return SquintStats(jnp.zeros_like(prior), jnp.zeros_like(prior))


def weigh(hp: SquintHparams, prior: Array, stats: SquintStats) -> Weights:
    eta = _rates(hp, prior)[:, None]
    logs = eta * (stats.regret - eta * stats.squares)
    top = lax.stop_gradient(jnp.max(logs, axis=0))
    return Weights(top, prior * jnp.sum(eta * jnp.exp(logs - top), axis=0))


def learn(hp: SquintHparams, prior: Array, stats: SquintStats, seen: Seen) -> SquintStats:
    return SquintStats(stats.regret + seen.regret, stats.squares + seen.regret**2)


def open_squares(hp: ExpertHparams, prior: Array) -> Array:
    return jnp.zeros_like(prior)


def terms(hp: ExpertHparams, account: Account, state: ExpertState, seen: Seen) -> Array:
    return seen.regret**2


def both_sides(hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    """The inequality above."""
    flat = mixture(account, u)
    return certificate(hp, account, u, _bound(hp.own, account.flat_prior, account.own, flat, 0.0))


second_order = expert_theorem(
    "second_order", "Koolen, van Erven 2015, on a grid", both_sides, terms, open_squares
)


def _bound(hp: SquintHparams, prior: Array, squares: Array, u: Array, excess: Scalar) -> Array:
    """The right side if the mean of the potential is at most 1 + `excess`."""
    eta = _rates(hp, u)
    paid = relative_entropy(u, prior) + jnp.log(jnp.asarray(eta.size, u.dtype)) + jnp.log1p(excess)
    return jnp.min(eta * (squares @ u) + paid / eta)


def _rescale(hp: SquintHparams, stats: SquintStats, ratio: Array) -> SquintStats:
    return SquintStats(ratio * stats.regret, ratio**2 * stats.squares)


def _added(
    hp: SquintHparams, prior: Array, stats: SquintStats, regret: Array, ratio: Array
) -> tuple[Array, Array]:
    r"""Units that are larger by $2^m$ move the grid: its $m$ smallest rates are new."""
    squares = stats.squares + regret**2
    after = _rescale(hp, SquintStats(stats.regret + regret, squares), ratio)
    eta = _rates(hp, prior)[:, None]
    new = eta * ratio < eta[-1]
    terms = jnp.where(new, jnp.exp(eta * (after.regret - eta * after.squares)), 0.0)
    return jnp.mean(terms, axis=0) @ prior, jnp.zeros_like(prior)


def _units_bound(
    hp: SquintHparams, prior: Array, stats: SquintStats, u: Array, excess: Array
) -> Array:
    return _bound(hp, prior, stats.squares, u, excess)


UNITS = Units(_rescale, _added, _units_bound)


def _rates(hp: SquintHparams, like: Array) -> Float[Array, " K"]:
    return jnp.exp2(-jnp.arange(1, hp.rates + 1, dtype=like.dtype))
