r"""Squared Schatten norms of rectangular matrices.

With $\|W\|_q = (\sum_i \sigma_i(W)^q)^{1/q}$ over singular values, $q \in (1, 2]$ and
$1/p + 1/q = 1$,

$$\psi(W) = \frac{\|W\|_q^2}{2(q-1)}, \qquad \psi^*(\Theta) = \frac{\|\Theta\|_p^2}{2(p-1)}.$$

$\psi$ is 1-strongly convex in $\|\cdot\|_q$. With $q$ near 1 the geometry is that of the trace
norm, whose dual is the spectral norm; it suits matrices of low rank.

Kakade, Shalev-Shwartz, Tewari, Regularization Techniques for Learning with Matrices, 2012.
"""

import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import RefusedType, own_name, public
from olx._words import as_given
from olx.convex import _domain
from olx.convex import _spectral as spectral
from olx.convex.norms import largest, schatten_norm
from olx.core import Scalar
from olx.mirrors.base import MirrorMap


@public
def schatten(q: Scalar) -> MirrorMap:
    r"""Half the squared Schatten norm of a matrix, divided by $q - 1$.

    q: in (1, 2]; 2 is the squared Frobenius norm. For comparators of low rank use
        $q = p / (p - 1)$ with $p = \max(2, 2 \log \min(m, n))$.

    >>> import jax.numpy as jnp
    >>> schatten(1.5).to_primal(jnp.array([[3.0, 4.0]])).round(6).tolist()
    [[1.5, 2.0]]
    """
    q = as_given(1.0 * check.above("q", q, 1, 2), q)
    p = q / (q - 1)
    return MirrorMap(
        Partial(_half_square, q),
        Partial(_half_square, p),
        norm=schatten_norm(q),
        modulus=1.0,
        retraction=Partial(_domain.same),
    )


@own_name("schatten")
def _half_square(q: Scalar, w: Array) -> Array:
    if jnp.ndim(w) != 2:
        raise RefusedType(
            f"a decision must be a matrix, got shape {jnp.shape(w)}; reshape it, or use "
            "one map for each matrix."
        )
    top = lax.stop_gradient(largest(w))
    size = safe.or_one(top)
    curve = spectral.Curve(Partial(_power, q), Partial(jnp.abs))
    total = spectral.trace(curve, spectral.dilate(w / size)) / 2  # each singular value twice
    root = jnp.where(top > 0, total * _ratio(total, 2 / q - 1), total)
    return size**2 * root / (2 * (q - 1))


def _power(q: Scalar, x: Array) -> Array:
    return x * x * _ratio(x, q - 2)


def _ratio(x: Array, exponent: Scalar) -> Array:
    """A power of |x|; at 0 its limit if finite, else 0, with gradient 0."""
    size = jnp.abs(x)
    flat = jnp.where(exponent == 0, 1.0, jnp.zeros_like(size))
    return safe.power(size, exponent, flat)
