r"""OSBoost and OSBoost.OCP: online boosting with smooth weights.

With $\theta = \gamma / (2 + \gamma)$ and $s^{i-1} = \sum_{j < i} y h^j$, the importance of copy
$i$ is

$$p^i = \min\big(1, (1 - \gamma)^{(s^{i-1} - (i - 1)\theta) / 2}\big).$$

In `osboost` all votes count the same. In `osboost_ocp` they count with factors $\alpha$ of the
simplex, which start at $1 / n$ and follow the gradient of $[\theta - y \langle \alpha, h
\rangle]_+$ with steps $1 / \sqrt{n t}$.

Chen, Lin, Lu, An Online Boosting Algorithm with Theoretical Justifications, 2012. The weights here
are those that two public programs use; the steps of OSBoost.OCP are those of Vowpal Wabbit, and
they are not checked with the paper.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from olx import _check as check
from olx import _clock as clock
from olx._clock import Clock
from olx._pytree import pytree
from olx._refusal import public
from olx.boosting.boost import BoostingRule, before, cumulative, mean_vote, unchanged
from olx.convex.projections import simplex
from olx.core import Scalar


@pytree
class OSBoostHparams:
    gamma: Scalar


class OCPState(NamedTuple):
    alpha: Float[Array, " n"]
    clock: Clock


@public
def osboost(gamma: Scalar) -> BoostingRule:
    """OSBoost with equal votes.

    gamma: between 0 and 1/2, the edge of the copies. Smaller for smoother weights.
    """
    gamma = check.inside("gamma", gamma, 0.0, 0.5)
    return BoostingRule(OSBoostHparams(gamma), init, mean_vote, weigh, unchanged)


@public
def osboost_ocp(gamma: Scalar) -> BoostingRule:
    """OSBoost with factors of the votes that are learned.

    gamma: between 0 and 1/2, the edge of the copies.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_classification(jax.random.key(0), 200, 5, margin=0.1)
    >>> weak = olx.classification.passive_aggressive_1(0.1)
    >>> learner = olx.boosting.boost(weak, 10, osboost_ocp(0.1))
    >>> bool(olx.rollout(learner, olx.losses.zero_one, rounds, jnp.zeros(5)).total < 60)
    True
    """
    gamma = check.inside("gamma", gamma, 0.0, 0.5)
    return BoostingRule(OSBoostHparams(gamma), init_factors, weighted_vote, weigh, learn_factors)


def init(hp: OSBoostHparams, n: int, dtype: DTypeLike) -> None:
    return None


def init_factors(hp: OSBoostHparams, n: int, dtype: DTypeLike) -> OCPState:
    alpha = jnp.full(n, 1 / n, dtype)
    return OCPState(alpha, clock.start(hp, alpha))


def weighted_vote(hp: OSBoostHparams, state: OCPState, h: Float[Array, " n"]) -> Array:
    return jnp.vdot(state.alpha, h)


def weigh(
    hp: OSBoostHparams, state: OCPState | None, h: Float[Array, " n"], y: Array
) -> Float[Array, " n"]:
    lead = before(cumulative(y * h - _threshold(hp)))
    return jnp.exp(jnp.minimum(lead * jnp.log1p(-hp.gamma) / 2, 0.0))


def learn_factors(
    hp: OSBoostHparams, state: OCPState, h: Float[Array, " n"], y: Array, weight: Scalar
) -> OCPState:
    low = y * jnp.vdot(state.alpha, h) < _threshold(hp)
    step = jnp.where(low, weight * y / jnp.sqrt(h.size * state.clock.now), 0.0)
    return OCPState(simplex(state.alpha + step * h, 1.0), clock.tick(hp, state.clock, None))


def _threshold(hp: OSBoostHparams) -> Scalar:
    return hp.gamma / (2 + hp.gamma)
