r"""The logarithm of the determinant, a barrier for positive definite matrices.

$$\psi(W) = -s \log\det W, \qquad \psi^*(\Theta) = -s \log\det(-\Theta / s) - s d,$$

for positive definite $W$ and negative definite $\Theta$; elsewhere both are infinite and have no
gradient. $\nabla\psi(W) = -s W^{-1}$ and $\nabla\psi^*(\Theta) = -s \Theta^{-1}$. $\psi$ is
strictly but not strongly convex.

Davis, Kulis, Jain, Sra, Dhillon, Information-Theoretic Metric Learning, 2007.
"""

import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array

from olx import _check as check
from olx._refusal import RefusedType, own_name, public
from olx.convex._spectral import symmetrize
from olx.core import Scalar
from olx.mirrors.base import MirrorMap


@public
def log_det(scale: Scalar = 1.0) -> MirrorMap:
    """Minus the log-determinant of a positive definite matrix, times `scale`.

    Only the symmetric part of a matrix is used. Start from a positive definite matrix: the
    potential has no minimum.

    >>> import jax.numpy as jnp
    >>> log_det().to_primal(-4.0 * jnp.ones((1, 1))).tolist()
    [[0.25]]
    """
    scale = check.positive("scale", scale)
    return MirrorMap(
        Partial(_potential, scale),
        Partial(_conjugate, scale),
        contains=Partial(_contains),
        retraction=Partial(symmetrize),
    )


def _potential(scale: Scalar, w: Array) -> Array:
    return -scale * _log_det(w)


def _conjugate(scale: Scalar, theta: Array) -> Array:
    return -scale * (_log_det(-theta / scale) + theta.shape[0])


def _contains(w: Array) -> Array:
    rounding = 16 * w.shape[0] * jnp.finfo(w.dtype).eps * jnp.max(jnp.abs(w))
    return jnp.all(jnp.abs(w - w.T) <= rounding) & jnp.isfinite(_log_det(w))


@own_name("log_det")
def _log_det(a: Array) -> Array:
    """The log-determinant; minus infinity with a NaN gradient if not positive definite."""
    if jnp.ndim(a) != 2 or a.shape[0] != a.shape[1]:
        raise RefusedType(f"a decision must be a square matrix, got {jnp.shape(a)}.")
    factor = jnp.linalg.cholesky(symmetrize(a))
    value = 2 * jnp.sum(jnp.log(jnp.diagonal(factor)))
    return jnp.where(jnp.isnan(value), -jnp.inf, value)
