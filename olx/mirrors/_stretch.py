"""A mirror map on a larger or smaller copy of its domain."""

import dataclasses
from collections.abc import Callable

import jax
from jax.tree_util import Partial
from jaxtyping import Array, PyTree
from optax import tree

from olx.core import Scalar
from olx.facts import Lump
from olx.mirrors.base import MirrorMap


def stretched(mirror: MirrorMap, total: Scalar) -> MirrorMap:
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
        retraction=Partial(_between, total, mirror.retraction),
        centering=mirror.centering,
        lump=None if mirror.lump is None else _stretched_lump(mirror.lump, total),
        offset=mirror.offset,
    )


def _stretched_lump(lump: Lump, total: Scalar) -> Lump:
    term, log_term = (Partial(_grown, total, f) for f in (lump.term, lump.log_term))
    entry = Partial(_divided, total, lump.entry)
    return dataclasses.replace(lump, term=term, log_term=log_term, entry=entry)


def _divided(total: Scalar, function: Callable, log: Array) -> PyTree:
    return function(log) / total


def _shrunk(total: Scalar, function: Callable, w: PyTree) -> PyTree:
    return function(jax.tree.map(lambda leaf: leaf / total, w))


def _grown(total: Scalar, function: Callable, theta: PyTree, *others: Array) -> PyTree:
    return function(tree.scale(total, theta), *others)


def _between(total: Scalar, function: Callable, theta: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf: leaf / total, function(tree.scale(total, theta)))
