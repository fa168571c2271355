r"""The best sequence of experts in hindsight with at most $K$ changes, by dynamic programming.

With $V_k(i)$ the smallest loss so far of a sequence with at most $k$ changes that now follows $i$,

$$V_k(i) \leftarrow \ell_{t,i} + \min\big( V_k(i), \min_j V_{k-1}(j) \big).$$

Herbster, Warmuth, Tracking the Best Expert, 1998, section 2.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from olx import _check as check


class ShiftingExpert(NamedTuple):
    """The expert of every round, and the total loss."""

    path: Int[Array, " T"]
    value: Array


def best_shifting_expert(losses: Float[Array, "T N"], shifts: int) -> ShiftingExpert:
    """The sequence of experts with at most `shifts` changes and the smallest total loss.

    Exact, in time and memory proportional to rounds times experts times shifts.

    losses: of every expert in every round, times the weights of the rounds if there are any.

    >>> import jax.numpy as jnp
    >>> losses = jnp.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    >>> best = best_shifting_expert(losses, shifts=1)
    >>> best.path.tolist(), float(best.value)
    ([0, 0, 1, 1], 0.0)
    """
    if not isinstance(shifts, int | np.integer) or isinstance(shifts, bool) or shifts < 0:
        raise ValueError(
            "best_shifting_expert: `shifts` must be a non-negative integer, got "
            f"{check.quote(shifts)}."
        )
    if np.ndim(losses) != 2:
        raise TypeError(
            "best_shifting_expert: `losses` must have one row per round and one column per expert, "
            f"got shape {np.shape(losses)}."
        )
    check.array("best_shifting_expert", "losses", losses, 2)

    def forward(cost, loss):
        leader, least = jnp.argmin(cost, axis=1), jnp.min(cost, axis=1)
        switched = jnp.concatenate([jnp.full_like(least[:1], jnp.inf), least[:-1]])[:, None]
        leader = jnp.concatenate([leader[:1], leader[:-1]])
        switches = switched < cost
        return loss + jnp.where(switches, switched, cost), (switches, leader)

    def backward(at, move):
        (k, i), (switches, leader) = at, move
        jump = switches[k, i]
        before = jnp.where(jump, k - 1, k), jnp.where(jump, leader[k], i)
        return before, before[1]

    first = jnp.broadcast_to(losses[0], (shifts + 1, losses.shape[1]))
    cost, moves = lax.scan(forward, first, losses[1:])
    last = jnp.argmin(cost[shifts])
    _, path = lax.scan(backward, (jnp.full_like(last, shifts), last), moves, reverse=True)
    return ShiftingExpert(jnp.append(path, last), cost[shifts, last])
