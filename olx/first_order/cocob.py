r"""COCOB-Backprop: coin betting per coordinate, without a known range of the gradients.

For each coordinate keep the largest $L = \max_s |g_s|$, the sum $G = \sum_s |g_s|$, the sum of
coins $\theta = -\sum_s g_s$ and the reward $R \ge 0$, and play

$$w = w_1 + \frac{\theta}{L \max(G + L, \alpha L)} \,(L + R), \qquad
  R \leftarrow \max\big(0, R - g\,(w - w_1)\big).$$

$\alpha$ keeps the first bets small: while $G + L \le \alpha L$, a bet moves a coordinate by about
$1/\alpha$ of its normalized sum of coins. This is a heuristic without a regret bound. For gradients
of known range, `coordinate_betting` has one.

Orabona, Tommasi, Training Deep Networks without Learning Rates Through Coin Betting, 2017,
algorithm 2.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree
from olx._refusal import public
from olx.core import Feedback, Learner, Scalar
from olx.facts import Facts, Separable


@pytree
class COCOBHparams:
    alpha: Scalar


class COCOBState(NamedTuple):
    start: PyTree
    coins: PyTree
    largest: PyTree
    total: PyTree
    reward: PyTree


@public
def cocob(alpha: Scalar = 100.0) -> Learner:
    """COCOB-Backprop, starting from `params`; it has no step size.

    alpha: positive; the paper uses 100 for all problems.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.ones((4, 1)))
    >>> run = olx.rollout(olx.first_order.cocob(2.0), olx.losses.linear_loss, rounds, jnp.zeros(1))
    >>> run.losses.tolist()
    [0.0, -0.5, -1.0, -1.875]
    """
    alpha = check.positive("alpha", alpha)
    facts = Facts(coordinates=Separable(keeps_decision=True))
    return Learner(COCOBHparams(alpha), init, predict, update, facts=facts)


def init(hp: COCOBHparams, params: PyTree) -> COCOBState:
    zeros = tree.zeros_like(params)
    return COCOBState(params, zeros, zeros, zeros, zeros)


def predict(hp: COCOBHparams, state: COCOBState, context: PyTree) -> PyTree:
    return jax.tree.map(lambda *kept: _decide(hp, *kept), *state)


def update(hp: COCOBHparams, state: COCOBState, feedback: Feedback) -> COCOBState:
    g = tree.scale(feedback.weight, feedback.grad)
    moved = tree.sub(feedback.action, state.start)
    reward = jax.tree.map(lambda reward, g, v: _positive(reward - g * v), state.reward, g, moved)
    return COCOBState(
        state.start,
        tree.sub(state.coins, g),
        jax.tree.map(lambda largest, g: jnp.maximum(largest, jnp.abs(g)), state.largest, g),
        jax.tree.map(lambda total, g: total + jnp.abs(g), state.total, g),
        reward,
    )


def _decide(
    hp: COCOBHparams, start: Array, coins: Array, largest: Array, total: Array, reward: Array
) -> Array:
    seen = largest > 0
    scale = safe.or_one(largest, seen)
    width = scale * jnp.maximum(total + scale, hp.alpha * scale)
    return start + jnp.where(seen, coins / width * (scale + reward), 0.0)


def _positive(x: Array) -> Array:
    return jnp.where(x <= 0, 0.0, x)
