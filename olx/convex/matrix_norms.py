"""Norms of the singular values of a matrix, each with its dual."""

import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array

from olx import _check as check
from olx._refusal import public
from olx.convex.norms import Norm, power
from olx.core import Scalar


@public
def schatten_norm(q: Scalar) -> Norm:
    """The q-norm of singular values for 1 < q < infinity; the dual has q / (q - 1)."""
    q = check.inside("q", q, 1.0, jnp.inf)
    return Norm(Partial(_of_values, q), Partial(_of_values, q / (q - 1)))


@public
def trace_norm() -> Norm:
    """The sum of singular values; the dual is the largest singular value."""
    return Norm(Partial(_sum), Partial(largest))


@public
def spectral_norm() -> Norm:
    """The largest singular value; the dual is the sum of singular values."""
    return Norm(Partial(largest), Partial(_sum))


def largest(w: Array) -> Array:
    """The largest singular value."""
    return _values(w)[0]


def _values(w: Array) -> Array:
    return jnp.linalg.svd(w, compute_uv=False)


def _of_values(q: Scalar, w: Array) -> Array:
    return power(q, _values(w))


def _sum(w: Array) -> Array:
    return jnp.sum(_values(w))
