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
$a$ of that draw; the chance of a mistake is $(1 - y a) / 2$. The theorems are about all three; see
`olx.boosting.adaboost_mistakes`.

Beygelzimer, Kale, Luo, Optimal and Adaptive Algorithms for Online Boosting, 2015; Luo, Optimal and
Adaptive Online Learning, 2016, algorithm 8.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from olx import _check as check
from olx import _clock as clock
from olx._clock import Clock
from olx._pytree import pytree
from olx.boosting.adaboost_mistakes import adaboost_theorems
from olx.boosting.rule import BoostingRule, cumulative, sign
from olx.core import Scalar


@pytree
class AdaBoostHparams:
    key: Array | None


class AdaBoostState(NamedTuple):
    alpha: Float[Array, " n"]
    log_v: Float[Array, " n"]  # minus the mistakes of the partial votes
    clock: Clock
    key: Array | None  # for the draw of this round


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
        check.key("adaboost_ol", key)
    parts = init, whole_vote if key is None else drawn_vote, weigh, update, adaboost_theorems
    return BoostingRule(AdaBoostHparams(key), *parts, owner="adaboost_ol")


def adaboost_ol_mean() -> BoostingRule:
    """AdaBoost.OL that plays the expected vote of `adaboost_ol(key)`, a score in [-1, 1]."""
    parts = init, expected_vote, weigh, update, adaboost_theorems
    return BoostingRule(AdaBoostHparams(None), *parts, owner="adaboost_ol_mean")


def init(hp: AdaBoostHparams, n: int, dtype: Any) -> AdaBoostState:
    zeros = jnp.zeros(n, dtype)
    return AdaBoostState(zeros, zeros, clock.start(hp, zeros), hp.key)


def whole_vote(hp: AdaBoostHparams, state: AdaBoostState, h: Float[Array, " n"]) -> Array:
    return jnp.vdot(state.alpha, h)


def drawn_vote(hp: AdaBoostHparams, state: AdaBoostState, h: Float[Array, " n"]) -> Array:
    assert state.key is not None  # `adaboost_ol` uses this function only then
    mass = cumulative(jax.nn.softmax(state.log_v))
    level = jax.random.uniform(state.key, (), mass.dtype) * mass[-1]
    drawn = jnp.minimum(jnp.sum(mass <= level), h.size - 1)  # one random number, not one per copy
    return lax.dynamic_index_in_dim(partial_votes(state, h), drawn, keepdims=False)


def expected_vote(hp: AdaBoostHparams, state: AdaBoostState, h: Float[Array, " n"]) -> Array:
    return jnp.vdot(jax.nn.softmax(state.log_v), partial_votes(state, h))


def partial_votes(state: AdaBoostState, h: Float[Array, " n"]) -> Float[Array, " n"]:
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
