r"""AdaGrad with a full matrix: a quadratic whose curvature is a root of the past gradients' matrix.

$$f_t(w) = \frac12 w^\top \big( \delta I + G_t^{1/2} \big) w, \qquad
  G_t = \sum_{s < t} g_s g_s^\top.$$

Every round needs the root of a matrix, which costs $O(d^3)$.

Duchi, Hazan, Singer, Adaptive Subgradient Methods for Online Learning and Stochastic
Optimization, 2011.
"""

import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import RefusedType, own_name, public
from olx.convex import _spectral as spectral
from olx.core import REGULARIZER, Feedback, Process, Scalar
from olx.mirrors.base import MirrorMap
from olx.mirrors.full_quadratic import full_quadratic


@public
def full_adagrad(delta: Scalar = 1.0) -> Process:
    """Curvature from the matrix of past gradients; decisions are vectors.

    delta: positive; the bound of the paper needs at least the norm of the largest gradient.
    """
    delta = check.positive("delta", delta)
    return Process(delta, init, update, at, REGULARIZER)


@own_name("full_adagrad")
def init(delta: Scalar, params: PyTree) -> Float[Array, "d d"]:
    if getattr(params, "ndim", 0) != 1:
        raise RefusedType("`params` must be one vector; `adagrad` takes trees.")
    return jnp.zeros((params.size, params.size), params.dtype)


def update(delta: Scalar, squares: Array, feedback: Feedback) -> Float[Array, "d d"]:
    g = feedback.weight * feedback.grad
    return squares + jnp.outer(g, g)


def at(delta: Scalar, squares: Array, context: PyTree) -> MirrorMap:
    root = spectral.apply(spectral.Curve(Partial(safe.sqrt), Partial(jnp.abs)), squares)
    return full_quadratic(delta * jnp.eye(len(squares), dtype=squares.dtype) + root)
