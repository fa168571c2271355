r"""Online BBM: boost by majority, online.

All $n$ votes count the same. If each of the copies after $i$ were right with probability
$\frac12 + \frac\gamma2$, independently, the vote of all would be wrong with probability

$$\Phi_i(s) = P\Big[ \mathrm{Bin}\big(n - i, \tfrac12 + \tfrac\gamma2\big) \le
  \big\lfloor \tfrac{n - i - s}2 \big\rfloor \Big], \qquad s = s^i = \sum_{j \le i} y h^j.$$

The weight of copy $i$ is how much its own vote matters, half the difference of $\Phi_i$ for a wrong
and a right vote. If $c$ of the copies before it are right, it is

$$w^i = \tfrac12 \big(\Phi_i(s^{i-1} - 1) - \Phi_i(s^{i-1} + 1)\big) =
  \tfrac12 \binom{n - i}k \big(\tfrac12 + \tfrac\gamma2\big)^k
  \big(\tfrac12 - \tfrac\gamma2\big)^{n - i - k}, \qquad k = \lfloor \tfrac n2 \rfloor - c,$$

and 0 if $k$ is negative or above $n - i$. The importance is $p^i = w^i / \max_k w^i$. A table of
them is made once, by sums outwards from the middle of each binomial, so it is accurate for
thousands of copies in single precision.

Let $z_s^i = y_s h_s^i$. Every vote moves the potential by a known amount, so for all copies,
whatever they do, after $t$ rounds

$$|\{s \le t : y_s \textstyle\sum_i h_s^i \le 0\}| =
  t\, \Phi_0(0) + \sum_i \sum_{s \le t} w_s^i (\gamma - z_s^i).$$

`exact_mistakes` is this equality. Let $\|w^i\|$ be the largest weight of copy $i$ at any state, and
$S = \max_i \big( \sum_s w_s^i (\gamma - z_s^i) \big)_+ / \|w^i\|$ how far the worst copy fell short
of its edge. Then the mistakes are at most

$$t\, \Phi_0(0) + S \sum_i \|w^i\| \le t\, e^{-n \gamma^2 / 2} + S \sum_i \|w^i\|.$$

The first is the printed form of the lemma, the second is `majority_mistakes`. The source proves
with high probability that copies with the edge $\gamma$ have a small $S$; here $S$ is measured, and
`majority_mistakes_at(excess)` takes it as a condition. A tie counts as a mistake. Rounds may have
weights: both sides are sums over weighted rounds.

Beygelzimer, Kale, Luo, Optimal and Adaptive Algorithms for Online Boosting, 2015; Luo, Optimal and
Adaptive Online Learning, 2016, algorithm 7, lemma 8 and theorem 9.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import betainc
from jax.tree_util import Partial
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PyTree
from scipy.special import gammaln

from olx import _check as check
from olx import _numeric
from olx._numeric import Sum
from olx._pytree import pytree
from olx._refusal import public
from olx.boosting.boost import (
    BoostHparams,
    BoostingRule,
    BoostState,
    Table,
    label,
    table_rule,
    votes,
)
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Scalar
from olx.losses.margin import mistaken
from olx.theorem import About, Theorem, is_about


@pytree
class BBMHparams:
    gamma: Scalar


@public
def online_bbm(gamma: Scalar) -> BoostingRule:
    r"""Online BBM for copies that beat a coin by $\gamma$.

    gamma: between 0 and 1/2. If copies beat a coin by $\gamma$ under every weighting of the rounds,
        the share of mistakes of their vote tends to $e^{-n \gamma^2 / 2}$ or less. An odd `n`
        avoids ties, which count as mistakes.
    """
    gamma = check.inside("gamma", gamma, 0.0, 0.5)
    return table_rule(BBMHparams(gamma), init, (exact_mistakes, majority_mistakes))


def init(hp: BBMHparams, n: int, dtype: DTypeLike) -> Table:
    """The table of importances, by copy and by the number of right votes before it."""
    k = jnp.arange(n)
    logs = from_middle(jnp.asarray(hp.gamma, dtype), n - 1 - k[:, None], k)
    chances = jnp.exp(logs - jnp.max(logs, axis=1, keepdims=True))
    wanted = n // 2 - jnp.arange(n // 2 + 2)
    return Table(jnp.where(wanted >= 0, chances[:, jnp.maximum(wanted, 0)], 0.0))


class Account(NamedTuple):
    first: Float[Array, ""]  # Phi_0(0)
    largest: Float[Array, " n"]  # the largest weight of each copy
    rounds: Sum
    mistakes: Sum
    short: Sum  # [n]: the sum of p (gamma - z)
    paid: Float[Array, " n"]  # the sum of p


def open_account(hp: BoostHparams, state: BoostState, u: PyTree) -> Account:
    gamma, zeros = _gamma(hp, state), jnp.zeros(hp.n, state.rule.p.dtype)
    none = _numeric.start(zeros[0])
    first, largest = at_most_half(gamma, hp.n), largest_weights(gamma, hp.n)
    return Account(first, largest, none, none, _numeric.start(zeros), zeros)


def largest_weights(gamma: Array, n: int) -> Float[Array, " n"]:
    left, k = n - 1 - np.arange(n), jnp.arange(n)
    top = jnp.max(from_middle(gamma, jnp.asarray(left)[:, None], k), axis=1)
    return jnp.exp(top + log_middle(gamma, left)) / 2


def add_round(
    hp: BoostHparams, account: Account, state: BoostState, feedback: Feedback, u: PyTree
) -> Account:
    h = votes(hp, state, feedback.context)
    y, weight = label(feedback, h), jnp.asarray(feedback.weight, h.dtype)
    p = weight * hp.rule.weigh(state.rule, h, y)
    return Account(
        account.first,
        account.largest,
        _numeric.add(account.rounds, weight),
        _numeric.add(account.mistakes, jnp.where(mistaken(feedback.action, y), weight, 0.0)),
        _numeric.add(account.short, p * (_gamma(hp, state) - y * h)),
        account.paid + p,
    )


def exact_sides(hp: BoostHparams, account: Account, u: PyTree) -> Certificate:
    start, short = account.first * account.rounds.value, account.largest @ account.short.value
    printed = start + _excess(account) * jnp.sum(account.largest)
    return _certificate(account, start + short, printed)


def majority_sides(hp: BoostHparams, account: Account, u: PyTree) -> Certificate:
    """`right` leaves out the copies that did better than their edge."""
    short = account.largest @ jnp.maximum(account.short.value, 0.0)
    right = account.first * account.rounds.value + short
    return _certificate(account, right, _published(hp, account, _excess(account)))


@public
def majority_mistakes_at(excess: Scalar) -> Theorem:
    r"""Theorem 9 for copies that fall short by at most $S$ = `excess`, which is a condition:

    $$\sum_s w_s^i z_s^i \ge \gamma \sum_s w_s^i - S \|w^i\| \quad \text{for every copy.}$$

    With importance weights, copies with the edge $\gamma$ and the excess loss $S / 2$ meet it.
    """
    excess = check.non_negative("excess", excess)
    parts = open_account, add_round, Partial(sides_at, excess)
    return Theorem("majority_mistakes_at", "Luo 2016, theorem 9", *parts, about=ONLINE_BBM)


def sides_at(excess: Scalar, hp: BoostHparams, account: Account, u: PyTree) -> Certificate:
    right = account.first * account.rounds.value + excess * jnp.sum(account.largest)
    slack = 1e3 * jnp.finfo(account.paid.dtype).eps * account.paid
    enough = jnp.all(account.short.value <= excess + slack)
    proof = _certificate(account, right, _published(hp, account, jnp.asarray(excess)))
    return proof.given("copies must fall short of their edge by at most `excess`", enough)


def _excess(account: Account) -> Float[Array, ""]:
    return jnp.maximum(jnp.max(account.short.value), 0.0)


def _published(hp: BoostHparams, account: Account, excess: Array) -> Float[Array, ""]:
    gamma = jnp.asarray(hp.rule.hparams.gamma, account.first.dtype)
    chance = jnp.exp(-hp.n * gamma**2 / 2)
    return chance * account.rounds.value + excess * jnp.sum(account.largest)


def _certificate(account: Account, right: Array, published: Array) -> Certificate:
    scale = account.rounds.value + 2 * account.largest @ account.paid
    return Certificate(account.mistakes.value, right, scale, published)


def _gamma(hp: BoostHparams, state: BoostState) -> Float[Array, ""]:
    return jnp.asarray(hp.rule.hparams.gamma, state.rule.p.dtype)


def _is_majority(learner: Learner) -> bool:
    return isinstance(learner.hparams, BoostHparams) and is_about(exact_mistakes, learner)


ONLINE_BBM = About("`boost` by `online_bbm`", _is_majority)
exact_mistakes = Theorem(
    "exact_mistakes", "Luo 2016, lemma 8", open_account, add_round, exact_sides
)
majority_mistakes = Theorem(
    "majority_mistakes", "Luo 2016, theorem 9", open_account, add_round, majority_sides
)


def sums(n: int, dtype: DTypeLike) -> Float[Array, "n n"]:
    """What $s^{i-1}$ is for every copy, by the number of right votes before it."""
    count = jnp.arange(n, dtype=dtype)
    return 2 * count - count[:, None]


def from_middle(gamma: Array, m: Array, k: Array) -> Array:
    r"""Logarithms of chances relative to the middle; -inf if `k` is above `m`.

    They are those of $k$ heads in $m$ throws of a coin with $P[\text{head}] = \frac12 +
    \frac\gamma2$, relative to $r = \lfloor m / 2 \rfloor$ heads:

    $$\ln \binom mk - \ln \binom mr + (k - r) \ln\frac{1 + \gamma}{1 - \gamma}.$$

    Near the largest chance these are small numbers, and so they are accurate in single precision.
    The logarithms of factorials are not: they are large and nearly cancel.

    k: the numbers 0, 1, 2, ... along the last axis.
    """
    middle, legal = m // 2, k <= m
    real = lambda count: count.astype(gamma.dtype)
    ratio = real(m - k + 1) / real(jnp.maximum(k, 1))  # from k - 1 to k heads, for a fair coin
    growth = jnp.log(jnp.where(legal & (k >= 1), ratio, 1.0))
    axis = growth.ndim - 1
    above, below = (jnp.where(side, growth, 0.0) for side in (k > middle, k <= middle))
    rise = lax.cumsum(above, axis) - (lax.cumsum(below, axis, reverse=True) - below)
    tilt = jnp.log1p(gamma) - jnp.log1p(-gamma)
    return jnp.where(legal, rise + real(k - middle) * tilt, -jnp.inf)


def log_middle(gamma: Array, m: np.ndarray) -> Array:
    """The logarithm of the chance of the middle; `m` is known before anything is traced."""
    middle = m // 2
    fair = gammaln(m + 1) - gammaln(middle + 1) - gammaln(m - middle + 1) - m * np.log(2)
    fair, heads, tails = (jnp.asarray(one, gamma.dtype) for one in (fair, middle, m - middle))
    return fair + heads * jnp.log1p(gamma) + tails * jnp.log1p(-gamma)


def at_most_half(gamma: Array, n: int) -> Float[Array, ""]:
    """The chance of at most `n` / 2 heads in `n` throws."""
    logs = from_middle(gamma, jnp.asarray(n), jnp.arange(n // 2 + 1))
    return jnp.sum(jnp.exp(logs + log_middle(gamma, np.asarray(n))))


def at_most(gamma: Scalar, m: Array, k: Array) -> Array:
    """The chance of at most `k` heads in `m` throws."""
    inside = (k >= 0) & (k < m)
    few, all_of = jnp.where(inside, k, 0), jnp.where(inside, m, 1)
    chance = betainc(1.0 * (all_of - few), few + 1.0, (1 - gamma) / 2)
    return jnp.where(inside, chance, jnp.where(k < 0, 0.0, 1.0))
