r"""Sets of streams: what every round of a game may hold.

Contexts $x_t \in X$ and outcomes $y_t \in Y$, for convex sets of `olx.convex.sets`, or the labels
$\pm 1$. A projection of optax gives a set, too:
`sets.projected(optax.projections.projection_hypercube)`. `worst_case` searches such a set.
"""

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, PyTree
from optax import tree

from olx import _check as check
from olx._pytree import as_tree, pytree, static
from olx._refusal import RefusedValue, public
from olx.convex.sets import ConvexSet
from olx.core import Loss
from olx.losses.points import linear_loss


@pytree
class Part:
    """What one part of a round may be.

    project: any value -> the nearest legal value.
    like: a tree of the shape of a value; None if it is shaped like the decision.
    bounded: whether the set is known to be bounded; else a search looks at its projection.
    """

    project: Partial
    like: PyTree = None
    bounded: bool = static(default=False)

    def shape(self, params: PyTree) -> PyTree:
        """Zeros of the shape of a value, in the dtype of the decision."""
        kind = jnp.result_type(*jax.tree.leaves(params))
        zeros = lambda leaf: jnp.zeros(jnp.shape(leaf), kind)
        return jax.tree.map(zeros, params if self.like is None else self.like)


@pytree
class StreamSet:
    """All streams whose rounds are legal, and the loss of a round; see `linear_losses`."""

    loss: Loss  # (action, outcome) -> scalar, a pytree
    outcome: Part
    context: Part | None = None  # None: rounds have no context


@public
def linear_losses(gradients: ConvexSet) -> StreamSet:
    r"""Linear losses $\langle w, g_t \rangle$ with $g_t$ in a set; $g_t$ is shaped like a decision.

    gradients: `sets.ball(G)` for Lipschitz losses, `sets.box(0.0, 1.0)` for losses of experts. A
        learner that uses gradients alone has its worst regret over convex losses on linear ones.

    >>> from olx.convex import sets
    >>> linear_losses(sets.ball(1.0)).context is None
    True
    """
    return StreamSet(linear_loss, _part("gradients", gradients))


@public
def score_losses(loss: Loss, rows: ConvexSet, outcomes: ConvexSet) -> StreamSet:
    r"""A loss of a score and a number $y_t$, with rows $x_t$ that are shaped like the decision.

    rows: `sets.ball(X)` for rows of at most that length.
    outcomes: `sets.box(-Y, Y)` for targets of at most that size.
    """
    check.takes("loss", loss, "score", "outcome")
    outcome = _part("outcomes", outcomes, jnp.zeros(()))
    return StreamSet(as_tree(loss), outcome, _part("rows", rows))


@public
def label_losses(loss: Loss, rows: ConvexSet) -> StreamSet:
    r"""A loss of a score and a label $\pm 1$, with rows that are shaped like the decision.

    The labels of a search are drawn at its start, and it moves the rows alone.
    """
    check.takes("loss", loss, "score", "label")
    labels = Part(Partial(_sign), jnp.zeros(()), bounded=True)
    return StreamSet(as_tree(loss), labels, _part("rows", rows))


def draw_values(part: Part, like: PyTree, count: int, key: Array) -> tuple[PyTree, Array]:
    """Random legal values, each between two of the boundary, and the length of the set.

    The length is that of the longest of these points, seen from two distances. The second is much
    larger than the first for a set without a bound.
    """
    first, second, share = jax.random.split(key, 3)
    ends = [_normal(one, like, count) for one in (first, second)]
    project = jax.vmap(part.project)
    near, other = [project(tree.scale(_FAR, end)) for end in ends]
    mix = lambda share, a, b: jax.tree.map(lambda a, b: a + share * (b - a), a, b)
    shares = jax.random.uniform(share, (count,), jax.tree.leaves(like)[0].dtype)
    far = project(tree.scale(_FARTHER, ends[0]))
    lengths = [jnp.max(jax.vmap(tree.norm)(points)) for points in (near, far)]
    return project(jax.vmap(mix)(shares, near, other)), jnp.stack(lengths)


def refuse_unbounded(name: str, part: Part, lengths: Array) -> None:
    """Refuse a set that has no bound, by the lengths that `draw_values` gave."""
    if not part.bounded and bool(lengths[1] > 10 * lengths[0]):
        raise RefusedValue(
            f"`{name}` must be bounded, got a set that holds points of length "
            f"{float(lengths[1]):.3g}; without a bound the regret has none. Give a bounded set, as "
            "`sets.ball(1.0)`."
        )


_FAR, _FARTHER = 1e4, 1e6  # two distances from which a set is looked at


def _part(name: str, domain: ConvexSet, like: PyTree = None) -> Part:
    check.instance(name, domain, ConvexSet)
    return Part(domain.project, like, domain.bounded)


def _normal(key: Array, like: PyTree, count: int) -> PyTree:
    leaves, structure = jax.tree.flatten(like)
    keys = jax.random.split(key, len(leaves))
    draw = lambda key, leaf: jax.random.normal(key, (count, *leaf.shape), leaf.dtype)
    return structure.unflatten([draw(*pair) for pair in zip(keys, leaves, strict=True)])


def _sign(y: Array) -> Array:
    return jnp.where(y >= 0, jnp.ones_like(y), -jnp.ones_like(y))
