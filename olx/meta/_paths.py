"""What theorems about sequences of comparators share: copies of gradient descent in a bounded set.

The points of all copies are one tree with a first axis of copies.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx.certificate import DOMAIN, Certificate
from olx.core import Feedback

NEAR = "points of `domain` must be at most `diameter` apart"


class Path(NamedTuple):
    """The regret to a sequence of points, and the path that they go."""

    left: Float[Array, ""]
    size: Float[Array, ""]  # the sum of absolute values of the terms of both sides
    length: Float[Array, ""]
    last: PyTree  # u_t
    begun: Bool[Array, ""]
    inside: Bool[Array, ""]  # whether all u were in the set
    near: Bool[Array, ""]  # whether the diameter was kept


def open_path(u: PyTree, points: PyTree) -> Path:
    check.comparator(u, jax.tree.map(lambda leaf: leaf[0], points))
    zero, met = jnp.zeros((), dtype_of(points)), jnp.ones((), bool)
    return Path(zero, zero, zero, u, ~met, met, met)


def add_path(
    hp: Any, path: Path, feedback: Feedback, u: PyTree, farthest: Array, size: Array
) -> Path:
    """Add a round.

    hp: with the fields `domain` and `diameter`.
    farthest: the largest squared distance of a copy from `u`.
    size: of the other terms of the round.
    """
    g = tree.scale(feedback.weight, feedback.grad)
    left = tree.vdot(g, tree.sub(feedback.action, u))
    moved = jnp.where(path.begun, tree.norm(tree.sub(u, path.last)), 0.0)
    slack = 1 + 64 * jnp.finfo(farthest.dtype).eps
    return Path(
        path.left + left,
        path.size + jnp.abs(left) + size,
        path.length + moved,
        u,
        jnp.ones((), bool),
        path.inside & hp.domain.contains(u),
        path.near & (jnp.sqrt(farthest) <= hp.diameter * slack),
    )


def proof(path: Path, right: Array, published: Array, size: Array) -> Certificate:
    """size: of the terms of the right side that are not sums over rounds."""
    sides = Certificate(path.left, right, path.size + size, published)
    return sides.given(DOMAIN, path.inside).given(NEAR, path.near)


def squares(points: PyTree, u: PyTree) -> Float[Array, " N"]:
    """The squared distances of the copies from `u`."""
    return jax.vmap(lambda x: tree.norm(tree.sub(x, u), squared=True))(points)


def products(points: PyTree, g: PyTree) -> Float[Array, " N"]:
    return jax.vmap(lambda x: jnp.asarray(tree.vdot(g, x)))(points)


def dtype_of(points: PyTree) -> jnp.dtype:
    return jnp.result_type(*jax.tree.leaves(points))
