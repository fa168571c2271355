r"""Play a point drawn from the Gibbs distribution over a set of points; losses need no convexity.

The points are a grid, a quasi-random set, or draws from a prior $p_0$; then
$p_t(w) \propto p_0(w) \exp(-\eta \sum_{s<t} f_s(w))$. With $\rho_t$ the range of $f_t$, for every
distribution $u$,

$$\sum_t E_{p_t} f_t - E_u f_t \le \frac{RE(u \| p_0)}{\eta} + \frac\eta8 \sum_t \rho_t^2.$$

It follows from the account of exponential weights $p_{t+1} \propto p_t e^{-\eta \ell_t}$ from a
prior $p_1$, which `exp3` keeps too. For every distribution $u$ and every sequence of losses,

$$\sum_{s \le t} \langle p_s - u, \ell_s\rangle \le \frac{RE(u \| p_1)}\eta + \sum_{s \le t} \Big(
  \langle p_s, \ell_s\rangle + \frac1\eta \ln \langle p_s, e^{-\eta\ell_s}\rangle \Big).$$

Zhang, Mathematical Analysis of Machine Learning Algorithms, 2023, chapter 14.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.nn import log_softmax
from jax.scipy.special import logsumexp, xlogy
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import public
from olx.certificate import DOMAIN, Certificate
from olx.convex import _domain
from olx.core import Feedback, Learner, Scalar
from olx.experts.needs import prior_need
from olx.experts.particles import mean_of
from olx.experts.sampled import draw
from olx.theorem import Theorem


@pytree
class GibbsHparams:
    eta: Scalar
    points: PyTree
    key: Array


class GibbsState(NamedTuple):
    log_weights: Float[Array, " P"]  # normalized
    key: Array


@public
def gibbs(eta: Scalar, points: PyTree, key: Array) -> Learner:
    r"""Play a point drawn from the Gibbs distribution; `params` is the prior over the points.

    eta: positive; for losses of range M over T rounds, $\sqrt{8 \ln P / (T M^2)}$.
    points: decisions; every leaf has a leading axis of length P.
    key: a key of `jax.random`; a batch over keys repeats the game with new draws.

    >>> import jax, jax.numpy as jnp, olx
    >>> points, prior = jnp.linspace(-1.0, 1.0, 41), jnp.full(41, 1 / 41)
    >>> wavy = lambda w, y: jnp.sin(20 * (w - y)) ** 2 + jnp.abs(w - y)
    >>> rounds = olx.Rounds(None, jnp.full(60, 0.3))
    >>> run = olx.rollout(gibbs(1.0, points, jax.random.key(0)), wavy, rounds, prior)
    >>> bool(run.losses[-10:].mean() < 0.3)
    True
    """
    check.key(key)
    eta = check.positive("eta", eta)
    points = check.finite("points", points, each=True)
    hparams = GibbsHparams(eta, points, key)
    needs = (prior_need("gibbs"),)
    theorems = (expected_regret,)
    return Learner(hparams, init, predict, update, needs=needs, theorems=theorems)


def init(hp: GibbsHparams, params: Float[Array, " P"]) -> GibbsState:
    return GibbsState(log_softmax(jnp.log(params)), hp.key)


def predict(hp: GibbsHparams, state: GibbsState, context: PyTree) -> PyTree:
    return mean_of(hp.points, draw(state.key, jnp.exp(state.log_weights)))


def update(hp: GibbsHparams, state: GibbsState, feedback: Feedback) -> GibbsState:
    losses = jax.vmap(feedback.loss)(hp.points)
    moved = state.log_weights - hp.eta * feedback.weight * losses
    return GibbsState(log_softmax(moved), jax.random.split(state.key, 1)[0])


class Account(NamedTuple):
    away: Float[Array, ""]  # RE(u || p_1) / eta
    left: Float[Array, ""]
    mixed: Float[Array, ""]  # the sum on the right
    squares: Float[Array, ""]  # the sum that bounds it, over eta times a constant
    size: Float[Array, ""]  # the sum of absolute values, for the rounding error
    positive: Bool[Array, ""]  # whether no loss was negative


def open_exponential(
    eta: Scalar, log_weights: Float[Array, " N"], u: Float[Array, " N"]
) -> Account:
    u = check.comparator(u, log_weights)
    away = jnp.sum(xlogy(u, u) - jnp.where(u > 0, u * log_weights, 0.0)) / eta
    zero = jnp.zeros_like(away)
    return Account(away, zero, zero, zero, jnp.abs(away), jnp.ones((), bool))


def exponential_sides(account: Account, factor: Scalar, u: Float[Array, " N"]) -> Certificate:
    """The inequality above; `published` is `factor` times the sum of squares."""
    right, published = account.away + account.mixed, account.away + factor * account.squares
    proof = Certificate(account.left, right, account.size, published)
    return proof.given(DOMAIN, _domain.simplex(0.0, 1.0, u))


def open_account(hp: GibbsHparams, state: GibbsState, u: Float[Array, " P"]) -> Account:
    return open_exponential(hp.eta, state.log_weights, u)


def add_round(
    hp: GibbsHparams, account: Account, state: GibbsState, feedback: Feedback, u: Array
) -> Account:
    losses = feedback.weight * jax.vmap(feedback.loss)(hp.points)
    expected = jnp.sum(jnp.exp(state.log_weights) * losses)
    mixed = logsumexp(state.log_weights - hp.eta * losses) / hp.eta
    return Account(
        account.away,
        account.left + expected - losses @ u,
        account.mixed + expected + mixed,
        account.squares + (jnp.max(losses) - jnp.min(losses)) ** 2,
        account.size + jnp.abs(losses) @ u + jnp.abs(expected) + jnp.abs(mixed),
        account.positive,
    )


def both_sides(hp: GibbsHparams, account: Account, u: Float[Array, " P"]) -> Certificate:
    r"""The expected regret to a distribution `u` over the points, for any losses.

    The expectation is over the draw of each round. `right` is the exact sum $\frac1\eta RE(u\|p_0)
    + \sum_s E_{p_s} f_s + \frac1\eta \ln E_{p_s} e^{-\eta f_s}$; `published` is the bound of the
    module docstring.
    """
    return exponential_sides(account, hp.eta / 8, u)


expected_regret = Theorem(
    "expected_regret",
    "Zhang 2023, chapter 14, Gibbs distribution",
    open_account,
    add_round,
    both_sides,
)
