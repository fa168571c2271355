r"""The negative von Neumann entropy of density matrices.

On symmetric positive semidefinite $d \times d$ matrices of trace 1,

$$\psi(W) = s \big( \operatorname{tr} W \log W + \log d \big), \qquad
  \psi^*(\Theta) = s \Big( \log \sum_i e^{\lambda_i(\Theta) / s} - \log d \Big).$$

The gradient of $\psi^*$ is the matrix softmax $e^{\Theta/s} / \operatorname{tr} e^{\Theta/s}$, so
mirror descent with it is matrix Hedge. $\psi$ is the relative entropy to $I/d$, is never negative,
and is $s$-strongly convex in the trace norm.

Tsuda, Rätsch, Warmuth, Matrix Exponentiated Gradient Updates for On-line Learning and Bregman
Projection, 2005.
"""

import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import RefusedType, own_name, public
from olx.convex import _spectral as spectral
from olx.convex.norms import trace_norm
from olx.core import Scalar
from olx.mirrors.base import MirrorMap


@public
def von_neumann(scale: Scalar = 1.0) -> MirrorMap:
    """The relative entropy of a density matrix to the uniform one, times `scale`.

    Only the symmetric part of decisions and gradients is used.

    >>> import jax.numpy as jnp
    >>> von_neumann().to_primal(jnp.diag(jnp.log(jnp.array([1.0, 3.0])))).round(3).tolist()
    [[0.25, 0.0], [0.0, 0.75]]
    """
    scale = check.positive("scale", scale)
    return MirrorMap(
        Partial(_potential, scale),
        Partial(_conjugate, scale),
        norm=trace_norm(),
        modulus=scale,
        contains=Partial(_contains),
        retraction=Partial(_retract, scale),
        centering=Partial(_below_top),
    )


def _potential(scale: Scalar, w: Array) -> Array:
    w = _symmetric(w)
    curve = spectral.Curve(Partial(safe.x_log_x), Partial(jnp.abs))
    return scale * (spectral.trace(curve, w) + jnp.log(w.shape[0]))


def _conjugate(scale: Scalar, theta: Array) -> Array:
    theta = _symmetric(theta) / scale
    largest = lax.stop_gradient(jnp.linalg.eigh(theta)[0][-1])
    curve = spectral.Curve(Partial(jnp.exp), Partial(jnp.ones_like))
    total = spectral.trace(curve, theta - largest * jnp.eye(len(theta), dtype=theta.dtype))
    return scale * (jnp.log(total) + largest - jnp.log(len(theta)))


def _retract(scale: Scalar, theta: Array) -> Array:
    theta = _symmetric(theta)
    level = _conjugate(scale, theta) - scale + scale * jnp.log(len(theta))
    return theta - level * jnp.eye(len(theta), dtype=theta.dtype)


def _below_top(theta: Array) -> Array:
    top = lax.stop_gradient(jnp.max(jnp.diagonal(theta)))  # does not change the decision
    return theta - top * jnp.eye(len(theta), dtype=theta.dtype)


def _contains(w: Array) -> Array:
    rounding = 16 * w.shape[0] * jnp.finfo(w.dtype).eps
    symmetric = jnp.all(jnp.abs(w - w.T) <= rounding)
    positive = jnp.all(jnp.linalg.eigh(_symmetric(w))[0] >= -rounding)
    return symmetric & positive & (jnp.abs(jnp.trace(w) - 1) <= rounding)


@own_name("von_neumann")
def _symmetric(a: Array) -> Array:
    if jnp.ndim(a) != 2 or a.shape[0] != a.shape[1]:
        raise RefusedType(f"a decision must be a square matrix, got {jnp.shape(a)}.")
    return spectral.symmetrize(a)
