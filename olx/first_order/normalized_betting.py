r"""A linear predictor that bets on coins in units of its features and of its loss.

It is the bettor of COCOB in each coordinate, with what Vowpal Wabbit (`--coin`) adds to it: the
range of a coordinate is known before the round, from its feature, and scores are divided by the
mean squared norm of the rows, as all coordinates bet at once on the same outcome. Let $s_i$ be the
largest $|x_{r,i}|$ of $r \le t$, which includes $x_t$, and $M$ the largest slope of the loss so
far. With $L_i = M s_i$,

$$\hat y_t = \frac1{n_t} \sum_i w_i x_{t,i}, \qquad w_i = \frac{\theta_i}{L_i (L_i + G_i)}\,
  (\alpha M + R_i), \qquad n_t = \frac1t \sum_{r \le t} \sum_i \frac{x_{r,i}^2}{s_{r,i}^2}.$$

After a round with slope $\ell'_t$ and $g = \ell'_t x_t$, with $M$ and $w$ from the new slope,

$$R_i \leftarrow R_i - g_i w_i, \qquad \theta_i \leftarrow \theta_i - g_i, \qquad
  G_i \leftarrow G_i + |g_i|.$$

Features and losses times constants: the same scores. Vowpal Wabbit has $\alpha$ in place of $\alpha
M$, and $\max(1, M)$ in place of $M$, for each coordinate; with slopes up to 1 the scores are nearly
the same. This is a heuristic without a regret bound, because of $n_t$. `olx.first_order.pistol` and
the other bettors have one.

Orabona, Tommasi, Training Deep Networks without Learning Rates Through Coin Betting, 2017, for the
bettor; Vowpal Wabbit, 2020, for the rest.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._numeric import Sum
from olx._pytree import pytree
from olx._refusal import own_name, public
from olx.core import Feedback, Learner, Scalar
from olx.facts import Facts, Rowwise


@pytree
class NormalizedBettingHparams:
    wealth: Scalar


class NormalizedBettingState(NamedTuple):
    coins: PyTree  # theta
    sizes: PyTree  # G
    won: PyTree  # R
    largest: PyTree  # s
    slope: Float[Array, ""]  # M
    norms: Sum  # n times the weight of all rounds
    weight: Sum  # of all rounds


@public
def normalized_betting(wealth: Scalar = 4.0) -> Learner:
    r"""A linear predictor without a step size; units of features and losses do not matter.

    wealth: $\alpha$, positive.

    The context is shaped like `params`; only the shape of `params` is used.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(jnp.array([[3.0, 1.0], [2.0, -1.0]]), jnp.array([1.0, -1.0]))
    >>> stretched = rounds._replace(context=rounds.context * jnp.array([1024.0, 0.5]))
    >>> learner = olx.first_order.normalized_betting()
    >>> play = lambda rounds: olx.rollout(learner, olx.losses.squared, rounds, jnp.zeros(2)).losses
    >>> bool(jnp.allclose(play(rounds), play(stretched)))
    True
    """
    hparams = NormalizedBettingHparams(check.positive("wealth", wealth))
    facts = Facts(coordinates=Rowwise(), scale_free=True)
    return Learner(hparams, init, predict, update, facts=facts)


def init(hp: NormalizedBettingHparams, params: PyTree) -> NormalizedBettingState:
    zeros = tree.zeros_like(params)
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(params)))
    none = safe.start(zero)
    return NormalizedBettingState(zeros, zeros, zeros, zeros, zero, none, none)


@own_name("normalized_betting")
def predict(
    hp: NormalizedBettingHparams, state: NormalizedBettingState, context: PyTree
) -> Float[Array, ""]:
    check.same_shape("the context", context, "`params`", state.coins)
    state = state._replace(largest=_larger(state, context))
    norm = (state.norms.value + _square(state, context)) / (state.weight.value + 1)
    return safe.divide(tree.vdot(_weights(hp, state), context), norm)


def update(
    hp: NormalizedBettingHparams, state: NormalizedBettingState, feedback: Feedback
) -> NormalizedBettingState:
    x, slope = feedback.context, feedback.weight * feedback.grad
    largest, steepest = _larger(state, x), jnp.maximum(state.slope, jnp.abs(slope))
    state = state._replace(largest=largest, slope=steepest)
    g = tree.scale(slope, x)
    won = jax.tree.map(lambda won, g, w: won - g * w, state.won, g, _weights(hp, state))
    own = jnp.asarray(feedback.weight, steepest.dtype)
    return NormalizedBettingState(
        tree.sub(state.coins, g),
        jax.tree.map(lambda total, g: total + jnp.abs(g), state.sizes, g),
        won,
        largest,
        steepest,
        safe.add(state.norms, own * _square(state, x)),
        safe.add(state.weight, own),
    )


def _weights(hp: NormalizedBettingHparams, state: NormalizedBettingState) -> PyTree:
    def one(coins: Array, sizes: Array, won: Array, largest: Array) -> Array:
        most = state.slope * largest
        seen = most > 0
        most = safe.or_one(most, seen)
        bet = coins / most / (most + sizes) * (hp.wealth * state.slope + won)
        return jnp.where(seen, bet, 0.0)

    return jax.tree.map(one, state.coins, state.sizes, state.won, state.largest)


def _larger(state: NormalizedBettingState, context: PyTree) -> PyTree:
    return jax.tree.map(lambda s, x: jnp.maximum(s, jnp.abs(x)), state.largest, context)


def _square(state: NormalizedBettingState, context: PyTree) -> Array:
    """The squared norm of a row in units of the largest features."""
    units = jax.tree.map(safe.divide, context, state.largest)
    return jnp.asarray(tree.vdot(units, units))
