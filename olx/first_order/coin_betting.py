r"""Coin betting: no step size; each decision is a bet of a fraction of the wealth so far.

With coins $c_t = -g_t / L$, $\|c_t\| \le 1$, and an initial wealth $\epsilon$, bet the fraction of
Krichevsky and Trofimov:

$$w_t = w_1 + \frac1t \sum_{s<t} c_s \,\Big( \epsilon + \sum_{s<t} \langle c_s, w_s - w_1\rangle
  \Big).$$

The money won is minus the regret to $w_1$, over $L$. The wealth is at least
$F_t(\|\sum_s c_s\|)$, $F_t(x) = \epsilon\, 2^t\, \Gamma(\frac{t+1+x}2) \Gamma(\frac{t+1-x}2) /
(\pi\, t!)$. So for every $u$ at once, with $v = u - w_1$,

$$\frac1L \sum_{s \le t} \langle g_s, w_s - u\rangle \le \epsilon + \Big\langle v, \sum_s c_s
  \Big\rangle - F_t\Big(\Big\|\sum_s c_s\Big\|\Big) \le \|v\| \sqrt{t \ln\Big(1 +
  \frac{24 t^2 \|v\|^2}{\epsilon^2}\Big)} + \epsilon \Big(1 - \frac{1}{e \sqrt{\pi t}}\Big).$$

COCOB-Backprop bets per coordinate, without a known range of the gradients. For each coordinate it
keeps the largest $L = \max_s |g_s|$, the sum $G = \sum_s |g_s|$, the sum of coins $\theta = -\sum_s
g_s$ and the reward $R \ge 0$, and plays

$$w = w_1 + \frac{\theta}{L \max(G + L, \alpha L)} \,(L + R), \qquad
  R \leftarrow \max\big(0, R - g\,(w - w_1)\big).$$

$\alpha$ keeps the first bets small: while $G + L \le \alpha L$, a bet moves a coordinate by about
$1/\alpha$ of its normalized sum of coins. This is a heuristic without a regret bound. For gradients
of known range, `coordinate_betting` has one.

Orabona, Pal, Coin Betting and Parameter-Free Online Learning, 2016; Orabona, Tommasi, Training Deep
Networks without Learning Rates Through Coin Betting, 2017, algorithm 2.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _clock as clock
from olx import _numeric as safe
from olx._clock import Clock
from olx._pytree import like, pytree, static
from olx._refusal import public
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Scalar
from olx.facts import Facts, Rowwise, Separable
from olx.needs import Breach, no_breach
from olx.theorem import MET, ZERO, latest, summed


@pytree
class CoinBettingHparams:
    lipschitz: Scalar
    wealth: Scalar
    account: Partial  # (coin, bet) -> the money won, in total or per coordinate
    owner: str = static()


class CoinBettingState(NamedTuple):
    start: PyTree
    coins: PyTree  # the sum of coins
    won: PyTree  # the money won: one number, or one per coordinate
    clock: Clock
    breach: Breach  # a gradient beyond `lipschitz`


_DEMAND = "gradients times weights must be at most `lipschitz`"
_REMEDY = "give a larger `lipschitz`, or take `olx.first_order.freegrad`, which needs none"


@public
def coin_betting(lipschitz: Scalar = 1.0, wealth: Scalar = 1.0) -> Learner:
    r"""Coin betting with one bettor for the whole decision, starting at `params`.

    lipschitz: $L$, at least the Euclidean norm of every gradient times the weight of its round.
        A larger gradient may cost more than the wealth, and a bet of debts grows without end. So
        after it all decisions are NaN, and a driver refuses the run: it names the round and the
        size. In a sweep the losses of this learner are not finite from the next round on, and
        `state.breach` names the round. Wealth is clipped at about the root of the largest float.
    wealth: $\epsilon$, positive; the regret to `params` is at most $L \epsilon$.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.ones((4, 1)))
    >>> run = olx.rollout(
    ...     olx.first_order.coin_betting(), olx.losses.linear_loss, rounds, jnp.zeros(1)
    ... )
    >>> run.losses.tolist()
    [0.0, -0.5, -1.0, -1.875]
    """
    return _make(lipschitz, wealth, Partial(_together), "coin_betting")


@public
def coordinate_betting(lipschitz: Scalar = 1.0, wealth: Scalar = 1.0) -> Learner:
    r"""Coin betting with one bettor per coordinate, each with its own `wealth`.

    lipschitz: at least the size of every partial derivative times the weight of its round. After a
        larger one the decisions of that coordinate are NaN, and a driver refuses the run.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0], [1.0, 1.0], [1.0, 1.0]]))
    >>> run = olx.rollout(
    ...     olx.first_order.coordinate_betting(), olx.losses.linear_loss, rounds, jnp.zeros(2)
    ... )
    >>> bool(jnp.allclose(run.losses, jnp.array([0.0, -0.5, -1.0 - 1 / 3])))
    True
    """
    return _make(lipschitz, wealth, Partial(tree.mul), "coordinate_betting")


def init(hp: CoinBettingHparams, params: PyTree) -> CoinBettingState:
    zeros = tree.zeros_like(params)
    met = no_breach(params, hp.owner, _DEMAND, _REMEDY)
    return CoinBettingState(params, zeros, hp.account(zeros, zeros), clock.start(hp, params), met)


def predict(hp: CoinBettingHparams, state: CoinBettingState, context: PyTree) -> PyTree:
    return tree.add(state.start, _bet(hp, state))


def update(hp: CoinBettingHparams, state: CoinBettingState, feedback: Feedback) -> CoinBettingState:
    coin = _coin(hp, feedback)
    won = _clipped(tree.add(state.won, hp.account(coin, _bet(hp, state))))
    fair, largest = _is_fair(hp, coin), _largest(hp.account(coin, coin))
    now = clock.tick(hp, state.clock, feedback)
    return CoinBettingState(
        state.start,
        tree.add(state.coins, coin),
        jax.tree.map(lambda won, fair: jnp.where(fair, won, jnp.nan), won, fair),
        now,
        state.breach.after(~_all(fair), hp.lipschitz * jnp.sqrt(largest), now.rounds),
    )


class Account(NamedTuple):
    left: Float[Array, ""]
    size: Float[Array, ""]  # the sum of absolute values of the terms of `left`
    right: Float[Array, ""]  # after the last round, like `published` and `apart`
    published: Float[Array, ""]
    apart: Float[Array, ""]  # the sum of absolute values of the terms of `right`
    fair: Bool[Array, ""]  # whether no coin was larger than 1


def start(hp: CoinBettingHparams, state: CoinBettingState, u: PyTree) -> Account:
    check.comparator(u, state.start)
    return Account(*[ZERO] * 5, fair=MET)


def terms(
    hp: CoinBettingHparams, state: CoinBettingState, feedback: Feedback, u: PyTree
) -> Account:
    """The terms of a round; both right sides are sums over the bettors."""
    new = update(hp, state, feedback)
    t, v = new.clock.past, tree.sub(u, state.start)
    along = hp.account(v, new.coins)
    left = jnp.asarray(feedback.weight * tree.vdot(feedback.grad, tree.sub(feedback.action, u)))
    least = jax.tree.map(lambda x: _potential(hp, t, x), _length(hp, new.coins))
    worth = lambda along, least: hp.wealth + along - least
    published = jax.tree.map(lambda size: _closed(hp, t, size), _length(hp, v))
    size = lambda along, won, least: jnp.abs(along) + jnp.abs(won) + least + hp.wealth
    parts = jax.tree.map(worth, along, least), published, jax.tree.map(size, along, new.won, least)
    after = (latest(hp.lipschitz * jnp.asarray(tree.sum(part))) for part in parts)
    return Account(left, jnp.abs(left), *after, fair=_all(_is_fair(hp, _coin(hp, feedback))))


def both_sides(hp: CoinBettingHparams, account: Account, u: PyTree) -> Certificate:
    size = account.apart + account.size
    proof = Certificate(account.left, account.right, size, account.published)
    return proof.given(_DEMAND, account.fair)


betting_regret = summed("betting_regret", "Orabona, Pal 2016", terms, both_sides, start)


def _make(lipschitz: Scalar, wealth: Scalar, account: Partial, owner: str) -> Learner:
    lipschitz = check.positive("lipschitz", lipschitz)
    wealth = check.positive("wealth", wealth)
    hparams = CoinBettingHparams(lipschitz, wealth, account, owner)
    theorems = (betting_regret,)
    facts = Facts(coordinates=Rowwise())
    return Learner(hparams, init, predict, update, facts=facts, theorems=theorems)


def _coin(hp: CoinBettingHparams, feedback: Feedback) -> PyTree:
    return tree.scale(-feedback.weight / hp.lipschitz, feedback.grad)


def _is_fair(hp: CoinBettingHparams, coin: PyTree) -> PyTree:
    """Whether a coin, or each of its coordinates, is at most 1."""
    fair = lambda square: square <= 1 + 128 * jnp.finfo(square.dtype).eps
    return jax.tree.map(fair, hp.account(coin, coin))


def _all(fair: PyTree) -> Bool[Array, ""]:
    return jnp.all(jnp.stack([jnp.all(leaf) for leaf in jax.tree.leaves(fair)]))


def _largest(squares: PyTree) -> Float[Array, ""]:
    return jnp.max(jnp.stack([jnp.max(leaf) for leaf in jax.tree.leaves(squares)]))


def _clipped(x: PyTree) -> PyTree:
    """Clip at about the root of the largest float, so that products of two do not overflow."""

    def clip(leaf: Array) -> Array:
        most = float(jnp.finfo(leaf.dtype).max) ** 0.45
        return jnp.clip(leaf, -most, most)

    return jax.tree.map(clip, x)


def _bet(hp: CoinBettingHparams, state: CoinBettingState) -> PyTree:
    share = lambda coins, won: coins * (hp.wealth + won) / state.clock.now
    return _clipped(jax.tree.map(share, state.coins, like(state.won, state.coins)))


def _length(hp: CoinBettingHparams, v: PyTree) -> PyTree:
    """The length of a vector, or the absolute value of each coordinate."""
    return jax.tree.map(safe.sqrt, hp.account(v, v))


def _potential(hp: CoinBettingHparams, t: Array, x: Array) -> Array:
    log = t * jnp.log(2.0).astype(t.dtype) - gammaln(t + 1) - jnp.log(jnp.pi).astype(t.dtype)
    return hp.wealth * jnp.exp(log + gammaln((t + 1 + x) / 2) + gammaln((t + 1 - x) / 2))


def _closed(hp: CoinBettingHparams, t: Array, size: Array) -> Array:
    inside = t * jnp.log1p(24 * (t * size / hp.wealth) ** 2)
    return size * jnp.sqrt(inside) + hp.wealth * (1 - 1 / (jnp.e * jnp.sqrt(jnp.pi * t)))


def _together(a: PyTree, b: PyTree) -> Array:
    return jnp.asarray(tree.vdot(a, b))


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
    """COCOB-Backprop, starting from `params`; it has no step size, and losses may have any unit.

    alpha: positive; the paper uses 100 for all problems.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.ones((4, 1)))
    >>> run = olx.rollout(olx.first_order.cocob(2.0), olx.losses.linear_loss, rounds, jnp.zeros(1))
    >>> run.losses.tolist()
    [0.0, -0.5, -1.0, -1.875]
    """
    alpha = check.positive("alpha", alpha)
    facts = Facts(coordinates=Separable(keeps_decision=True), scale_free=True)
    return Learner(COCOBHparams(alpha), cocob_init, cocob_predict, cocob_update, facts=facts)


def cocob_init(hp: COCOBHparams, params: PyTree) -> COCOBState:
    zeros = tree.zeros_like(params)
    return COCOBState(params, zeros, zeros, zeros, zeros)


def cocob_predict(hp: COCOBHparams, state: COCOBState, context: PyTree) -> PyTree:
    return jax.tree.map(lambda *kept: _cocob_decision(hp, *kept), *state)


def cocob_update(hp: COCOBHparams, state: COCOBState, feedback: Feedback) -> COCOBState:
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


def _cocob_decision(
    hp: COCOBHparams, start: Array, coins: Array, largest: Array, total: Array, reward: Array
) -> Array:
    seen = largest > 0
    scale = safe.or_one(largest, seen)
    width = scale * jnp.maximum(total + scale, hp.alpha * scale)
    return start + jnp.where(seen, coins / width * (scale + reward), 0.0)


def _positive(x: Array) -> Array:
    return jnp.where(x <= 0, 0.0, x)
