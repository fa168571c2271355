r"""The account of exponential weights $p_{t+1} \propto p_t e^{-\eta \ell_t}$ from a prior $p_1$.

For every distribution $u$ and every sequence of losses,

$$\sum_{s \le t} \langle p_s - u, \ell_s\rangle \le \frac{RE(u \| p_1)}\eta + \sum_{s \le t} \Big(
  \langle p_s, \ell_s\rangle + \frac1\eta \ln \langle p_s, e^{-\eta\ell_s}\rangle \Big).$$
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.scipy.special import xlogy
from jaxtyping import Array, Bool, Float

from olx import _check as check
from olx.convex import _domain
from olx.core import Scalar
from olx.theorem import DOMAIN, Certificate


class Account(NamedTuple):
    away: Float[Array, ""]  # RE(u || p_1) / eta
    left: Float[Array, ""]
    mixed: Float[Array, ""]  # the sum on the right
    squares: Float[Array, ""]  # the sum that bounds it, over eta times a constant
    size: Float[Array, ""]  # the sum of absolute values, for the rounding error
    positive: Bool[Array, ""]  # whether no loss was negative


def open_account(eta: Scalar, log_weights: Float[Array, " N"], u: Float[Array, " N"]) -> Account:
    u = check.comparator(u, log_weights)
    away = jnp.sum(xlogy(u, u) - jnp.where(u > 0, u * log_weights, 0.0)) / eta
    zero = jnp.zeros_like(away)
    return Account(away, zero, zero, zero, jnp.abs(away), jnp.ones((), bool))


def both_sides(account: Account, factor: Scalar, u: Float[Array, " N"]) -> Certificate:
    """The inequality above; `published` is `factor` times the sum of squares."""
    right, published = account.away + account.mixed, account.away + factor * account.squares
    proof = Certificate(account.left, right, account.size, published)
    return proof.given(DOMAIN, _domain.simplex(0.0, 1.0, u))
