r"""Bettors that need no range of the gradients: one per coordinate, with clipped gradients.

Each coordinate is a game of its own, from $w_1$, with bets $b_t = w_t - w_1$. The range of its
gradients is learned: $h_t = \max_{s < t} |g_s|$, and $h_1 = |g_1|$, since the first bet is 0. The
bettor is told $\hat g_t$, which is $g_t$ clipped to $[-h_t, h_t]$. Its sum of coins is $\theta_t =
-\sum_{s \le t} \hat g_s$, and a potential $\Phi$ with more sums over the rounds gives the bet:

$$b_{t+1} = \partial_\theta \Phi_t(\theta_t), \qquad
  \Phi_{t+1}(\theta_t - \hat g) \le \Phi_t(\theta_t) - \hat g\, b_{t+1}
  \quad \text{for } |\hat g| \le h_{t+1}.$$

So the money won, $-\sum_s \hat g_s b_s$, is at least a reserve $\Phi_t(\theta_t) - \Phi_0$. With
$v = u - w_1$, in each coordinate,

$$\sum_{s \le t} g_s (w_s - u) \le v\, \theta_t - (\Phi_t(\theta_t) - \Phi_0) +
  \sum_{s \le t} (g_s - \hat g_s)(b_s - v).$$

The last sum is the price of the range: at most $h_{t+1} (|v| + \max_s |b_s|)$, since the clipped
parts add up to at most $h_{t+1}$. All losses times a constant: the same decisions, if $\Phi$ is
homogeneous.

Cutkosky, Artificial Constraints and Hints for Unbounded Online Learning, 2019, for the clipping;
Orabona, Pal, Coin Betting and Parameter-Free Online Learning, 2016, for the potentials.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx.certificate import Certificate
from olx.core import Feedback, Learner
from olx.facts import Facts, Separable
from olx.theorem import Theorem


@dataclasses.dataclass(frozen=True)
class Rule:
    """A potential, as functions of (hparams, coins, range, *sums) that act on each coordinate.

    adds: one function of (gradient, range before, sum) per sum; the gradient is clipped.
    bet: the bet, where a gradient was seen.
    reserve: what was won, at least.
    most: of (hparams, |v|, range, *sums): a closed form of at least v * coins - reserve.
    """

    adds: tuple[Callable[..., Array], ...]
    bet: Callable[..., Array]
    reserve: Callable[..., Array]
    most: Callable[..., Array]


class BettorState(NamedTuple):
    start: PyTree
    coins: PyTree  # minus the sum of clipped gradients
    largest: PyTree  # the range: the largest absolute value of a gradient
    sums: tuple[PyTree, ...]


class Told(NamedTuple):
    """What the bettors are told of a round."""

    clipped: PyTree
    rest: PyTree  # the gradients minus the clipped ones
    largest: PyTree  # the range after the round


def bettor(hparams: Any, theorem: Theorem) -> Learner:
    """A bettor per coordinate; `hparams` have a `rule`."""
    facts = Facts(coordinates=Separable(keeps_decision=True), scale_free=True)
    return Learner(hparams, init, predict, update, facts=facts, theorems=(theorem,))


def init(hp: Any, params: PyTree) -> BettorState:
    zeros = tree.zeros_like(params)
    return BettorState(params, zeros, zeros, (zeros,) * len(hp.rule.adds))


def predict(hp: Any, state: BettorState, context: PyTree) -> PyTree:
    return tree.add(state.start, bets(hp, state))


def update(hp: Any, state: BettorState, feedback: Feedback) -> BettorState:
    told = tell(feedback, state.largest)
    sums = tuple(
        jax.tree.map(add, told.clipped, state.largest, own)
        for add, own in zip(hp.rule.adds, state.sums, strict=True)
    )
    return BettorState(state.start, tree.sub(state.coins, told.clipped), told.largest, sums)


def bets(hp: Any, state: BettorState) -> PyTree:
    """The bet of every coordinate; 0 where no gradient was seen."""
    return _where_seen(hp, hp.rule.bet, state.coins, state)


def tell(feedback: Feedback, range_before: PyTree) -> Told:
    """Clip the gradients of a round to the range before it; the first gradient is not clipped."""
    g = tree.scale(feedback.weight, feedback.grad)

    def clip(g: Array, h: Array) -> Array:
        return jnp.where((h > 0) & (jnp.abs(g) > h), jnp.sign(g) * h, g)

    clipped = jax.tree.map(clip, g, range_before)
    after = jax.tree.map(lambda g, h: jnp.maximum(h, jnp.abs(g)), g, range_before)
    return Told(clipped, tree.sub(g, clipped), after)


def add_size(g: Array, h: Array, total: Array) -> Array:
    return total + jnp.abs(g)


def add_square(g: Array, h: Array, total: Array) -> Array:
    return total + g**2


def exp(x: Array) -> Array:
    """The exponential, at most about the root of the largest float: products do not overflow."""
    return jnp.exp(jnp.minimum(x, 0.45 * math.log(jnp.finfo(x.dtype).max)))


def conjugate(v: Array, width: Array, slope: Array, level: Array) -> Array:
    r"""At least $v \theta - A \exp(\min(\theta^2 / 2a, \theta / b))$ for all $\theta$, and 0.

    v, width, slope, level: $v \ge 0$, $a$, $b$ and $A$; 0 where $A$ is 0. Orabona, Pal 2016, lemma
    18, for the square.
    """
    ratio = safe.divide(v, level)
    near = v * jnp.sqrt(width * jnp.log1p(width * ratio**2))
    times = slope * ratio
    return jnp.maximum(near, slope * v * jnp.log(safe.or_one(times, times > 1)))


class Account(NamedTuple):
    left: Float[Array, ""]
    size: Float[Array, ""]  # the sum of absolute values of the terms of `left` and `price`
    price: Float[Array, ""]  # of the range
    right: Float[Array, ""]  # after the last round, like `published` and `apart`
    published: Float[Array, ""]
    apart: Float[Array, ""]  # the sum of absolute values of the terms of `right`
    farthest: PyTree  # the largest bet of each coordinate


def open_account(start: PyTree, u: PyTree) -> Account:
    check.comparator(u, start)
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(start)))
    return Account(*[zero] * 6, farthest=tree.zeros_like(start))


def add_bets(
    account: Account,
    feedback: Feedback,
    u: PyTree,
    state: Any,
    bets: PyTree,
    new: Any,
    reserves: PyTree,
    most: PyTree,
) -> Account:
    """Add a round.

    state, new: before and after the round, with fields `start`, `coins` and `largest`.
    reserves, most: per coordinate, after the round; see `Rule`.
    """
    told, v = tell(feedback, state.largest), tree.sub(u, state.start)
    g = tree.add(told.clipped, told.rest)
    left = jnp.asarray(tree.vdot(g, tree.sub(feedback.action, u)))
    price = account.price + tree.vdot(told.rest, tree.sub(bets, v))
    farthest = jax.tree.map(lambda far, b: jnp.maximum(far, jnp.abs(b)), account.farthest, bets)
    along, size = tree.mul(v, new.coins), lambda own: jax.tree.map(jnp.abs, own)
    highest = tree.vdot(new.largest, tree.add(size(v), farthest))
    terms = tree.vdot(size(g), tree.add(size(feedback.action), size(u)))
    terms += tree.vdot(size(told.rest), tree.add(size(bets), size(v)))
    return Account(
        account.left + left,
        account.size + terms,
        price,
        jnp.asarray(tree.sum(tree.sub(along, reserves))) + price,
        jnp.asarray(tree.sum(most) + highest),
        jnp.asarray(tree.sum(size(along)) + tree.sum(size(reserves))),
        farthest,
    )


def both_sides(hp: Any, account: Account, u: PyTree) -> Certificate:
    size = account.size + account.apart
    return Certificate(account.left, account.right, size, account.published)


def regret_of(source: str, sides: Callable[..., Certificate] = both_sides) -> Theorem:
    """The theorem above, of a learner that this file plays."""
    return Theorem("betting_regret", source, _open, _add, sides)


def _open(hp: Any, state: BettorState, u: PyTree) -> Account:
    return open_account(state.start, u)


def _add(hp: Any, account: Account, state: BettorState, feedback: Feedback, u: PyTree) -> Account:
    new, v = update(hp, state, feedback), tree.sub(u, state.start)
    size = jax.tree.map(jnp.abs, v)
    reserves = _where_seen(hp, hp.rule.reserve, new.coins, new)
    most = _where_seen(hp, hp.rule.most, size, new)
    return add_bets(account, feedback, u, state, bets(hp, state), new, reserves, most)


def _where_seen(
    hp: Any, function: Callable[..., Array], values: PyTree, state: BettorState
) -> PyTree:
    """A function of the rule for every coordinate; 0 where no gradient was seen."""

    def one(value: Array, largest: Array, *sums: Array) -> Array:
        seen = largest > 0
        sums = tuple(safe.or_one(own, seen) for own in sums)
        return jnp.where(seen, function(hp, value, safe.or_one(largest, seen), *sums), 0.0)

    return jax.tree.map(one, values, state.largest, *state.sums)
