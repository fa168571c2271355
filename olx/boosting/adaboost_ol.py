r"""AdaBoost.OL: online boosting that needs no edge.

The vote of copy $i$ counts with a factor $\alpha^i \in [-2, 2]$, which starts at 0. With
$s^i = \sum_{j \le i} \alpha^j y h^j$ and $\eta_t = 4 / \sqrt t$, after round $t$

$$p^i = \frac1{1 + e^{s^{i-1}}}, \qquad
  \alpha^i \leftarrow \mathrm{clip}_{[-2, 2]}\Big( \alpha^i + \frac{\eta_t\, y h^i}{1 + e^{s^i}}
  \Big):$$

the factors follow the gradient of the logistic loss $\ln(1 + e^{-s^i})$. The first $i$ copies make
a partial vote $\hat y^i = \mathrm{sign}(\sum_{j \le i} \alpha^j h^j)$, and these are $n$ experts,
with weights $v^i \propto \exp(-\text{mistakes of } \hat y^i)$.

`adaboost_ol()` plays the sum over all copies. `adaboost_ol(key)` plays the vote of an expert drawn
with chance proportional to $v^i$, as in the source. `adaboost_ol_mean()` plays the expected vote
$a$ of that draw; the chance of a mistake is $(1 - y a) / 2$.

The theorems are about all three. Let $z_s^i = y_s h_s^i$, let $M_i$ be the mistakes of the vote of
the first $i$ copies, $M_0 = t$, and let $\gamma_i = \frac12 \sum_s p_s^i z_s^i / \sum_s p_s^i$ be
the edge of copy $i$, of any sign. For all copies, whatever they do:

- `partial_votes`: with $g_s^i = 1 / (1 + e^{s_s^i})$, the slopes of the logistic losses,

$$\sum_i \gamma_i^2 M_{i-1} + \sum_s \ln(1 + e^{-s_s^n}) \le t \ln 2 + \sum_i R_i, \qquad
  R_i = 2 \sqrt t + \sum_s \frac{2 (g_s^i)^2}{\sqrt s} \le 6 \sqrt t;$$

- `best_partial_vote`: so $\min_i M_i \le (t \ln 2 + \sum_i R_i) / \sum_i \gamma_i^2$;
- `drawn_vote`: the expected mistakes of the vote that is drawn are at most
  $(\min_i M_i + \ln n) / (1 - 1 / e)$, which is at most $2 \min_i M_i + 2 \ln n$;
- `adaboost_mistakes`: the two bounds together;
- `weak_adaboost_mistakes(gamma, excess)`: if every copy errs on at most $(\frac12 - \gamma)
  \sum_s p_s^i + S$ of its weight, then $\gamma_i^2 M_{i-1} \ge \gamma^2 M_{i-1} - 4 \gamma S$,
  because the copy has a weight of at least $\frac12$ where the vote before it errs, and so

$$\min_i M_i \le \frac{t \ln 2 + \sum_i R_i}{n \gamma^2} + \frac{4 S}\gamma.$$

These count the votes of the rule. A learner is judged by what it plays, so every left side also has
$\sum_s m_s(a_s) - m_s(v_s)$, where $a_s$ is the action, $v_s$ the vote of the rule, and $m_s(a) =
\frac12 (1 - y_s \mathrm{clip}_{[-1, 1]}(a))$ the chance of a mistake of the vote $a$. It is 0 for a
learner that plays the vote of the rule. For a vote that is drawn, the left side is thus the number
of mistakes that were made, less what the draws themselves made beyond their chance.

The source has $4 \sqrt t$ for $R_i$, in (3.12), by the analysis of gradient descent for slopes of
at most 1. On an interval of length $D = 4$ with steps $\eta_s = 4 / \sqrt s$ this analysis gives

$$\frac{D^2}{2 \eta_t} + \frac12 \sum_{s \le t} \eta_s \le 2 \sqrt t + 4 \sqrt t,$$

and no constant below 6 is right: slopes of $\pm 1$ that alternate while $\alpha$ is at the end of
the interval, and then push it to the other end, have a regret of $(6 - o(1)) \sqrt t$.

Beygelzimer, Kale, Luo, Optimal and Adaptive Algorithms for Online Boosting, 2015; Luo, Optimal and
Adaptive Online Learning, 2016, algorithm 8, theorems 11 and 12.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx import _clock as clock
from olx import _numeric as safe
from olx._clock import Clock, tick
from olx._pytree import pytree
from olx._refusal import public
from olx.boosting.boost import (
    BoostHparams,
    BoostingRule,
    BoostState,
    before,
    cumulative,
    label,
    sign,
    votes,
)
from olx.certificate import UNIT_WEIGHTS, Certificate
from olx.core import Feedback, Learner, Scalar
from olx.theorem import About, Theorem, is_about


@pytree
class AdaBoostHparams:
    key: Array | None


class AdaBoostState(NamedTuple):
    alpha: Float[Array, " n"]
    log_v: Float[Array, " n"]  # minus the mistakes of the partial votes
    clock: Clock
    key: Array | None  # for the draw of this round


@public
def adaboost_ol(key: Array | None = None) -> BoostingRule:
    """AdaBoost.OL; it has no numbers to choose.

    key: a key of `jax.random`, to play a partial vote that is drawn; None to play the sum over all
        copies.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_classification(jax.random.key(0), 200, 5, margin=0.1)
    >>> weak = olx.classification.passive_aggressive_1(0.1)
    >>> learner = olx.boosting.boost(weak, 10, adaboost_ol())
    >>> bool(olx.rollout(learner, olx.losses.zero_one, rounds, jnp.zeros(5)).total < 60)
    True
    """
    if key is not None:
        check.key(key)
    parts = init, whole_vote if key is None else draw_vote, weigh, update, adaboost_theorems
    return BoostingRule(AdaBoostHparams(key), *parts)


@public
def adaboost_ol_mean() -> BoostingRule:
    """AdaBoost.OL that plays the expected vote of `adaboost_ol(key)`, a score in [-1, 1]."""
    parts = init, expected_vote, weigh, update, adaboost_theorems
    return BoostingRule(AdaBoostHparams(None), *parts)


def init(hp: AdaBoostHparams, n: int, dtype: DTypeLike) -> AdaBoostState:
    zeros = jnp.zeros(n, dtype)
    return AdaBoostState(zeros, zeros, clock.start(hp, zeros), hp.key)


def whole_vote(hp: AdaBoostHparams, state: AdaBoostState, h: Float[Array, " n"]) -> Array:
    return jnp.vdot(state.alpha, h)


def draw_vote(hp: AdaBoostHparams, state: AdaBoostState, h: Float[Array, " n"]) -> Array:
    assert state.key is not None  # `adaboost_ol` uses this function only then
    mass = cumulative(jax.nn.softmax(state.log_v))
    level = jax.random.uniform(state.key, (), mass.dtype) * mass[-1]
    drawn = jnp.minimum(jnp.sum(mass <= level), h.size - 1)  # one random number, not one per copy
    return lax.dynamic_index_in_dim(votes_so_far(state, h), drawn, keepdims=False)


def expected_vote(hp: AdaBoostHparams, state: AdaBoostState, h: Float[Array, " n"]) -> Array:
    return jnp.vdot(jax.nn.softmax(state.log_v), votes_so_far(state, h))


def votes_so_far(state: AdaBoostState, h: Float[Array, " n"]) -> Float[Array, " n"]:
    """The prediction of the first copies, up to each one."""
    return sign(cumulative(state.alpha * h))


def weigh(
    hp: AdaBoostHparams, state: AdaBoostState, h: Float[Array, " n"], y: Array
) -> Float[Array, " n"]:
    slopes = jax.nn.sigmoid(-y * cumulative(state.alpha * h))  # `update` needs them too
    return jnp.concatenate([jnp.full_like(slopes[:1], 0.5), slopes[:-1]])


def update(
    hp: AdaBoostHparams, state: AdaBoostState, h: Float[Array, " n"], y: Array, weight: Scalar
) -> AdaBoostState:
    sums = cumulative(state.alpha * h)
    eta = weight * 4 / jnp.sqrt(state.clock.now)
    alpha = jnp.clip(state.alpha + eta * y * h * jax.nn.sigmoid(-y * sums), -2.0, 2.0)
    return AdaBoostState(
        alpha,
        state.log_v - jnp.where(sign(sums) != y, weight, 0.0),
        clock.tick(hp, state.clock, None),
        None if state.key is None else jax.random.split(state.key, 1)[0],
    )


class Account(NamedTuple):
    clock: Clock
    mistakes: Float[Array, " n"]  # of the partial votes
    drawn: Float[Array, ""]  # the expected mistakes of the vote that is drawn
    weight: Float[Array, " n"]  # the sum of p
    right: Float[Array, " n"]  # the sum of p z
    slopes: Float[Array, " n"]  # the sum of 2 g^2 / sqrt(s)
    logistic: Float[Array, ""]
    beyond: Float[Array, ""]  # the mistakes of the action beyond those of the vote of the rule
    unit: Bool[Array, ""]


def open_account(hp: BoostHparams, state: BoostState, u: PyTree) -> Account:
    none, zero = jnp.zeros_like(state.rule.alpha), jnp.zeros((), state.rule.alpha.dtype)
    clock = jax.tree.map(jnp.zeros_like, state.rule.clock)
    return Account(clock, none, zero, none, none, none, zero, zero, jnp.ones((), bool))


def add_round(
    hp: BoostHparams, account: Account, state: BoostState, feedback: Feedback, u: PyTree
) -> Account:
    own, h = state.rule, votes(hp, state, feedback.context)
    y = label(feedback, h)
    sums, chances = jnp.cumsum(own.alpha * h), jax.nn.softmax(own.log_v)
    wrong, p = jnp.where(sign(sums) != y, 1.0, 0.0).astype(h.dtype), hp.rule.weigh(own, h, y)
    slopes = 2 * jax.nn.sigmoid(-y * sums) ** 2 / jnp.sqrt(account.clock.now)
    chosen, vote = (jnp.clip(a, -1.0, 1.0) for a in (feedback.action, hp.rule.vote(own, h)))
    return Account(
        tick(hp, account.clock, feedback),
        account.mistakes + wrong,
        account.drawn + jnp.vdot(chances, wrong),
        account.weight + p,
        account.right + p * y * h,
        account.slopes + slopes,
        account.logistic + jax.nn.softplus(-y * sums[-1]),
        account.beyond + y * (vote - chosen) / 2,
        account.unit & (feedback.weight == 1),
    )


def partial_sides(hp: BoostHparams, account: Account, u: PyTree) -> Certificate:
    t = account.clock.past
    earlier = before(account.mistakes).at[0].set(t)
    left = jnp.vdot(_edges(account) ** 2, earlier) + account.logistic
    return _certificate(account, left, *_regrets(account))


def best_sides(hp: BoostHparams, account: Account, u: PyTree) -> Certificate:
    right, published = _least(account)
    return _certificate(account, jnp.min(account.mistakes), right, published)


def drawn_sides(hp: BoostHparams, account: Account, u: PyTree) -> Certificate:
    least, size = jnp.min(account.mistakes), math.log(account.mistakes.size)
    return _certificate(account, account.drawn, _drawn_bound(least, account), 2 * least + 2 * size)


def whole_sides(hp: BoostHparams, account: Account, u: PyTree) -> Certificate:
    right, published = (_drawn_bound(least, account) for least in _least(account))
    return _certificate(account, account.drawn, right, published)


@public
def weak_adaboost_mistakes(gamma: Scalar, excess: Scalar) -> Theorem:
    r"""Theorem 12 for copies with the edge $\gamma$ and the excess loss $S$ = `excess`, which is a
    condition on the weighted mistakes of every copy."""
    gamma = check.inside("gamma", gamma, 0.0, 0.5)
    excess = check.non_negative("excess", excess)
    parts = open_account, add_round, Partial(weak_sides, gamma, excess)
    return Theorem("weak_adaboost_mistakes", "Luo 2016, theorem 12", *parts, about=ADABOOST)


def weak_sides(
    gamma: Scalar, excess: Scalar, hp: BoostHparams, account: Account, u: PyTree
) -> Certificate:
    least = (side / (hp.n * gamma**2) + 4 * excess / gamma for side in _regrets(account))
    right, published = (_drawn_bound(one, account) for one in least)
    wrong = (account.weight - account.right) / 2
    slack = 1e3 * jnp.finfo(wrong.dtype).eps * account.weight
    enough = jnp.all(wrong <= (0.5 - gamma) * account.weight + excess + slack)
    proof = _certificate(account, account.drawn, right, published)
    return proof.given("copies must have the edge `gamma` up to `excess`", enough)


def _edges(account: Account) -> Float[Array, " n"]:
    return safe.divide(account.right, 2 * account.weight)


def _regrets(account: Account) -> tuple[Array, Array]:
    """The right side of `partial_votes`, and its looser form."""
    t, n = account.clock.past, account.mistakes.size
    start, root = t * math.log(2), jnp.sqrt(t)
    return start + 2 * n * root + jnp.sum(account.slopes), start + 6 * n * root


def _least(account: Account) -> tuple[Array, Array]:
    """Bounds on the mistakes of the best partial vote."""
    total = jnp.sum(_edges(account) ** 2)
    right, published = (safe.divide(side, total, jnp.inf) for side in _regrets(account))
    return right, published


def _drawn_bound(least: Array, account: Account) -> Array:
    return (least + math.log(account.mistakes.size)) / (1 - math.exp(-1))


def _certificate(account: Account, left: Array, right: Array, published: Array) -> Certificate:
    left = left + account.beyond
    scale = jnp.abs(left) + jnp.where(jnp.isfinite(right), right, 0.0)
    return Certificate(left, right, scale, published).given(UNIT_WEIGHTS, account.unit)


def _is_adaboost(learner: Learner) -> bool:
    return isinstance(learner.hparams, BoostHparams) and is_about(partial_votes, learner)


def _theorem(name: str, source: str, sides: Callable[..., Certificate]) -> Theorem:
    return Theorem(name, f"Luo 2016, {source}", open_account, add_round, sides)


ADABOOST = About("`boost` by `adaboost_ol`", _is_adaboost)
partial_votes = _theorem("partial_votes", "theorem 11, proof", partial_sides)
best_partial_vote = _theorem("best_partial_vote", "theorem 11, proof", best_sides)
drawn_vote = _theorem("drawn_vote", "theorem 11, Hedge", drawn_sides)
adaboost_mistakes = _theorem("adaboost_mistakes", "theorem 11", whole_sides)
adaboost_theorems = partial_votes, best_partial_vote, drawn_vote, adaboost_mistakes
