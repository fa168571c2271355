r"""One potential per block: a decision made of parts, each with its own mirror map.

$$\psi(w) = \sum_j \psi_j(w_j), \qquad \psi^*(\theta) = \sum_j \psi_j^*(\theta_j), \qquad
  \|w\|^2 = \sum_j \beta_j \|w_j\|_j^2, \qquad
  \|\theta\|_*^2 = \sum_j \|\theta_j\|_{j,*}^2 / \beta_j.$$

If every $\psi_j$ is $\beta_j$-strongly convex in $\|\cdot\|_j$, $\psi$ is 1-strongly convex in
$\|\cdot\|$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, lemma 18.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import RefusedType, public
from olx.convex.norms import Norm
from olx.mirrors.base import MirrorMap


@public
def leafwise(maps: PyTree) -> MirrorMap:
    """One mirror map per part of a decision.

    maps: a tree of mirror maps, at most as deep as a decision; each map gets its whole subtree.

    >>> import jax.numpy as jnp
    >>> from olx.mirrors.entropy import negative_entropy
    >>> from olx.mirrors.euclidean import euclidean
    >>> mirror = leafwise({"w": euclidean(), "p": negative_entropy()})
    >>> decision = mirror.to_primal({"w": jnp.array([3.0]), "p": jnp.zeros(2)})
    >>> decision["w"].tolist(), decision["p"].round(6).tolist()
    ([3.0], [0.5, 0.5])
    """
    parts = jax.tree.leaves(maps, is_leaf=_is(MirrorMap))
    if not parts:
        raise RefusedType("`maps` holds no mirror map; give a tree of them.")
    for part in parts:
        check.instance("maps", part, MirrorMap)
    pick = lambda choose: jax.tree.map(choose, maps, is_leaf=_is(MirrorMap))
    norm = None
    if all(part.norm is not None for part in parts):
        moduli = [part.modulus for part in parts]
        norm = Norm(
            Partial(_norm, moduli, pick(lambda part: part.norm.primal)),
            Partial(_dual_norm, moduli, pick(lambda part: part.norm.dual)),
        )
    contains = None
    if any(part.contains is not None for part in parts):
        contains = Partial(_all, pick(lambda part: part.contains or Partial(_anything)))
    return MirrorMap(
        Partial(_sum, pick(lambda part: part.potential)),
        Partial(_sum, pick(lambda part: part.conjugate)),
        norm=norm,
        modulus=None if norm is None else 1.0,
        contains=contains,
        retraction=Partial(_tree, pick(lambda part: Partial(_retract, part))),
        centering=Partial(_tree, pick(lambda part: Partial(_center, part))),
        separable=all(part.separable for part in parts),
    )


@public
def each_leaf(mirror: MirrorMap) -> MirrorMap:
    """The same mirror map on every leaf of a decision, for example one simplex per leaf."""
    check.instance("mirror", mirror, MirrorMap)
    return _repeated(mirror, Partial(_over_leaves))


@public
def rowwise(mirror: MirrorMap) -> MirrorMap:
    """The same mirror map on every row (leading axis of the leaves), such as one simplex per row.

    >>> import jax.numpy as jnp
    >>> from olx.mirrors.entropy import negative_entropy
    >>> rowwise(negative_entropy()).to_primal(jnp.zeros((2, 4))).sum(axis=1).tolist()
    [1.0, 1.0]
    """
    check.instance("mirror", mirror, MirrorMap)
    return _repeated(mirror, Partial(_over_rows))


def _repeated(mirror: MirrorMap, over: Partial) -> MirrorMap:
    norm = mirror.norm
    if norm is not None:
        norm = Norm(Partial(_root, over, norm.primal), Partial(_root, over, norm.dual))
    return MirrorMap(
        Partial(_total, over, mirror.potential),
        Partial(_total, over, mirror.conjugate),
        norm=norm,
        modulus=mirror.modulus,
        contains=None if mirror.contains is None else Partial(_everywhere, over, mirror.contains),
        retraction=Partial(over.func, Partial(_retract, mirror)),
        centering=None if mirror.centering is None else Partial(over.func, mirror.centering),
        separable=mirror.separable,
    )


def _over_leaves(function: Callable, w: PyTree) -> PyTree:
    return jax.tree.map(function, w)


def _over_rows(function: Callable, w: PyTree) -> PyTree:
    return jax.vmap(function)(w)


def _total(over: Callable, function: Callable, w: PyTree) -> Array:
    return jnp.sum(_stacked(over(function, w)))


def _root(over: Callable, function: Callable, w: PyTree) -> Array:
    return _hypot(_stacked(over(function, w)))


def _everywhere(over: Callable, function: Callable, w: PyTree) -> Array:
    return jnp.all(_stacked(over(function, w)))


def _stacked(values: PyTree) -> Array:
    return jnp.stack(jax.tree.leaves(values))


def _retract(mirror: MirrorMap, theta: PyTree) -> PyTree:
    return mirror.retract(theta)


def _center(mirror: MirrorMap, theta: PyTree) -> PyTree:
    return mirror.center(theta)


def _sum(functions: PyTree, w: PyTree):
    return sum(_apply(functions, w))


def _tree(functions: PyTree, theta: PyTree) -> PyTree:
    structure = jax.tree.structure(functions, is_leaf=_is(Partial))
    return structure.unflatten(_apply(functions, theta))


def _norm(moduli: list, functions: PyTree, w: PyTree) -> Array:
    sizes = _apply(functions, w)
    return _hypot(jnp.stack([jnp.sqrt(m) * s for m, s in zip(moduli, sizes, strict=True)]))


def _dual_norm(moduli: list, functions: PyTree, theta: PyTree) -> Array:
    sizes = _apply(functions, theta)
    return _hypot(jnp.stack([s / jnp.sqrt(m) for m, s in zip(moduli, sizes, strict=True)]))


def _all(functions: PyTree, w: PyTree) -> Array:
    return jnp.all(jnp.stack(_apply(functions, w)))


def _anything(w: PyTree) -> Array:
    return jnp.array(True)


def _apply(functions: PyTree, w: PyTree) -> list:
    """Each function on its own part of `w`."""
    parts, structure = jax.tree.flatten(functions, is_leaf=_is(Partial))
    return [part(own) for part, own in zip(parts, structure.flatten_up_to(w), strict=True)]


def _hypot(sizes: Array) -> Array:
    """The root of the sum of squares, with gradient 0 at 0."""
    return safe.sqrt(jnp.sum(sizes**2))


def _is(kind: type):
    return lambda node: isinstance(node, kind)
