r"""Combinators: scale, shift, stretch, precompose or add mirror maps.

$$(a f)^*(\theta) = a f^*(\theta / a), \qquad (f(\cdot - c))^*(\theta) = f^*(\theta) +
  \langle\theta, c\rangle, \qquad (f \circ A)^*(\theta) = f^*(A^{-\top} \theta).$$

Norm, modulus and domain are derived. The conjugate of a sum is computed numerically.

Rockafellar, Convex Analysis, 1970, sections 12 and 16.
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx._refusal import RefusedType, public
from olx.convex.norms import Norm
from olx.core import Scalar
from olx.facts import Aggregate
from olx.mirrors.base import MirrorMap, mirror_map


@public
def scale(mirror: MirrorMap, factor: Scalar) -> MirrorMap:
    """The potential times a positive `factor`."""
    check.instance("mirror", mirror, MirrorMap)
    factor = check.positive("factor", factor)
    return MirrorMap(
        Partial(_times, factor, mirror.potential),
        Partial(_perspective, factor, mirror.conjugate),
        norm=mirror.norm,
        modulus=_if(mirror.modulus, lambda modulus: factor * modulus),
        contains=mirror.contains,
        retraction=_if(
            mirror.retraction, lambda retract: Partial(_perspective_map, factor, retract)
        ),
        centering=mirror.centering,
        separable=mirror.separable,
        offset=_if(mirror.offset, lambda offset: Partial(_times, factor, offset)),
    )


@public
def shift(mirror: MirrorMap, center: PyTree) -> MirrorMap:
    """The potential and its domain translated by `center`: the potential of `w - center`.

    >>> import jax.numpy as jnp
    >>> from olx.convex import sets
    >>> from olx.mirrors.euclidean import euclidean
    >>> moved = shift(euclidean(sets.ball(1.0)), jnp.array([3.0, 0.0]))
    >>> moved.to_primal(jnp.zeros(2)).tolist()
    [3.0, 0.0]
    """
    check.instance("mirror", mirror, MirrorMap)
    center = check.finite("center", center, each=True)
    return MirrorMap(
        Partial(_moved, center, mirror.potential),
        Partial(_tilted, center, mirror.conjugate),
        norm=mirror.norm,
        modulus=mirror.modulus,
        contains=_if(mirror.contains, lambda contains: Partial(_moved, center, contains)),
        retraction=mirror.retraction,
        centering=mirror.centering,
        separable=mirror.separable,
    )


@public
def precompose(mirror: MirrorMap, matrix: Float[Array, "d d"]) -> MirrorMap:
    """The potential of `matrix @ w`, for a square invertible matrix.

    A decision that is not a vector is flattened first.

    >>> import jax.numpy as jnp
    >>> from olx.mirrors.euclidean import euclidean
    >>> ellipse = precompose(euclidean(), jnp.diag(jnp.array([1.0, 2.0])))
    >>> ellipse.to_primal(jnp.array([1.0, 1.0])).tolist()
    [1.0, 0.25]
    """
    check.instance("mirror", mirror, MirrorMap)
    check.array("matrix", matrix, 2)
    if jnp.ndim(matrix) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise RefusedType(f"`matrix` must be square, got shape {jnp.shape(matrix)}.")
    forth = lambda function: Partial(_after_matrix, matrix, function)
    back = lambda function: Partial(_after_inverse, matrix, function)
    return MirrorMap(
        forth(mirror.potential),
        back(mirror.conjugate),
        norm=_if(mirror.norm, lambda norm: Norm(forth(norm.primal), back(norm.dual))),
        modulus=mirror.modulus,
        contains=_if(mirror.contains, forth),
        retraction=_if(mirror.retraction, lambda retract: Partial(_between, matrix, retract)),
    )


@public
def add(
    mirror: MirrorMap,
    other: MirrorMap,
    *,
    start: Scalar | None = None,
    total: Scalar | None = None,
    separable: bool = False,
) -> MirrorMap:
    """The sum of two potentials; its conjugate is computed numerically.

    The search evaluates the potentials and does not know constraints that are only in the
    conjugates. So the sum is correct for potentials that are finite everywhere or rise steeply at
    the border of their domain (entropies, barriers), also with a fixed `total`. It is not correct
    for a Euclidean ball or a floor. The norm is that of `mirror`, or of `other` if `mirror` has
    none; if both have the same norm, the moduli are added.

    start, total: as in `mirror_map`; one is required if either potential has a domain.
    separable: promise that both potentials are sums over coordinates, on the set given by `total`;
        implied if both maps are separable.

    >>> import jax.numpy as jnp
    >>> from olx.mirrors.entropy import negative_entropy
    >>> from olx.mirrors.euclidean import euclidean
    >>> mirror = add(negative_entropy(), euclidean(), total=1.0)
    >>> mirror.to_primal(jnp.zeros(4)).round(6).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    check.instance("mirror", mirror, MirrorMap)
    check.instance("other", other, MirrorMap)
    check.flag("separable", separable)
    pair = (mirror, other)
    domains = [each.contains for each in pair if each.contains is not None]
    if domains and start is None and total is None:
        raise RefusedType("give `start` or `total`, since one of the potentials has a domain.")
    norm, modulus = _stronger(mirror, other)
    return mirror_map(
        Partial(_sum, [each.potential for each in pair]),
        norm=norm,
        modulus=modulus,
        contains=Partial(_every, domains) if domains else None,
        separable=separable or (mirror.separable and other.separable),
        start=0.0 if start is None else start,
        total=total,
    )


def stretch(mirror: MirrorMap, total: Scalar) -> MirrorMap:
    """The potential of `w / total`, for a map whose norm is the 1-norm."""
    assert mirror.modulus is not None  # true for both maps that are stretched
    assert mirror.contains is not None
    assert mirror.retraction is not None
    return MirrorMap(
        Partial(_shrunk, total, mirror.potential),
        Partial(_grown, total, mirror.conjugate),
        norm=mirror.norm,
        modulus=mirror.modulus / total**2,
        contains=Partial(_shrunk, total, mirror.contains),
        retraction=Partial(_between_copies, total, mirror.retraction),
        centering=mirror.centering,
        aggregate=None if mirror.aggregate is None else _stretched(mirror.aggregate, total),
        offset=mirror.offset,
    )


def _stronger(mirror: MirrorMap, other: MirrorMap) -> tuple[Norm | None, Scalar | None]:
    if mirror.norm is None or mirror.modulus is None:
        return other.norm, other.modulus
    same = jax.tree.structure(mirror.norm) == jax.tree.structure(other.norm)
    if same and not jax.tree.leaves(mirror.norm) and other.modulus is not None:
        return mirror.norm, mirror.modulus + other.modulus
    return mirror.norm, mirror.modulus


def _times(factor: Scalar, function: Callable, w: PyTree) -> Array:
    return factor * function(w)


def _perspective(factor: Scalar, function: Callable, theta: PyTree) -> Array:
    return factor * function(jax.tree.map(lambda leaf: leaf / factor, theta))


def _perspective_map(factor: Scalar, function: Callable, theta: PyTree) -> PyTree:
    return tree.scale(factor, function(jax.tree.map(lambda leaf: leaf / factor, theta)))


def _moved(center: PyTree, function: Callable, w: PyTree) -> PyTree:
    return function(tree.sub(w, center))


def _tilted(center: PyTree, function: Callable, theta: PyTree) -> PyTree:
    return function(theta) + tree.vdot(theta, center)


def _after_matrix(matrix: Array, function: Callable, w: PyTree) -> PyTree:
    flat, unravel = ravel_pytree(w)
    return function(unravel(matrix @ flat))


def _after_inverse(matrix: Array, function: Callable, theta: PyTree) -> PyTree:
    flat, unravel = ravel_pytree(theta)
    return function(unravel(jnp.linalg.solve(matrix.T, flat)))


def _between(matrix: Array, function: Callable, theta: PyTree) -> PyTree:
    inner, unravel = ravel_pytree(_after_inverse(matrix, function, theta))
    return unravel(matrix.T @ inner)


def _if(known: PyTree, make: Callable[[PyTree], PyTree]) -> PyTree:
    return None if known is None else make(known)


def _sum(functions: list[Partial], w: PyTree):
    return sum(function(w) for function in functions)


def _every(functions: list[Partial], w: PyTree) -> Array:
    return jnp.all(jnp.stack([function(w) for function in functions]))


def _stretched(aggregate: Aggregate, total: Scalar) -> Aggregate:
    term, log_term = (Partial(_grown, total, f) for f in (aggregate.term, aggregate.log_term))
    entry = Partial(_divided, total, aggregate.entry)
    return dataclasses.replace(aggregate, term=term, log_term=log_term, entry=entry)


def _divided(total: Scalar, function: Callable, log: Array) -> PyTree:
    return function(log) / total


def _shrunk(total: Scalar, function: Callable, w: PyTree) -> PyTree:
    return function(jax.tree.map(lambda leaf: leaf / total, w))


def _grown(total: Scalar, function: Callable, theta: PyTree, *others: Array) -> PyTree:
    return function(tree.scale(total, theta), *others)


def _between_copies(total: Scalar, function: Callable, theta: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf: leaf / total, function(tree.scale(total, theta)))
