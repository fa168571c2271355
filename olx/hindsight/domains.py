r"""Where a comparator may lie: a projection, and the farthest point in a direction.

A closed convex set $S$ is known by its Euclidean projection and by the maximizer of
$\langle g, v \rangle$ over $v \in S$; the maximum is the support function $\sigma_S(g)$.

Rockafellar, Convex Analysis, 1970, section 13.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, PyTree
from optax import projections, tree

from olx import _check as check
from olx import _safe as safe
from olx._pytree import pytree, static
from olx.core import Scalar


@pytree
class Domain:
    """A closed convex set of decisions.

    project: decision -> the nearest point of the set.
    farthest: direction -> a point of the set that goes farthest in it.
    """

    project: Partial
    farthest: Partial
    bounded: bool = static(default=True)

    def support(self, g: PyTree) -> Array:
        r"""$\sigma_S(g) = \max_{v \in S} \langle g, v \rangle$."""
        return jnp.asarray(tree.vdot(g, self.farthest(g)))


def everywhere() -> Domain:
    """No constraint: the support function is infinite except at 0."""
    return Domain(Partial(_same), Partial(_horizon), bounded=False)


def ball(radius: Scalar) -> Domain:
    """The Euclidean ball around 0.

    >>> import jax.numpy as jnp
    >>> float(ball(2.0).support(jnp.array([3.0, 4.0])))
    10.0
    """
    radius = check.positive("ball", "radius", radius)
    return Domain(Partial(_ball_project, radius), Partial(_ball_farthest, radius))


def simplex() -> Domain:
    """Non-negative coordinates that add up to 1, over all leaves together."""
    return Domain(Partial(_simplex_project), Partial(_simplex_farthest))


def box(low: PyTree, high: PyTree) -> Domain:
    """Each coordinate between two finite numbers.

    low, high: shaped like a decision, or one number for all coordinates.
    """
    if any(jax.tree.leaves(jax.tree.map(_certainly_above, low, high))):
        raise ValueError(f"box: `low` must not exceed `high`, got {low} and {high}.")
    return Domain(Partial(_box_project, low, high), Partial(_box_farthest, low, high))


def _same(w):
    return w


def _horizon(g):
    return jax.tree.map(lambda leaf: jnp.where(leaf == 0, 0.0, jnp.sign(leaf) * jnp.inf), g)


def _ball_project(radius, w):
    return tree.scale(radius / jnp.maximum(_norm(w), radius), w)


def _ball_farthest(radius, g):
    return tree.scale(safe.divide(radius, _norm(g)), g)


def _norm(w):
    # scaled by the largest entry, so that squares neither overflow nor vanish
    largest = tree.norm(w, ord=jnp.inf)
    unit = safe.or_one(largest)
    return unit * tree.norm(tree.scale(1 / unit, w)) * jnp.where(largest > 0, 1.0, 0.0)


def _simplex_project(w):
    flat, unravel = ravel_pytree(w)
    with jax.numpy_dtype_promotion("standard"):  # optax divides by integer ranks
        return unravel(projections.projection_simplex(flat))


def _simplex_farthest(g):
    flat, unravel = ravel_pytree(g)
    return unravel(jax.nn.one_hot(jnp.argmax(flat), flat.size, dtype=flat.dtype))


def _box_project(low, high, w):
    clip = lambda leaf, a, b: jnp.clip(leaf, jnp.asarray(a, leaf.dtype), jnp.asarray(b, leaf.dtype))
    return jax.tree.map(clip, w, *_like(w, low, high))


def _box_farthest(low, high, g):
    pick = lambda leaf, a, b: jnp.where(
        leaf > 0, jnp.asarray(b, leaf.dtype), jnp.asarray(a, leaf.dtype)
    )
    return jax.tree.map(pick, g, *_like(g, low, high))


def _like(w, *bounds):
    spread = lambda bound: (
        jax.tree.map(lambda _: bound, w)
        if jax.tree_util.all_leaves([bound]) and not jax.tree_util.all_leaves([w])
        else bound
    )
    return [spread(bound) for bound in bounds]


def _certainly_above(low, high):
    if isinstance(low, Tracer) or isinstance(high, Tracer):
        return False
    return not np.all(np.asarray(low) <= np.asarray(high))
