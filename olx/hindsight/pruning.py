r"""The best pruning of a template tree in hindsight, and what `best_pruning` guarantees against it.

A tree is the array of its edges' parents: edge $e$ leaves the node below edge `parents[e]`, a
smaller number, or the root where that is -1. From the bottom up,

$$\mathrm{best}(e) = \min\Big( L_e, \sum_{c \text{ child of } e} \mathrm{best}(c) \Big),$$

with $L_e$ the total loss of the node below $e$ over the rounds whose path takes $e$, and no minimum
where there is no child. The root gives no advice and is no pruning.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.3.4.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from olx import _check as check
from olx.certificate import Certificate
from olx.core import Learner, Loss, Rounds, Run
from olx.experts.best_pruning import Path, path_losses, path_weights
from olx.hindsight.about import BEST_PRUNING
from olx.hindsight.game import judged, played, unit_weights
from olx.hindsight.regret import weights


class Pruning(NamedTuple):
    """Where the pruned tree ends, and what it costs."""

    leaves: Float[Array, " E"]  # 1 for the edges above its leaves, else 0
    value: Array


def best_pruning_in_hindsight(parents: Int[Array, " E"], losses: Float[Array, " E"]) -> Pruning:
    """The cheapest pruning, the smaller one where two cost the same.

    parents: integers as above; every path must end at an edge without children.
    losses: the total loss of every edge, as from `edge_losses`.

    >>> import jax.numpy as jnp
    >>> best = best_pruning_in_hindsight(jnp.array([-1, -1, 0, 0]), jnp.array([3.0, 1.0, 1.0, 1.5]))
    >>> best.leaves.tolist(), float(best.value)
    ([0.0, 1.0, 1.0, 1.0], 3.5)
    """
    above = np.asarray(parents)
    if above.ndim != 1 or np.any(above >= np.arange(above.size)) or np.any(above < -1):
        raise ValueError(
            "best_pruning_in_hindsight: `parents` must hold -1 or a smaller number for every edge, "
            f"got {above.tolist()}."
        )
    count = above.size
    inner = jnp.asarray(np.isin(np.arange(count), above))
    parent = jnp.asarray(np.where(above < 0, count, above))  # the root comes last

    def up(below, e):
        cut = ~inner[e] | (losses[e] <= below[e])
        return below.at[parent[e]].add(jnp.where(cut, losses[e], below[e])), cut

    def down(split, e):
        reached = split[parent[e]]
        return split.at[e].set(reached & ~cuts[e]), reached & cuts[e]

    below = jnp.zeros(count + 1, losses.dtype)
    below, cuts = lax.scan(up, below, jnp.arange(count), reverse=True)
    split = jnp.zeros(count + 1, bool).at[count].set(True)
    _, leaves = lax.scan(down, split, jnp.arange(count))
    return Pruning(leaves.astype(losses.dtype), below[count])


def edge_losses(loss: Loss, rounds: Rounds, edges: int) -> Float[Array, " E"]:
    """The total loss of the advice below every edge, over the rounds that take it."""
    follow = lambda one: path_losses(lambda advice: loss(advice, one.outcome), one.context)
    along = jax.vmap(follow)(rounds)
    along = along * weights(rounds, along.dtype)[:, None]
    at = _at(rounds.context)
    return jnp.zeros(edges, along.dtype).at[at].add(along, mode="drop")


def pruning_bound(learner: Learner, run: Run, leaves: Float[Array, " E"]) -> Certificate:
    r"""The regret of `best_pruning(ada_normal_hedge())` with equal priors to a pruning.

    With $C_e$ the sum of the sizes of the regrets to edge $e$ so far, $m$ the edges met so far that
    end in a leaf of the pruning $P$, and $\hat\ell_s$ the mean loss on the path,

    $$\sum_{s \le t} f_s(\hat y_s) - f_s(P(x_s)) \le \sqrt{3 m \Big( \sum_{s \le t} |\hat\ell_s -
      f_s(P(x_s))| \Big) \ln\Big( 1 + \frac{3}{2m} \sum_{s \le t} \sum_e
      \frac{|r_{s,e}|}{1 + C_{s-1,e}} \Big)}.$$

    Printed with $\ln\frac Nm + \ln B + 1$ for the logarithm, $N$ the edges met so far and
    $B = 1 + \frac{3}{2N} \sum_e 1 + \ln(1 + C_e)$.

    run: played with `record=olx.record.trace`, rounds of weight 0 or 1, losses in [0, 1].
    leaves: as in `Pruning`.
    """
    game = played("pruning_bound", BEST_PRUNING, learner, run, leaves)
    trace = game.trace
    prior = jnp.asarray(trace.state.prior)[0]
    leaves = check.comparator("pruning_bound", game.u, prior)
    path, value = trace.feedback.context, trace.feedback.value
    along = jax.vmap(lambda seen: path_losses(seen.loss, seen.context))(trace.feedback)
    p = jax.vmap(lambda state, path: path_weights(learner.hparams, state, path))(trace.state, path)
    mean = jnp.sum(p * along, axis=1, keepdims=True)
    on_edges = jax.vmap(lambda at, values: jnp.zeros_like(leaves).at[at].set(values, mode="drop"))
    at = _at(path)
    moves = on_edges(at, jnp.abs(mean - along))
    size = jnp.cumsum(moves, axis=0)
    met = lax.cummax(on_edges(at, jnp.ones_like(along)))
    count, used = jnp.sum(met, axis=1), met @ leaves
    excess = jnp.cumsum(jnp.sum(moves / (1 + size - moves), axis=1))
    b = 1 + 1.5 * jnp.sum(met * (1 + jnp.log1p(size)), axis=1) / count
    root = lambda logarithm: jnp.sqrt(3 * used * (size @ leaves) * logarithm)
    right = root(jnp.log1p(1.5 * excess / used))
    printed = root(jnp.log(count / used) + jnp.log(b) + 1)
    ends = jnp.where(path.edges >= 0, leaves.at[path.edges].get(mode="clip"), 0.0)
    other = jnp.sum(ends * along, axis=1)
    scale = jnp.cumsum(jnp.abs(value) + jnp.abs(other)) + right
    left, name = jnp.cumsum(value - other), "Luo 2016, section 2.3.4"
    proof = Certificate(left, right, scale, printed, name)
    equal = jnp.max(prior) - jnp.min(prior) <= 64 * jnp.finfo(prior.dtype).eps
    return judged(game, unit_weights(game, proof.given("priors must be equal", equal)))


def _at(path: Path) -> Int[Array, "T L"]:
    """Where to write what belongs to the edges; nowhere past the leaf."""
    return jnp.where(path.edges >= 0, path.edges, jnp.iinfo(path.edges.dtype).max)
