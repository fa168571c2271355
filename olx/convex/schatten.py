r"""Squared Schatten norms of rectangular matrices, and Schatten norms with their duals.

With $\|W\|_q = (\sum_i \sigma_i(W)^q)^{1/q}$ over singular values, $q \in (1, 2]$ and
$1/p + 1/q = 1$,

$$\psi(W) = \frac{\|W\|_q^2}{2(q-1)}, \qquad \psi^*(\Theta) = \frac{\|\Theta\|_p^2}{2(p-1)}.$$

$\psi$ is 1-strongly convex in $\|\cdot\|_q$. With $q$ near 1 the geometry is that of the trace
norm, whose dual is the spectral norm: few directions matter.

Kakade, Shalev-Shwartz, Tewari, Regularization Techniques for Learning with Matrices, 2012.
"""

import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array

from olx import _check as check
from olx.convex import _domain, norms
from olx.convex import _spectral as spectral
from olx.convex.base import MirrorMap, Norm
from olx.core import Scalar


def schatten(q: Scalar) -> MirrorMap:
    r"""Half the squared Schatten norm of a matrix, divided by $q - 1$.

    q: in (1, 2]; 2 is the squared Frobenius norm. Against matrices of low rank,
        $q = p / (p - 1)$ with $p = \max(2, 2 \log \min(m, n))$ serves.

    >>> import jax.numpy as jnp
    >>> schatten(1.5).to_primal(jnp.array([[3.0, 4.0]])).round(6).tolist()
    [[1.5, 2.0]]
    """
    q = 1.0 * check.above("schatten", "q", q, 1, 2)
    p = q / (q - 1)
    return MirrorMap(
        Partial(_half_square, q),
        Partial(_half_square, p),
        schatten_norm(q),
        1.0,
        retraction=Partial(_domain.same),
    )


def schatten_norm(q: Scalar) -> Norm:
    """The q-norm of singular values for 1 < q < infinity, its dual that of q / (q - 1)."""
    return Norm(Partial(_of_values, q), Partial(_of_values, q / (q - 1)))


def trace_norm() -> Norm:
    """The sum of singular values, its dual the largest."""
    return Norm(Partial(_sum), Partial(_largest))


def spectral_norm() -> Norm:
    """The largest singular value, its dual their sum."""
    return Norm(Partial(_largest), Partial(_sum))


def _half_square(q, w):
    if jnp.ndim(w) != 2:
        raise TypeError(
            f"schatten: a decision must be a matrix, got shape {jnp.shape(w)}; reshape it, or use "
            "one map for each matrix."
        )
    largest = lax.stop_gradient(_largest(w))
    size = jnp.where(largest > 0, largest, 1.0)
    curve = spectral.Curve(Partial(_power, q), Partial(jnp.abs))
    total = spectral.trace(curve, spectral.dilate(w / size)) / 2  # each singular value twice
    root = jnp.where(largest > 0, total * _ratio(total, 2 / q - 1), total)
    return size**2 * root / (2 * (q - 1))


def _power(q, x):
    return x * x * _ratio(x, q - 2)


def _ratio(x, exponent) -> Array:
    """A power of |x|; at 0 its limit if that is finite and else 0, with no slope."""
    size = jnp.abs(x)
    flat = jnp.where(exponent == 0, 1.0, jnp.zeros_like(size))
    return jnp.where(size > 0, jnp.where(size > 0, size, 1.0) ** exponent, flat)


def _values(w):
    return jnp.linalg.svd(w, compute_uv=False)


def _of_values(q, w):
    return norms.power(q, _values(w))


def _sum(w):
    return jnp.sum(_values(w))


def _largest(w):
    return _values(w)[0]
