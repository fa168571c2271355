r"""Importances that depend on the number of right votes before a copy, from a table.

If all votes count the same, $s^{i-1} = 2c - (i - 1)$ with $c$ the number of right votes among the
copies before $i$. So the importance of copy $i$ is entry $c$ of row $i$ of a table, which a rule
makes once.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx.boosting.rule import cumulative


class Table(NamedTuple):
    p: Float[Array, "n m"]  # a count beyond the last column has the importance of the last column


def weigh(hp: PyTree, state: Table, h: Float[Array, " n"], y: Array) -> Float[Array, " n"]:
    right = (h == y).astype(jnp.int32)
    count = jnp.minimum(cumulative(right) - right, state.p.shape[1] - 1)
    return jnp.take_along_axis(state.p, count[:, None], 1, mode="promise_in_bounds")[:, 0]


def sums(n: int, dtype: Any) -> Float[Array, "n n"]:
    """What $s^{i-1}$ is for every copy, by the number of right votes before it."""
    count = jnp.arange(n, dtype=dtype)
    return 2 * count - count[:, None]
