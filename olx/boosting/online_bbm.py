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
thousands of copies in single precision. The theorems are in `olx.boosting.bbm_mistakes`.

Beygelzimer, Kale, Luo, Optimal and Adaptive Algorithms for Online Boosting, 2015; Luo, Optimal and
Adaptive Online Learning, 2016, algorithm 7.
"""

from typing import Any

import jax.numpy as jnp

from olx import _check as check
from olx._pytree import pytree
from olx.boosting import _lattice as lattice
from olx.boosting._binomial import from_middle
from olx.boosting.bbm_mistakes import exact_mistakes, majority_mistakes
from olx.boosting.rule import BoostingRule, mean_vote, unchanged
from olx.core import Scalar


@pytree
class BBMHparams:
    gamma: Scalar


def online_bbm(gamma: Scalar) -> BoostingRule:
    r"""Online BBM for copies that beat a coin by $\gamma$.

    gamma: between 0 and 1/2. If copies beat a coin by $\gamma$ under every weighting of the rounds,
        the share of mistakes of their vote tends to $e^{-n \gamma^2 / 2}$ or less. An odd `n`
        avoids ties, which count as mistakes.
    """
    gamma = check.inside("online_bbm", "gamma", gamma, 0.0, 0.5)
    parts = init, mean_vote, lattice.weigh, unchanged
    theorems = exact_mistakes, majority_mistakes
    return BoostingRule(BBMHparams(gamma), *parts, theorems, owner="online_bbm")


def init(hp: BBMHparams, n: int, dtype: Any) -> lattice.Table:
    """The table of importances, by copy and by the number of right votes before it."""
    k = jnp.arange(n)
    logs = from_middle(jnp.asarray(hp.gamma, dtype), n - 1 - k[:, None], k)
    chances = jnp.exp(logs - jnp.max(logs, axis=1, keepdims=True))
    wanted = n // 2 - jnp.arange(n // 2 + 2)
    return lattice.Table(jnp.where(wanted >= 0, chances[:, jnp.maximum(wanted, 0)], 0.0))
