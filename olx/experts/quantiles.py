r"""The regret to a quantile: to the $\lceil \varepsilon N\rceil$-th best expert so far.

It is at most the regret to the uniform mixture of the best $\lceil \varepsilon N\rceil$, so every
theorem about mixtures gives one about quantiles. For exponential weights with a fixed step,

$$\sum_i q_i e^{\eta R_{t,i}} \le \cosh(\eta)^t, \qquad \text{so} \quad R_t^\varepsilon \le
  \frac{\ln(1 / \varepsilon) + t \ln\cosh\eta}\eta \le \frac{\ln(1 / \varepsilon)}\eta + \frac{t
  \eta}2.$$

Luo, Optimal and Adaptive Online Learning, 2016, sections 2.1.3 and 2.1.4.
"""

import dataclasses
import math
from collections.abc import Callable

import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import RefusedType, own_name, public
from olx.certificate import Certificate
from olx.core import Learner
from olx.experts.account import Account, expert_theorem, for_mixtures, in_units, unit_of
from olx.experts.base import ExpertHparams, ExpertState, Seen
from olx.experts.hedge import has_fixed_step, step_of
from olx.theorem import ZERO, About, Theorem, latest

UNIFORM = "the prior must be uniform"


@pytree
class Share:
    """The share of experts in a quantile; static, since it decides shapes."""

    epsilon: float = static()


@dataclasses.dataclass(frozen=True)
class PlaysBy:
    """Tests whether a learner has the same rule from regrets to weights."""

    weigh_fn: Callable
    learn_fn: Callable

    def __call__(self, learner: Learner) -> bool:
        hp = learner.hparams
        return isinstance(hp, ExpertHparams) and self == PlaysBy(hp.weigh_fn, hp.learn_fn)


@public
def quantile(inner: Learner, epsilon: float) -> Theorem:
    r"""The first theorem of `inner` for the best $\lceil \varepsilon N\rceil$ experts.

    After every round these are the experts that are best so far.

    inner: a learner of `olx.experts` that sees all losses, with a theorem about mixtures.
    epsilon: above 0 and up to 1; 1/N or less gives the regret to the best expert.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.expert_losses(jax.random.key(0), rounds=40, experts=6, gap=0.1)
    >>> learner, game = olx.experts.two_norm(), (olx.losses.linear_loss, rounds, jnp.ones(6))
    >>> third = olx.theorems.quantile(learner, 1 / 3)
    >>> bool(olx.certify(learner, *game, None, theorems=(third,)).holds)
    True
    """
    check.instance("inner", inner, Learner)
    epsilon = check.above("epsilon", epsilon, 0.0, 1.0)
    one, hp = for_mixtures(inner.theorems), inner.hparams
    if one is None or not isinstance(hp, ExpertHparams):
        raise RefusedType(
            "`inner` must be one of `olx.experts` that see all losses, with a theorem "
            f"about mixtures, got one of `{inner.update_fn.__module__}`."
        )
    about = About(f"`{hp.owner}`, for which it was made", PlaysBy(hp.weigh_fn, hp.learn_fn))
    parts = one.init_fn, one.add_fn, Partial(at_quantile, Share(epsilon), one)
    return Theorem("quantile", f"{epsilon:g}-quantile: {one.source}", *parts, about=about)


def quantile_of(regrets: Float[Array, " N"], rank: int) -> Array:
    """The regret to the expert of rank `rank`; rank 1 is the best."""
    return -jnp.sort(-regrets)[rank - 1]


def rank_of(experts: int, epsilon: float) -> int:
    r"""$\lceil \varepsilon N\rceil$, up to rounding errors of the product."""
    epsilon = check.above("epsilon", epsilon, 0.0, 1.0)
    return max(1, math.ceil(experts * epsilon - 1e-9))


@own_name("quantile")
def at_quantile(
    share: Share, one: Theorem, hp: ExpertHparams, account: Account, u: PyTree
) -> Certificate:
    """The theorem for the uniform mixture of the best experts; `u` is not used."""
    rank = rank_of(account.regret.size, share.epsilon)
    order = jnp.argsort(jnp.argsort(-account.regret))
    best = jnp.where(order < rank, 1 / rank, jnp.zeros_like(account.regret))
    proof = one.sides_fn(hp, account, ravel_pytree(account.prior)[1](best))
    return dataclasses.replace(proof, left=unit_of(hp) * quantile_of(account.regret, rank))


@public
def hedge_quantile(epsilon: float) -> Theorem:
    r"""The inequality above, about `anytime_hedge` with a fixed step, from a uniform prior.

    `published` uses $t \eta / 2$. `u` is not used.
    """
    epsilon = check.above("epsilon", epsilon, 0.0, 1.0)
    parts = Partial(_hedge_sides, Share(epsilon)), _last_step, _open_step
    return expert_theorem("hedge_quantile", "Luo 2016, EXP", *parts, mixtures=False, about=_FIXED)


_FIXED = About("an `anytime_hedge` with a fixed step", has_fixed_step)


def _open_step(hp: ExpertHparams, prior: Array) -> Array:
    return ZERO


def _last_step(hp: ExpertHparams, account: Account, state: ExpertState, seen: Seen) -> Array:
    return latest(step_of(hp, state))


@own_name("hedge_quantile")
def _hedge_sides(share: Share, hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    eta, t, prior = account.own, account.rounds, account.flat_prior
    rank = rank_of(prior.size, share.epsilon)
    paid = jnp.log(1 / jnp.asarray(share.epsilon, eta.dtype)) / eta
    right, published = paid + t * log_cosh(eta) / eta, paid + t * eta / 2
    proof = in_units(hp, account, quantile_of(account.regret, rank), right, published)
    proof = dataclasses.replace(proof, scale=unit_of(hp) * (t + jnp.abs(right)))
    even = jnp.max(prior) <= jnp.min(prior) * (1 + 1e-6)
    return proof.given(UNIFORM, even)


def log_cosh(eta: Array) -> Array:
    return jnp.logaddexp(eta, -eta) - jnp.log(jnp.asarray(2.0, eta.dtype))
