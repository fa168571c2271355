"""Paths through a tree: the edges that an instance takes, and the advice of their nodes."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree


class Path(NamedTuple):
    """A context: the path of an instance, padded to the depth of the tree."""

    edges: Int[Array, " L"]  # from the root down; -1 past the leaf
    advice: PyTree  # of the nodes below the edges, leading axis L; any value past the leaf


def path_losses(loss: Callable[[PyTree], Array], path: Path) -> Float[Array, " L"]:
    """The loss of every piece of advice on the path, 0 past its end."""
    return jnp.where(awake(path), jax.vmap(loss)(filled(path)), 0.0)


def along(path: Path, state: PyTree) -> PyTree:
    read = lambda whole: whole.at[path.edges].get(mode="clip") if whole.ndim else whole
    return jax.tree.map(read, state)


def places(path: Path) -> Int[Array, " L"]:
    """The indices at which to write values of the edges of a path; out of range past the leaf."""
    return jnp.where(awake(path), path.edges, jnp.iinfo(path.edges.dtype).max)


def on_edges(path: Path, values: Float[Array, " L"], edges: int) -> Float[Array, " E"]:
    """The sum of values on the edges of a path, or of several paths, per edge of the tree."""
    return jnp.zeros(edges, values.dtype).at[places(path)].add(values, mode="drop")


def awake(path: Path) -> Bool[Array, " L"]:
    return path.edges >= 0


def filled(path: Path) -> PyTree:
    """The advice of the nodes on the path; places after the leaf repeat that of the first node."""
    met = awake(path)
    fill = lambda leaf: jnp.where(met.reshape(-1, *(1,) * (leaf.ndim - 1)), leaf, leaf[0])
    return jax.tree.map(fill, path.advice)
