r"""Prod: weights that shrink by a factor linear in the loss.

$$p_{t,i} \propto q_i \prod_{s < t} (1 - \eta \ell_{s,i}), \qquad \eta \le \frac12.$$

Since $\prod_t (1 - \eta \hat\ell_t)$ is the $q$-mean of the products, for every mixture $u$

$$R_T(u) \le \frac{\mathrm{RE}(u \| q)}\eta + \sum_{t \le T} \sum_i u_i \Big( {-\frac1\eta} \ln(1 -
  \eta \ell_{t,i}) - \ell_{t,i} \Big) \le \frac{\mathrm{RE}(u \| q)}\eta + \eta \sum_{t \le T}
  \sum_i u_i \ell_{t,i}^2.$$

Cesa-Bianchi, Mansour, Stoltz, Improved Second-order Bounds for Prediction with Expert Advice, 2007.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._refusal import public
from olx.core import Learner, Scalar
from olx.experts._needs import light
from olx.experts._vectors import below_top
from olx.experts.account import Account, certificate, expert_theorem, mixture, relative_entropy
from olx.experts.base import ExpertHparams, ExpertState, Seen, Weights, expert_learner
from olx.theorem import Certificate


@public
def prod(
    eta: Scalar, prior: PyTree = None, *, low: Scalar | None = None, high: Scalar | None = None
) -> Learner:
    """Prod with the rate `eta`, above 0 and up to 1/2.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 3))
    >>> olx.rollout(prod(0.5), olx.losses.linear_loss, rounds, jnp.ones(2)).losses.round(3).tolist()
    [0.5, 0.333, 0.2]
    """
    eta = check.above("eta", eta, 0.0, 0.5)
    parts = start, weigh, learn, second_order
    return expert_learner("prod", eta, *parts, prior=prior, low=low, high=high, needs=(_LIGHT,))


def _is_light(hp: ExpertHparams, weight: Scalar) -> Array:
    return weight * jnp.min(jnp.asarray(hp.own)) < 1


_LIGHT = light(
    "prod",
    _is_light,
    "`eta` times the weight of a round must be below 1",
)


def start(eta: Scalar, prior: Array) -> Float[Array, " N"]:
    return jnp.zeros_like(prior)


def weigh(eta: Scalar, prior: Array, logs: Array) -> Weights:
    return Weights(logs, prior)


def learn(eta: Scalar, prior: Array, logs: Array, seen: Seen) -> Array:
    return below_top(logs, prior > 0) + jnp.log1p(-eta * seen.loss)


class ProdSums(NamedTuple):
    over: Float[Array, " N"]
    squares: Float[Array, " N"]


def open_sums(hp: ExpertHparams, prior: Array) -> ProdSums:
    return ProdSums(jnp.zeros_like(prior), jnp.zeros_like(prior))


def add_sums(hp: ExpertHparams, account: Account, state: ExpertState, seen: Seen) -> ProdSums:
    over = -jnp.log1p(-hp.own * seen.loss) / hp.own - seen.loss
    return ProdSums(account.own.over + over, account.own.squares + seen.loss**2)


def both_sides(hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    """The first inequality above; `published` is the second."""
    flat, own = mixture(account, u), account.own
    entropy = relative_entropy(flat, account.flat_prior) / hp.own
    published = entropy + hp.own * (own.squares @ flat)
    return certificate(hp, account, u, entropy + own.over @ flat, published)


second_order = expert_theorem(
    "second_order",
    "Cesa-Bianchi, Mansour, Stoltz 2007, Prod",
    open_sums,
    add_sums,
    both_sides,
)
