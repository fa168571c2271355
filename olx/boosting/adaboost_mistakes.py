r"""The theorems about AdaBoost.OL: mistakes of its partial votes, and of the vote that is drawn.

With the numbers of `adaboost_ol`, let $z_s^i = y_s h_s^i$, let $M_i$ be the mistakes of the vote of
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

Luo, Optimal and Adaptive Online Learning, 2016, theorems 11 and 12.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx import _safe as safe
from olx._clock import Clock, tick
from olx.boosting.boost import BoostHparams, BoostState, label, votes
from olx.boosting.rule import before, sign
from olx.certificate import UNIT_WEIGHTS, Certificate
from olx.core import Feedback, Learner, Scalar
from olx.theorem import About, Theorem, is_about, theorem


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
    return _unit(account, left, *_regrets(account))


def best_sides(hp: BoostHparams, account: Account, u: PyTree) -> Certificate:
    right, published = _least(account)
    return _unit(account, jnp.min(account.mistakes), right, published)


def drawn_sides(hp: BoostHparams, account: Account, u: PyTree) -> Certificate:
    least, size = jnp.min(account.mistakes), math.log(account.mistakes.size)
    return _unit(account, account.drawn, _hedged(least, account), 2 * least + 2 * size)


def whole_sides(hp: BoostHparams, account: Account, u: PyTree) -> Certificate:
    right, published = (_hedged(least, account) for least in _least(account))
    return _unit(account, account.drawn, right, published)


def weak_adaboost_mistakes(gamma: Scalar, excess: Scalar) -> Theorem:
    r"""Theorem 12 for copies with the edge $\gamma$ and the excess loss $S$ = `excess`, which is a
    condition on the weighted mistakes of every copy."""
    gamma = check.inside("weak_adaboost_mistakes", "gamma", gamma, 0.0, 0.5)
    excess = check.non_negative("weak_adaboost_mistakes", "excess", excess)
    parts = open_account, add_round, Partial(weak_sides, gamma, excess)
    return theorem("weak_adaboost_mistakes", "Luo 2016, theorem 12", *parts, about=ADABOOST)


def weak_sides(
    gamma: Scalar, excess: Scalar, hp: BoostHparams, account: Account, u: PyTree
) -> Certificate:
    least = (side / (hp.n * gamma**2) + 4 * excess / gamma for side in _regrets(account))
    right, published = (_hedged(one, account) for one in least)
    wrong = (account.weight - account.right) / 2
    slack = 1e3 * jnp.finfo(wrong.dtype).eps * account.weight
    enough = jnp.all(wrong <= (0.5 - gamma) * account.weight + excess + slack)
    proof = _unit(account, account.drawn, right, published)
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


def _hedged(least: Array, account: Account) -> Array:
    return (least + math.log(account.mistakes.size)) / (1 - math.exp(-1))


def _unit(account: Account, left: Array, right: Array, published: Array) -> Certificate:
    left = left + account.beyond
    scale = jnp.abs(left) + jnp.where(jnp.isfinite(right), right, 0.0)
    return Certificate(left, right, scale, published).given(UNIT_WEIGHTS, account.unit)


def _is_adaboost(learner: Learner) -> bool:
    return isinstance(learner.hparams, BoostHparams) and is_about(partial_votes, learner)


def _made(name: str, source: str, sides: Any) -> Theorem:
    return theorem(name, f"Luo 2016, {source}", open_account, add_round, sides)


ADABOOST = About("`boost` by `adaboost_ol`", _is_adaboost)
partial_votes = _made("partial_votes", "theorem 11, proof", partial_sides)
best_partial_vote = _made("best_partial_vote", "theorem 11, proof", best_sides)
drawn_vote = _made("drawn_vote", "theorem 11, Hedge", drawn_sides)
adaboost_mistakes = _made("adaboost_mistakes", "theorem 11", whole_sides)
adaboost_theorems = partial_votes, best_partial_vote, drawn_vote, adaboost_mistakes
