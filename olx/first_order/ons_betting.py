r"""A bettor whose fraction of the wealth is learned by online Newton steps.

In each coordinate, with the largest gradient so far $h$, the first one $h_1$, clipped gradients
$\hat g_t$ and the wealth $W_1 = \epsilon h_1$, bet the fraction $f_t$ and learn it by the losses
$-\ln(1 - \hat g_t f)$:

$$w_t = w_1 + f_t W_t, \qquad W_{t+1} = W_t (1 - \hat g_t f_t), \qquad z_t = \frac{\hat g_t}{1 -
  \hat g_t f_t}, \quad A_t = 4 h_1^2 + \sum_{s \le t} z_s^2,$$
$$f_{t+1} = \text{the nearest point to } f_t - \frac{z_t}{2 \beta A_t} \text{ in } \Big[
  -\frac1{2 h_{t+1}}, \frac1{2 h_{t+1}} \Big], \qquad \beta = \frac{2 - \ln 3}4.$$

Newton steps lose at most $4 \beta h_1^2 f^2 + \frac1{4\beta} \ln(A_t / 4 h_1^2)$ to any fraction
$f$ of the last interval. Let $-\theta = \sum_s \hat g_s$, $V = \sum_s \hat g_s^2$ and $S = V + h
|\theta|$. The fraction $\theta / 2S$ would win a factor $\exp(\theta^2 / 4S)$. So the wealth is at
least

$$F = \epsilon h_1 \exp\Big(\frac{\theta^2}{4 S} - \beta \frac{h_1^2 \theta^2}{S^2}\Big)
  \Big(\frac{4 h_1^2}{A_t}\Big)^{1 / 4\beta},$$

and for every $u$ at once, with $v = u - w_1$ and $K = \epsilon h_1 e^{-\beta} (1 + V / h_1^2)^{-1 /
4\beta}$, the regret of a coordinate is at most

$$v \theta - F + \epsilon h_1 + \text{price} \le \epsilon h_1 + \max\Big(|v| \sqrt{4 V \ln\Big(1 +
  \frac{4 V v^2}{K^2}\Big)}, 8 h |v| \ln^+ \frac{8 h |v|}K\Big) + h \,\big(|v| + \max_s
  |w_s - w_1|\big).$$

The clipping and its price are those of `olx.frameworks.betting`. If all losses are multiplied by a
constant, the decisions stay the same.

Cutkosky, Orabona, Black-Box Reductions for Parameter-free Online Learning in Banach Spaces, 2018,
algorithm 1; Cutkosky, Artificial Constraints and Hints for Unbounded Online Learning, 2019, for a
range that is learned.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree
from olx._refusal import public
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Scalar
from olx.facts import Facts, Separable
from olx.frameworks import betting
from olx.theorem import Theorem

_BETA = (2 - math.log(3)) / 4


@pytree
class ONSBettingHparams:
    wealth: Scalar


class ONSBettingState(NamedTuple):
    start: PyTree
    coins: PyTree  # minus the sum of clipped gradients
    largest: PyTree  # the largest absolute value of a gradient
    wealth: PyTree
    fraction: PyTree
    curvature: PyTree


@public
def ons_betting(wealth: Scalar = 1.0) -> Learner:
    r"""A bettor with Newton steps in each coordinate, starting at `params`.

    wealth: $\epsilon$, positive; the regret to `params` is at most $\epsilon$ times the first
        gradient of each coordinate, and the price.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.ones((3, 1)))
    >>> run = olx.rollout(
    ...     olx.first_order.ons_betting(), olx.losses.linear_loss, rounds, jnp.zeros(1)
    ... )
    >>> [round(float(loss), 4) for loss in run.losses]
    [0.0, -0.4438, -0.7219]
    """
    wealth = check.positive("wealth", wealth)
    facts = Facts(coordinates=Separable(keeps_decision=True), scale_free=True)
    hparams = ONSBettingHparams(wealth)
    return Learner(hparams, init, predict, update, facts=facts, theorems=(betting_regret,))


def init(hp: ONSBettingHparams, params: PyTree) -> ONSBettingState:
    return ONSBettingState(params, *[tree.zeros_like(params)] * 5)


def predict(hp: ONSBettingHparams, state: ONSBettingState, context: PyTree) -> PyTree:
    return tree.add(state.start, tree.mul(state.fraction, state.wealth))


def update(hp: ONSBettingHparams, state: ONSBettingState, feedback: Feedback) -> ONSBettingState:
    told = betting.tell(feedback, state.largest)
    begun = jax.tree.map(lambda h: h > 0, state.largest)
    own = lambda before, kept, first: jnp.where(before, kept, first)
    kept = jax.tree.map(own, begun, state.wealth, tree.scale(hp.wealth, told.largest))
    first = jax.tree.map(lambda h: 4 * h**2, told.largest)
    squares = jax.tree.map(own, begun, state.curvature, first)
    left = jax.tree.map(lambda g, f: 1 - g * f, told.clipped, state.fraction)
    z = jax.tree.map(jnp.divide, told.clipped, left)
    curvature = jax.tree.map(lambda a, z: a + z**2, squares, z)
    return ONSBettingState(
        state.start,
        tree.sub(state.coins, told.clipped),
        told.largest,
        jax.tree.map(lambda wealth, left: _clipped(wealth * left), kept, left),
        jax.tree.map(_newton_step, state.fraction, z, curvature, told.largest),
        curvature,
    )


class Account(NamedTuple):
    bets: betting.Account
    squares: PyTree  # V
    first: PyTree  # h_1


def open_account(hp: ONSBettingHparams, state: ONSBettingState, u: PyTree) -> Account:
    zeros = tree.zeros_like(state.start)
    return Account(betting.open_account(state.start, u), zeros, zeros)


def add_round(
    hp: ONSBettingHparams,
    account: Account,
    state: ONSBettingState,
    feedback: Feedback,
    u: PyTree,
) -> Account:
    new, told = update(hp, state, feedback), betting.tell(feedback, state.largest)
    squares = jax.tree.map(lambda total, g: total + g**2, account.squares, told.clipped)
    own = lambda h, first, now: jnp.where(h > 0, first, now)
    first = jax.tree.map(own, state.largest, account.first, told.largest)

    def reserve(coins: Array, h: Array, curvature: Array, squares: Array, first: Array) -> Array:
        width = squares + h * jnp.abs(coins)
        rate = safe.divide(coins, width)
        gain = coins * rate / 4 - _BETA * (first * rate) ** 2
        lost = jnp.log(safe.or_one(safe.divide(curvature, 4 * first**2, 1.0))) / (4 * _BETA)
        return hp.wealth * first * (betting.exp(gain - lost) - 1)

    def most(v: Array, h: Array, squares: Array, first: Array) -> Array:
        grown = 1 + safe.divide(squares, first**2)
        level = hp.wealth * first * jnp.exp(-_BETA) * grown ** (-1 / (4 * _BETA))
        return hp.wealth * first + betting.conjugate(v, 4 * squares, 8 * h, level)

    v = jax.tree.map(lambda u, start: jnp.abs(u - start), u, state.start)
    reserves = jax.tree.map(reserve, new.coins, new.largest, new.curvature, squares, first)
    closed = jax.tree.map(most, v, new.largest, squares, first)
    played = tree.mul(state.fraction, state.wealth)
    bets = betting.add_bets(account.bets, feedback, u, state, played, new, reserves, closed)
    return Account(bets, squares, first)


def both_sides(hp: ONSBettingHparams, account: Account, u: PyTree) -> Certificate:
    return betting.both_sides(hp, account.bets, u)


betting_regret = Theorem(
    "betting_regret", "Cutkosky, Orabona 2018", open_account, add_round, both_sides
)


def _newton_step(fraction: Array, z: Array, curvature: Array, h: Array) -> Array:
    step = safe.divide(z, 2 * _BETA * curvature)
    most = safe.divide(0.5, h)
    return jnp.clip(fraction - step, -most, most)


def _clipped(wealth: Array) -> Array:
    """At most about the root of the largest float, so that products do not overflow."""
    return jnp.minimum(wealth, float(jnp.finfo(wealth.dtype).max) ** 0.45)
