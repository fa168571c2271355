r"""A rule of online boosting: how copies of a weak learner vote, and how much each may learn.

In a round the copies vote $h^1, \dots, h^n \in \{-1, +1\}$. The rule makes a score of the votes.
When the label $y$ is known, it gives each copy an importance $p^i \in [0, 1]$. With the factors
$\alpha^i$ of the votes, most rules look at how well the copies before $i$ do on this round,

$$s^{i-1} = \sum_{j < i} \alpha^j y h^j.$$

All votes are made with the states from before the round, so these are sums over known numbers.

Beygelzimer, Kale, Luo, Optimal and Adaptive Algorithms for Online Boosting, 2015; Luo, Optimal and
Adaptive Online Learning, 2016, section 3.1.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx._call import Call
from olx._pytree import pytree, static
from olx.core import Scalar
from olx.theorem import Theorem


@pytree
class BoostingRule:
    """A rule for `boost`: module-level functions and the numbers that they share.

    A rule that needs a table makes it in `init_fn`, once, and keeps it in its state.
    """

    hparams: PyTree
    init_fn: Callable[..., Any] = static()  # (hparams, n, dtype) -> state
    vote_fn: Callable[..., Any] = static()  # (hparams, state, h) -> score
    weigh_fn: Callable[..., Any] = static()  # (hparams, state, h, y) -> p, each in [0, 1]
    update_fn: Callable[..., Any] = static()  # (hparams, state, h, y, weight) -> state
    theorems: tuple[Theorem, ...] = ()  # about `boost` with this rule
    name: Call = static(kw_only=True, default=Call())  # the call that makes it

    def init(self, n: int, dtype: Any) -> PyTree:
        return self.init_fn(self.hparams, n, dtype)

    def vote(self, state: PyTree, h: Float[Array, " n"]) -> Float[Array, ""]:
        return self.vote_fn(self.hparams, state, h)

    def weigh(self, state: PyTree, h: Float[Array, " n"], y: Array) -> Float[Array, " n"]:
        return self.weigh_fn(self.hparams, state, h, y)

    def update(self, state: PyTree, h: Float[Array, " n"], y: Array, weight: Scalar) -> PyTree:
        return self.update_fn(self.hparams, state, h, y, weight)


def sign(scores: Array) -> Array:
    """+1 for scores of at least 0, -1 for other scores; NaN stays, so that divergence is seen."""
    return jnp.where(scores >= 0, jnp.ones_like(scores), jnp.where(scores < 0, -1.0, jnp.nan))


def cumulative(values: Array) -> Array:
    """Sums up to each entry, by doubling; XLA on the CPU takes twice as long for `jnp.cumsum`."""
    sums, reach = values, 1
    while reach < values.size:
        sums = sums + jnp.pad(sums[:-reach], (reach, 0))
        reach *= 2
    return sums


def before(sums: Float[Array, " n"]) -> Float[Array, " n"]:
    """Sums over the copies before each one, from the sums that include it."""
    return jnp.concatenate([jnp.zeros_like(sums[:1]), sums[:-1]])


def mean_vote(hp: PyTree, state: PyTree, h: Float[Array, " n"]) -> Float[Array, ""]:
    """All votes count the same."""
    return jnp.mean(h)


def unchanged(hp: PyTree, state: PyTree, h: Float[Array, " n"], y: Array, weight: Scalar) -> PyTree:
    """A rule that does not learn."""
    return state
