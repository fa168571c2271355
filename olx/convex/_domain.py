"""Membership tests of common domains, up to rounding, and centering of duals.

These closed forms need no projection: certificates test the domain of a mirror map in every round.
A `ConvexSet` derives its test from its projection, by `stays`.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, PyTree
from optax import tree

from olx.core import Scalar


def simplex(floor: Scalar, total: Scalar, w: PyTree) -> Array:
    flat, _ = ravel_pytree(w)
    slack = rounding(flat) * total
    return jnp.all(flat >= floor - slack) & (jnp.abs(jnp.sum(flat) - total) <= slack)


def box(low: Scalar, high: Scalar, w: PyTree) -> Array:
    flat, _ = ravel_pytree(w)
    slack = rounding(flat)
    return jnp.all((flat >= low - slack) & (flat <= high + slack))


def unit_simplex(w: PyTree) -> Array:
    return simplex(0.0, 1.0, w)


def unit_box(w: PyTree) -> Array:
    return box(0.0, 1.0, w)


def orthant(w: PyTree) -> Array:
    flat, _ = ravel_pytree(w)
    return jnp.all(flat >= 0)


def stays(project: Callable, w: PyTree) -> Array:
    """Whether a Euclidean projection does not move `w`, up to rounding."""
    flat, _ = ravel_pytree(w)
    moved, _ = ravel_pytree(tree.sub(project(w), w))
    return jnp.max(jnp.abs(moved)) <= rounding(flat) * (1 + jnp.max(jnp.abs(flat)))


def same(theta: PyTree) -> PyTree:
    """The identity: the projection on the whole space, and the retraction of an open domain."""
    return theta


def largest_log(theta: Array) -> float:
    """The logarithm of the largest exponential allowed: its square does not overflow."""
    return 0.45 * math.log(float(jnp.finfo(theta.dtype).max))


def below_top(theta: PyTree) -> PyTree:
    """The centering for decisions with a fixed sum: make the largest dual coordinate 0."""
    highest = top(ravel_pytree(theta)[0])
    return jax.tree.map(lambda leaf: leaf - highest, theta)


def top(flat: Array) -> Array:
    """The largest entry, as a number that does not change the decision."""
    return lax.stop_gradient(jnp.max(flat))


def rounding(flat: Array) -> float:
    return 16 * flat.size * float(jnp.finfo(flat.dtype).eps)
