r"""Half the squared Euclidean norm, on the whole space or on a closed convex set.

$$\psi(w) = \tfrac12 \|w\|_2^2 \text{ on } S, \qquad
  \psi^*(\theta) = \tfrac12 \|\theta\|_2^2 - \tfrac12 \mathrm{dist}(\theta, S)^2.$$

The gradient of $\psi^*$ is the Euclidean projection on $S$, so mirror descent with it is lazily
projected gradient descent. $\psi$ is 1-strongly convex in $\|\cdot\|_2$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, examples 1 and 3.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import PyTree
from optax import projections, tree

from olx import _check as check
from olx._pytree import as_tree
from olx.convex import _domain, norms
from olx.core import Scalar
from olx.mirrors.base import MirrorMap, with_argmax


def euclidean() -> MirrorMap:
    """The whole space: decisions are their own duals."""
    return MirrorMap(
        Partial(_half),
        Partial(_half),
        norms.l2(),
        1.0,
        retraction=Partial(_domain.same),
        separable=True,
        identity=True,
    )


def euclidean_on(project: Callable[[PyTree], PyTree]) -> MirrorMap:
    """The set given by its Euclidean projection.

    project: takes any point to the nearest one of the set. A `Partial` whose leaves are its
        numbers makes those sweepable and differentiable.

    >>> import jax.numpy as jnp
    >>> halfspace = euclidean_on(lambda w: w - jnp.maximum(jnp.sum(w) - 1.0, 0.0) / w.size)
    >>> halfspace.to_primal(jnp.array([2.0, 1.0])).tolist()
    [1.0, 0.0]
    """
    check.function("euclidean_on", "project", project)
    return _on(as_tree(project))


def euclidean_ball(radius: Scalar) -> MirrorMap:
    """All decisions of norm at most `radius`."""
    return _on(Partial(_ball, check.positive("euclidean_ball", "radius", radius)))


def euclidean_box(low: PyTree, high: PyTree) -> MirrorMap:
    """Each coordinate between `low` and `high`: numbers, or trees shaped like a decision."""
    spread = jax.tree.map(lambda top, bottom: top - bottom, _like(high, low), _like(low, high))
    check.non_negative("euclidean_box", "high - low", spread, each=True)
    return _on(Partial(_box, low, high), separable=True)


def euclidean_simplex(total: Scalar = 1.0) -> MirrorMap:
    """Non-negative coordinates adding up to `total`."""
    project = Partial(_simplex, check.positive("euclidean_simplex", "total", total))
    return _on(project, centering=Partial(_domain.below_top))


def euclidean_l1_ball(radius: Scalar) -> MirrorMap:
    """All decisions whose absolute values add up to at most `radius`."""
    return _on(Partial(_l1_ball, check.positive("euclidean_l1_ball", "radius", radius)))


def _on(
    project: Partial, *, separable: bool = False, centering: Partial | None = None
) -> MirrorMap:
    return with_argmax(
        Partial(_half),
        project,
        norm=norms.l2(),
        modulus=1.0,
        contains=Partial(_stays, project),
        centering=centering,
        separable=separable,
    )


def _half(w):
    return tree.vdot(w, w) / 2


def _stays(project, w):
    flat, _ = ravel_pytree(w)
    moved, _ = ravel_pytree(tree.sub(project(w), w))
    return jnp.max(jnp.abs(moved)) <= _domain.rounding(flat) * (1 + jnp.max(jnp.abs(flat)))


def _ball(radius, w):
    return projections.projection_l2_ball(w, radius)


def _box(low, high, w):
    low, high = _like(low, w), _like(high, w)
    inside = projections.projection_box(w, low, high)
    return jax.tree.map(lambda a, b, w: jnp.where(a <= b, w, jnp.nan), low, high, inside)


def _simplex(total, w):
    """Sort, find how many coordinates stay positive, lower them all by the same amount."""
    flat, unravel = ravel_pytree(w)
    flat = flat - lax.stop_gradient(jnp.max(flat))  # moves no projection, saves digits
    ranked = jnp.sort(lax.stop_gradient(flat))[::-1]
    ranks = jnp.arange(1, flat.size + 1, dtype=flat.dtype)
    positive = ranked * ranks > jnp.cumsum(ranked) - lax.stop_gradient(total)
    kept = flat >= jnp.min(jnp.where(positive, ranked, 0.0))
    threshold = (jnp.sum(jnp.where(kept, flat, 0.0)) - total) / jnp.sum(kept, dtype=flat.dtype)
    return unravel(jnp.where(kept, jnp.maximum(flat - threshold, 0.0), 0.0))


def _l1_ball(radius, w):
    magnitudes = jax.tree.map(jnp.abs, w)
    inside = tree.norm(w, ord=1) <= radius
    shrunk = tree.mul(jax.tree.map(jnp.sign, w), _simplex(radius, magnitudes))
    return jax.tree.map(lambda own, less: jnp.where(inside, own, less), w, shrunk)


def _like(bound, w):
    """One number for every leaf, or a tree as it is."""
    if jax.tree_util.treedef_is_leaf(jax.tree.structure(bound)) and jnp.ndim(bound) == 0:
        return jax.tree.map(lambda _: bound, w)
    return bound
