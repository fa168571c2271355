r"""Coin betting for changing environments: small regret on every interval, without step sizes.

As `olx.meta.saol`, it mixes copies of a learner: slot $k = 0, 1, \dots$ restarts at every multiple
of $2^k$, and every interval is a union of few lives. The weights are bets. The copy $J$ that starts
in round $s$ has the prior $\pi_J = 1 / (s^2 (1 + \lfloor\log_2 s\rfloor))$ and a bettor with the
wealth $W_J = 1$. In the $n$-th round of its life it bets the share of Krichevsky and Trofimov on
its regret $r_{t,J} = \langle p_t, \ell_t\rangle - \ell_{t,J}$, which is in $[-1, 1]$:

$$w_J = \frac{Z_J}n W_J, \qquad p_t \propto \pi_J\, [w_J]_+, \qquad Z_J \leftarrow Z_J + z_J, \quad
  W_J \leftarrow W_J + z_J w_J,$$

where $z_J = r_{t,J}$ if $w_J > 0$, else $[r_{t,J}]_+$. If no bet is positive, $p_t \propto \pi_J$
over the copies that are alive. The bettors win nothing together,

$$\sum_J \pi_J z_J w_J \le \sum_J \pi_J [w_J]_+ r_{t,J} = 0,$$

so $\pi_J W_J$ is at most the sum of all priors. At most $1 + \lfloor\log_2 s\rfloor$ copies start
in round $s$, so this sum is at most $\pi^2 / 6$. And the wealth of this bettor is at least
$\exp(Z_J^2 / 2 n) / (e \sqrt{\pi n})$, for all coins in $[-1, 1]$. Losses are convex.

Jun, Orabona, Wright, Willett, Improved Strongly Adaptive Online Learning using Coin Betting, 2017.
The bound on the wealth: Orabona, Pál, Coin Betting and Parameter-Free Online Learning, 2016.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int, PyTree

from olx import _check as check
from olx._refusal import public
from olx.core import Feedback, Learner, Scalar
from olx.meta import adaptive
from olx.meta.adaptive import LIGHT, NEAR, NEVER, Account, AdaptiveHparams, AdaptiveState
from olx.theorem import Theorem
from olx.wrapper import INNER, lift_needs


class CBCEState(NamedTuple):
    slots: AdaptiveState
    coins: Float[Array, " K"]  # Z
    log_wealth: Float[Array, " K"]


@public
def cbce(inner: Learner, levels: int, span: Scalar = 1.0) -> Learner:
    """Mix copies of `inner` that restart every 1, 2, 4, ... rounds; each bets on itself.

    inner: any learner with real actions.
    levels: the number of copies; the longest life is 2 to the power `levels` - 1 rounds.
    span: the largest difference between two losses of one round.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.concatenate([jnp.full(60, 0.0), jnp.full(60, 1.0)]))
    >>> average = olx.md(olx.schedules.decay(1.0, 1.0), olx.mirrors.euclidean())  # of all so far
    >>> play = lambda learner: olx.rollout(learner, olx.losses.squared, rounds, jnp.zeros(()))
    >>> bool(play(cbce(average, 7)).total < 0.5 * play(average).total)
    True
    """
    adaptive.check_arguments(inner, levels)
    span = check.positive("span", span)
    hparams = AdaptiveHparams(inner, span, tuple(2**k for k in range(levels)), (0,) * levels)
    needs, theorems = lift_needs(INNER, inner), (interval_regret,)
    return Learner(hparams, init, predict, update, needs=needs, theorems=theorems)


def init(hp: AdaptiveHparams, params: PyTree) -> CBCEState:
    zeros = jnp.zeros(len(hp.period), jnp.result_type(*jax.tree.leaves(params)))
    return CBCEState(adaptive.first_state(hp, params, zeros), zeros, zeros)


def predict(hp: AdaptiveHparams, state: CBCEState, context: PyTree) -> PyTree:
    return adaptive.predict(hp, state.slots, context)


def update(hp: AdaptiveHparams, state: CBCEState, feedback: Feedback) -> CBCEState:
    copies, losses = adaptive.learn(hp, state.slots, feedback)
    _, coins, log_wealth = _bets_paid(hp, state, losses, feedback.weight)
    now = state.slots.now + 1
    begins = adaptive.begins(hp, now)
    coins, log_wealth = jnp.where(begins, 0.0, coins), jnp.where(begins, 0.0, log_wealth)
    log_weights = _log_weights(hp, now, coins, log_wealth)
    return CBCEState(adaptive.next_state(hp, state.slots, copies, log_weights), coins, log_wealth)


def _bets_paid(
    hp: AdaptiveHparams, state: CBCEState, losses: Float[Array, " K"], weight: Scalar
) -> tuple[Float[Array, " K"], Float[Array, " K"], Float[Array, " K"]]:
    """The regrets of a round, and the sums of coins and the wealth after it."""
    now = state.slots.now
    regrets = adaptive.regrets_of(hp, state.slots.log_weights, losses)
    regrets = jnp.where(_alive(hp, now), regrets, 0.0)
    coins = weight * jnp.where(state.coins > 0, regrets, jnp.maximum(regrets, 0.0))
    gains = jnp.log1p(coins * state.coins / _age(hp, now, coins.dtype))
    return regrets, state.coins + coins, state.log_wealth + gains


def _log_weights(
    hp: AdaptiveHparams, now: Int[Array, ""], coins: Float[Array, " K"], log_wealth: Array
) -> Float[Array, " K"]:
    alive, log_prior = _alive(hp, now), _log_prior(hp, now, coins.dtype)
    bets = alive & (coins > 0)
    shares = jnp.where(bets, coins, 1.0) / _age(hp, now, coins.dtype)
    log_bets = jnp.where(bets, jnp.log(shares) + log_wealth, 0.0)
    return jnp.where(jnp.where(jnp.any(bets), bets, alive), log_prior + log_bets, NEVER)


def _age(hp: AdaptiveHparams, now: Int[Array, ""], dtype: DTypeLike) -> Float[Array, " K"]:
    """The number of the round in the life of each copy, from 1."""
    return (now % jnp.asarray(hp.period) + 1).astype(dtype)


def _alive(hp: AdaptiveHparams, now: Int[Array, ""]) -> Bool[Array, " K"]:
    return now >= jnp.asarray(hp.period)


def _log_prior(hp: AdaptiveHparams, now: Int[Array, ""], dtype: DTypeLike) -> Float[Array, " K"]:
    start = jnp.maximum(now - now % jnp.asarray(hp.period), 1)
    digits = jnp.iinfo(start.dtype).bits - jax.lax.clz(start)  # exact, where a logarithm rounds
    return -2 * jnp.log(start.astype(dtype)) - jnp.log(digits.astype(dtype))


def open_account(hp: AdaptiveHparams, state: CBCEState, u: Float[Array, " K"]) -> Account:
    return adaptive.open_lives(state.slots, u, NEAR, LIGHT, sums=0)


def add_round(
    hp: AdaptiveHparams, account: Account, state: CBCEState, feedback: Feedback, u: Array
) -> Account:
    r"""The regret to the copy $J$ in a slot after $n$ rounds of its life, which began in round $s$.

    $$\sum_t f_t(a_t) - f_t(a_t^J) \le \sqrt{2 n \big(\ln W_J + \ln(e \sqrt{\pi n})\big)} \le
      \sqrt{2 n \Big(\ln \frac{\pi^2}{6\, \pi_J} + \ln(e \sqrt{\pi n})\Big)}.$$

    In round $t$ of the game this is at most $\sqrt{n (7 \ln t + 5)}$. The bound of `olx.meta.saol`
    is of order $\sqrt n \ln t$.

    u: a distribution over slots, most often a single slot; both sides are 0 while it is not used.
        Weights of rounds are at most 1.
    """
    losses, now = adaptive.losses_of(hp, state.slots, feedback), state.slots.now
    regrets, _, log_wealth = _bets_paid(hp, state, losses, feedback.weight)
    n = _age(hp, now, losses.dtype)
    worth = lambda log: jnp.sqrt(2 * n * jnp.maximum(log + 1 + jnp.log(jnp.pi * n) / 2, 0.0))
    most = jnp.log(jnp.pi**2 / 6) - _log_prior(hp, now, losses.dtype)
    return adaptive.add_to_lives(hp, account, state.slots, feedback, losses)._replace(
        right=hp.eta_or_span * worth(log_wealth),
        published=hp.eta_or_span * worth(most),
        alive=_alive(hp, now),
        met=adaptive.near_and_light(account, regrets, feedback.weight),
    )


interval_regret = Theorem(
    "interval_regret", "Jun et al. 2017", open_account, add_round, adaptive.both_sides
)
