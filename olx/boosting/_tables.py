r"""Tables of importances by the number of right votes before a copy, and chances to fill them.

If all votes count the same, $s^{i-1} = 2c - (i - 1)$ with $c$ the number of right votes among the
copies before $i$. So the importance of copy $i$ is entry $c$ of row $i$ of a table, which a rule
makes once. For votes in $[-1, 1]$ the sum $c = \sum_{j < i} (1 + y h^j) / 2$ is rounded: the entry
is $\lfloor n/2 \rfloor - \lfloor n/2 - c \rfloor$, as in $k = \lfloor (n - i - s^{i-1} + 1) / 2
\rfloor$ of Online BBM.

The chances are those of $k$ heads in $m$ throws of a coin with $P[\text{head}] = \frac12 +
\frac\gamma2$. Relative to the middle $r = \lfloor m / 2 \rfloor$, their logarithms are

$$\ln \binom mk - \ln \binom mr + (k - r) \ln\frac{1 + \gamma}{1 - \gamma}.$$

Near the largest chance these are small numbers, and so they are accurate in single precision. The
logarithms of factorials are not: they are large and nearly cancel.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import betainc
from jaxtyping import Array, Float, PyTree
from scipy.special import gammaln

from olx.boosting.rule import cumulative
from olx.core import Scalar


class Table(NamedTuple):
    p: Float[Array, "n m"]  # a count beyond the last column has the importance of the last column


def weigh(hp: PyTree, state: Table, h: Float[Array, " n"], y: Array) -> Float[Array, " n"]:
    right = (h == y).astype(jnp.int32)
    count = jnp.minimum(cumulative(right) - right, state.p.shape[1] - 1)
    return jnp.take_along_axis(state.p, count[:, None], 1, mode="promise_in_bounds")[:, 0]


def weigh_scores(hp: PyTree, state: Table, h: Float[Array, " n"], y: Array) -> Float[Array, " n"]:
    """The same for votes in [-1, 1]."""
    right, n = (1 + y * h) / 2, h.size
    entry = n // 2 - jnp.floor(n / 2 - (cumulative(right) - right)).astype(jnp.int32)
    entry = jnp.clip(entry, 0, state.p.shape[1] - 1)
    return jnp.take_along_axis(state.p, entry[:, None], 1, mode="promise_in_bounds")[:, 0]


def sums(n: int, dtype: Any) -> Float[Array, "n n"]:
    """What $s^{i-1}$ is for every copy, by the number of right votes before it."""
    count = jnp.arange(n, dtype=dtype)
    return 2 * count - count[:, None]


def from_middle(gamma: Array, m: Array, k: Array) -> Array:
    """Logarithms of chances relative to the middle; -inf if `k` is above `m`.

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


def at_most(gamma: Scalar, m: Any, k: Any) -> Array:
    """The chance of at most `k` heads in `m` throws."""
    inside = (k >= 0) & (k < m)
    few, all_of = jnp.where(inside, k, 0), jnp.where(inside, m, 1)
    chance = betainc(1.0 * (all_of - few), few + 1.0, (1 - gamma) / 2)
    return jnp.where(inside, chance, jnp.where(k < 0, 0.0, 1.0))
