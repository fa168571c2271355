r"""The best sequence of experts, and the best pruning of a tree, in hindsight.

Both are found by dynamic programming. With $V_k(i)$ the smallest loss so far of a sequence with at
most $k$ changes that now follows $i$,

$$V_k(i) \leftarrow \ell_{t,i} + \min\big( V_k(i), \min_j V_{k-1}(j) \big).$$

A template tree is the array of the parents of its edges. Edge $e$ starts at the node below edge
`parents[e]`, which is a smaller number than $e$, or at the root if `parents[e]` is -1. From the
bottom up,

$$\mathrm{best}(e) = \min\Big( L_e, \sum_{c \text{ child of } e} \mathrm{best}(c) \Big),$$

with $L_e$ the total loss of the node below $e$ over the rounds whose path takes $e$, and $L_e$
itself if $e$ has no child. The root gives no advice, so a pruning has at least one edge per path.

Herbster, Warmuth, Tracking the Best Expert, 1998, section 2; Luo, Optimal and Adaptive Online
Learning, 2016, section 2.3.4.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from olx import _check as check
from olx._refusal import RefusedType, RefusedValue, public
from olx.core import Loss, Rounds
from olx.experts.best_pruning import on_edges, path_losses
from olx.hindsight.regret import weights


class ShiftingExpert(NamedTuple):
    """The expert of every round, and the total loss."""

    path: Int[Array, " T"]
    value: Array


@public
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
        raise RefusedValue(f"`shifts` must be a non-negative integer, got {check.quote(shifts)}.")
    if np.ndim(losses) != 2:
        raise RefusedType(
            "`losses` must have one row per round and one column per expert, "
            f"got shape {np.shape(losses)}."
        )
    check.array("losses", losses, 2)

    def forward(cost: Array, loss: Array) -> tuple[Array, tuple]:
        leader, least = jnp.argmin(cost, axis=1), jnp.min(cost, axis=1)
        switched = jnp.concatenate([jnp.full_like(least[:1], jnp.inf), least[:-1]])[:, None]
        leader = jnp.concatenate([leader[:1], leader[:-1]])
        switches = switched < cost
        return loss + jnp.where(switches, switched, cost), (switches, leader)

    def backward(at: tuple, move: tuple) -> tuple[tuple, Array]:
        (k, i), (switches, leader) = at, move
        jump = switches[k, i]
        before = jnp.where(jump, k - 1, k), jnp.where(jump, leader[k], i)
        return before, before[1]

    first = jnp.broadcast_to(losses[0], (shifts + 1, losses.shape[1]))
    cost, moves = lax.scan(forward, first, losses[1:])
    last = jnp.argmin(cost[shifts])
    _, path = lax.scan(backward, (jnp.full_like(last, shifts), last), moves, reverse=True)
    return ShiftingExpert(jnp.append(path, last), cost[shifts, last])


class Pruning(NamedTuple):
    """The leaves of a pruned tree, and its total loss."""

    leaves: Float[Array, " E"]  # 1 for the edges above its leaves, else 0
    value: Array


@public
def best_pruning_in_hindsight(parents: Int[Array, " E"], losses: Float[Array, " E"]) -> Pruning:
    """The pruning of smallest total loss; of two such prunings, the one with fewer edges.

    parents: integers as above; every path must end at an edge without children.
    losses: the total loss of every edge; see `edge_losses`.

    >>> import jax.numpy as jnp
    >>> best = best_pruning_in_hindsight(jnp.array([-1, -1, 0, 0]), jnp.array([3.0, 1.0, 1.0, 1.5]))
    >>> best.leaves.tolist(), float(best.value)
    ([0.0, 1.0, 1.0, 1.0], 3.5)
    """
    above = np.asarray(parents)
    if above.ndim != 1 or np.any(above >= np.arange(above.size)) or np.any(above < -1):
        raise RefusedValue(
            f"`parents` must hold -1 or a smaller number for every edge, got {above.tolist()}."
        )
    check.array("losses", losses, 1)
    losses = jnp.asarray(losses)
    if losses.shape != above.shape:
        raise RefusedType(
            f"there are {above.size} edges and {losses.size} losses; give one loss per edge."
        )
    count = above.size
    inner = jnp.asarray(np.isin(np.arange(count), above))
    parent = jnp.asarray(np.where(above < 0, count, above))  # the root comes last

    def up(below: Array, e: Array) -> tuple[Array, Array]:
        cut = ~inner[e] | (losses[e] <= below[e])
        return below.at[parent[e]].add(jnp.where(cut, losses[e], below[e])), cut

    def down(split: Array, e: Array) -> tuple[Array, Array]:
        reached = split[parent[e]]
        return split.at[e].set(reached & ~cuts[e]), reached & cuts[e]

    below = jnp.zeros(count + 1, losses.dtype)
    below, cuts = lax.scan(up, below, jnp.arange(count), reverse=True)
    split = jnp.zeros(count + 1, bool).at[count].set(True)
    _, leaves = lax.scan(down, split, jnp.arange(count))
    return Pruning(leaves.astype(losses.dtype), below[count])


@public
def edge_losses(loss: Loss, rounds: Rounds, edges: int) -> Float[Array, " E"]:
    """The total loss of the advice below every edge, over the rounds that take it."""
    check.instance("rounds", rounds, Rounds)
    check.takes("loss", loss, "action", "outcome")
    check.count("edges", edges)
    if not hasattr(rounds.context, "edges"):
        raise RefusedType(
            "rounds.context must hold paths of a tree, as `best_pruning` takes them, "
            f"got {check.quote(type(rounds.context))}."
        )
    follow = lambda one: path_losses(lambda advice: loss(advice, one.outcome), one.context)
    along = jax.vmap(follow)(rounds)
    along = along * weights(rounds, along.dtype)[:, None]
    return on_edges(rounds.context, along, edges)
