r"""Closed convex sets: projection, membership, and the farthest point in a direction.

A closed convex set $S$ is given by its Euclidean projection and, if known, by a maximizer of
$\langle g, v\rangle$ over $v \in S$. The maximum is the support function $\sigma_S(g)$. All leaves
of a decision together are one long vector.

Rockafellar, Convex Analysis, 1970, section 13.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx._call import Call
from olx._pytree import as_tree, like, pytree, static
from olx._refusal import RefusedType, RefusedValue, own_name, public
from olx.convex import _domain, polytopes
from olx.convex.projections import like_flat, low_end
from olx.convex.projections import simplex as simplex_projection
from olx.convex.projections import slab as slab_projection
from olx.core import Scalar


@pytree
class ConvexSet:
    """A closed convex set of decisions.

    project: decision -> the nearest point of the set.
    farthest: direction g -> a point of the set with the largest <g, v>; None if not known.
    bounded: whether the support function is finite everywhere.
    separable: whether the set is a product of intervals, one per coordinate.
    fixed_sum: whether the coordinates of every point have the same sum.
    """

    project: Partial
    farthest: Partial | None = None
    bounded: bool = static(default=False)
    separable: bool = static(default=False)
    fixed_sum: bool = static(default=False)
    name: Call = static(kw_only=True, default=Call())  # the call that makes it

    def contains(self, w: PyTree) -> Array:
        """Whether `w` lies in the set: the projection does not move it, up to rounding."""
        return _domain.stays(self.project, w)

    @own_name("support")
    def support(self, g: PyTree) -> Array:
        r"""$\sigma_S(g) = \max_{v \in S} \langle g, v \rangle$."""
        if self.farthest is None:
            raise RefusedType(
                "this set is given by its projection alone; give its farthest point too: "
                "`sets.projected(project, farthest)`."
            )
        return jnp.asarray(tree.vdot(g, self.farthest(g)))


@public
def everywhere() -> ConvexSet:
    """The whole space; the support function is infinite except at 0."""
    farthest = Partial(_box_farthest, -jnp.inf, jnp.inf)
    return ConvexSet(Partial(_domain.same), farthest, separable=True)


@public
def projected(
    project: Callable[[PyTree], PyTree], farthest: Callable[[PyTree], PyTree] | None = None
) -> ConvexSet:
    """A set of your own, given by its Euclidean projection.

    project: maps any point to the nearest point of the set. In a `Partial`, numbers that are leaves
        can be swept and differentiated.
    farthest: maps a direction g to a point of the set with the largest <g, v>; for bounded sets.

    >>> import jax.numpy as jnp
    >>> halfspace = projected(lambda w: w - jnp.maximum(jnp.sum(w) - 1.0, 0.0) / w.size)
    >>> halfspace.project(jnp.array([2.0, 1.0])).tolist()
    [1.0, 0.0]
    """
    check.takes("project", project, "w")
    if farthest is None:
        return ConvexSet(as_tree(project))
    check.takes("farthest", farthest, "g")
    return ConvexSet(as_tree(project), as_tree(farthest), bounded=True)


@public
def ball(radius: Scalar) -> ConvexSet:
    """The Euclidean ball around 0.

    >>> import jax.numpy as jnp
    >>> float(ball(2.0).support(jnp.array([3.0, 4.0])))
    10.0
    """
    radius = check.positive("radius", radius)
    return ConvexSet(Partial(_ball, radius), Partial(_ball_farthest, radius), bounded=True)


@public
def l1_ball(radius: Scalar) -> ConvexSet:
    """All decisions whose absolute values sum to at most `radius`."""
    radius = check.positive("radius", radius)
    return ConvexSet(Partial(_l1_ball, radius), Partial(_l1_farthest, radius), bounded=True)


@public
def simplex(total: Scalar = 1.0) -> ConvexSet:
    """Non-negative coordinates that sum to `total`."""
    total = check.positive("total", total)
    farthest = Partial(_simplex_farthest, total)
    return ConvexSet(Partial(_simplex, total), farthest, bounded=True, fixed_sum=True)


@public
def box(low: PyTree, high: PyTree) -> ConvexSet:
    """Each coordinate between `low` and `high`: numbers, or trees shaped like a decision.

    An end may be infinite: `box(0.0, jnp.inf)` is the non-negative orthant.
    """
    low = check.between("low", low, -jnp.inf, jnp.inf, each=True)
    high = check.above("high", high, -jnp.inf, jnp.inf, each=True)
    low, high = like(low, high), like(high, low)
    check.same_structure("`low`", low, "`high`", high)
    low = jax.tree.map(low_end, low, high)
    ends = jax.tree.leaves((low, high))
    bounded = all(isinstance(end, Tracer) or bool(np.all(np.isfinite(end))) for end in ends)
    farthest = Partial(_box_farthest, low, high)
    return ConvexSet(Partial(_box, low, high), farthest, bounded, separable=True)


@public
def halfspace(normal: PyTree, most: Scalar) -> ConvexSet:
    r"""All decisions with $\langle a, w\rangle \le$ `most`, $a$ the `normal`.

    normal: shaped like a decision; not 0.

    >>> import jax.numpy as jnp
    >>> halfspace(jnp.array([1.0, 1.0]), 1.0).project(jnp.array([2.0, 1.0])).tolist()
    [1.0, 0.0]
    """
    return _slab_set(normal, -jnp.inf, check.finite("most", most))


@public
def hyperplane(normal: PyTree, equal: Scalar) -> ConvexSet:
    r"""All decisions with $\langle a, w\rangle$ = `equal`, $a$ the `normal`, which is not 0."""
    equal = check.finite("equal", equal)
    return _slab_set(normal, equal, equal)


@public
def affine(matrix: Float[Array, "k d"], equal: Float[Array, " k"]) -> ConvexSet:
    """All decisions with `matrix` w = `equal`; all numbers of a decision are one vector."""
    matrix, equal = (
        check.finite("matrix", matrix, each=True),
        check.finite("equal", equal, each=True),
    )
    return ConvexSet(Partial(_affine, matrix, equal))


@public
def box_section(low: PyTree, high: PyTree, normal: PyTree, equal: Scalar) -> ConvexSet:
    r"""All decisions of a box with $\langle a, w\rangle$ = `equal`, $a$ the `normal`.

    low, high: as in `box`.
    normal: one number, or shaped like a decision, of any sign.
    """
    low = check.between("low", low, -jnp.inf, jnp.inf, each=True)
    high = check.above("high", high, -jnp.inf, jnp.inf, each=True)
    normal, equal = check.finite("normal", normal, each=True), check.finite("equal", equal)
    return ConvexSet(Partial(_box_section, low, high, normal, equal))


@public
def polyhedron(
    matrix: Float[Array, "m d"],
    most: Float[Array, " m"],
    equal_matrix: Float[Array, "k d"] | None = None,
    equal: Float[Array, " k"] | None = None,
) -> ConvexSet:
    """All decisions with `matrix` w <= `most` and `equal_matrix` w = `equal`.

    All numbers of a decision are one vector. A projection takes some products with a matrix, and
    one factorization of it, per row that is active.
    """
    if (equal_matrix is None) != (equal is None):
        raise RefusedType("`equal_matrix` and `equal` belong together; give both, or none.")
    given = {"matrix": matrix, "most": most, "equal_matrix": equal_matrix, "equal": equal}
    for name, value in given.items():
        if value is not None:
            check.finite(name, value, each=True)
    return ConvexSet(Partial(_polyhedron, *given.values()))


@public
def transport(rows: Float[Array, " n"], columns: Float[Array, " m"]) -> ConvexSet:
    """The non-negative matrices whose rows and columns have given sums, of the same total."""
    rows = check.non_negative("rows", rows, each=True)
    columns = check.non_negative("columns", columns, each=True)
    return ConvexSet(Partial(_transport, rows, columns))


@public
def birkhoff() -> ConvexSet:
    """The square non-negative matrices whose rows and columns sum to 1.

    >>> import jax.numpy as jnp
    >>> birkhoff().project(jnp.array([[2.0, 0.0], [0.5, 0.5]])).round(4).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return ConvexSet(Partial(_birkhoff))


def _ball(radius: Scalar, w: PyTree) -> PyTree:
    own, factor, norm = _scaled(w)
    shrink = lambda leaf, own: jnp.where(norm <= radius * factor, leaf, radius / norm * own)
    return jax.tree.map(shrink, w, own)


def _ball_farthest(radius: Scalar, g: PyTree) -> PyTree:
    own, _, norm = _scaled(g)
    return tree.scale(radius / norm, own)


def _scaled(w: PyTree) -> tuple[PyTree, Array, Array]:
    """`w` times a power of 2 that takes its largest entry to [1, 2), that power, and the norm.

    The product is exact, and its squares neither overflow nor underflow. A quotient would not do:
    the compiler turns `(w / a) / b` into `w / (a * b)`, and `a * b` may underflow.
    """
    largest = lax.stop_gradient(tree.norm(w, ord=jnp.inf))
    power = jnp.ldexp(jnp.ones_like(largest), 1 - jnp.frexp(largest)[1])
    large = float(jnp.finfo(largest.dtype).tiny) ** -0.5  # its square is finite
    factor = jnp.where(largest > 0, power, large)
    own = jax.tree.map(lambda leaf: leaf * factor, w)
    square = jnp.maximum(tree.norm(own, squared=True), 1.0)  # the norm is below 1 only if w = 0
    return own, factor, jnp.sqrt(square)


def _l1_ball(radius: Scalar, w: PyTree) -> PyTree:
    magnitudes = jax.tree.map(jnp.abs, w)
    inside = tree.norm(w, ord=1) <= radius
    shrunk = tree.mul(jax.tree.map(jnp.sign, w), simplex_projection(magnitudes, radius))
    return jax.tree.map(lambda own, less: jnp.where(inside, own, less), w, shrunk)


def _l1_farthest(radius: Scalar, g: PyTree) -> PyTree:
    flat, unravel = ravel_pytree(g)
    best = jax.nn.one_hot(jnp.argmax(jnp.abs(flat)), flat.size, dtype=flat.dtype)
    return unravel(radius * jnp.sign(flat) * best)


def _simplex(total: Scalar, w: PyTree) -> PyTree:
    return simplex_projection(w, total)


def _simplex_farthest(total: Scalar, g: PyTree) -> PyTree:
    flat, unravel = ravel_pytree(g)
    return unravel(total * jax.nn.one_hot(jnp.argmax(flat), flat.size, dtype=flat.dtype))


def _box(low: PyTree, high: PyTree, w: PyTree) -> PyTree:
    def clip(w: Array, low: Array, high: Array) -> Array:
        low, high = (jnp.asarray(end, jnp.result_type(w)) for end in (low, high))
        inside = jnp.where(w > high, high, jnp.where(w < low, low, w))
        return jnp.where(low <= high, inside, jnp.nan)

    return jax.tree.map(clip, w, like(low, w), like(high, w))


def _box_farthest(low: PyTree, high: PyTree, g: PyTree) -> PyTree:
    def pick(g: Array, low: Array, high: Array, nearest: Array) -> Array:
        low, high = (jnp.asarray(end, jnp.result_type(g)) for end in (low, high))
        return jnp.where(g > 0, high, jnp.where(g < 0, low, nearest))

    nearest = _box(low, high, tree.zeros_like(g))  # used where g is 0: always finite
    return jax.tree.map(pick, g, like(low, g), like(high, g), nearest)


def _slab_set(normal: PyTree, low: Scalar, high: Scalar) -> ConvexSet:
    normal = check.finite("normal", normal, each=True)
    leaves = jax.tree.leaves(normal)
    if not any(isinstance(leaf, Tracer) or np.any(np.asarray(leaf) != 0) for leaf in leaves):
        raise RefusedValue(f"`normal` must not be 0, got {check.quote(normal)}.")
    return ConvexSet(Partial(_slab, normal, low, high))


def _slab(normal: PyTree, low: Scalar, high: Scalar, w: PyTree) -> PyTree:
    flat, unravel = ravel_pytree(w)
    return unravel(slab_projection(flat, like_flat("normal", normal, flat), low, high))


def _affine(matrix: Array, equal: Array, w: PyTree) -> PyTree:
    return polytopes.affine(w, matrix, equal)


def _box_section(low: PyTree, high: PyTree, normal: PyTree, equal: Scalar, w: PyTree) -> PyTree:
    return polytopes.box_section(w, low, high, normal, equal)


def _polyhedron(
    matrix: Array, most: Array, equal_matrix: Array | None, equal: Array | None, w: PyTree
) -> PyTree:
    return polytopes.polyhedron(w, matrix, most, equal_matrix, equal)


def _transport(rows: Array, columns: Array, w: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf: polytopes.transport(leaf, rows, columns), w)


def _birkhoff(w: PyTree) -> PyTree:
    ones = lambda leaf, axis: jnp.ones(jnp.shape(leaf)[axis:][:1], jnp.result_type(leaf))
    return jax.tree.map(lambda leaf: polytopes.transport(leaf, ones(leaf, 0), ones(leaf, 1)), w)
