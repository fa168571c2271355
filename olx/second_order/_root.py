r"""The inverse $H = Q Q^\top$ of a growing matrix, kept by its root $Q$: never indefinite.

If $M = H^{-1}$ becomes $M + s\, v v^\top$, then with $\varphi = Q^\top v$, $n = |\varphi|^2$,

$$Q \leftarrow Q (I - k \varphi\varphi^\top), \qquad k = \frac{s}{1 + s n + \sqrt{1 + s n}}.$$

The change $q r^\top + r q^\top$ of the Gram matrix of a sketch is half of $u u^\top - v v^\top$
with $u = \beta q + r / \beta$ and $v = \beta q - r / \beta$. The number
$\beta = (|r|_H / |q|_H)^{1/2}$ makes $v$ smallest: it is 0 if $q$ and $r$ are parallel.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from olx import _numeric as safe


def changed(
    root: Float[Array, "m m"], q: Float[Array, " m"], r: Float[Array, " m"]
) -> Float[Array, "m m"]:
    r"""The root after $q r^\top + r q^\top$ is added to the matrix."""
    lengths = jnp.sum((r @ root) ** 2), jnp.sum((q @ root) ** 2)
    some = (lengths[0] > 0) & (lengths[1] > 0)
    beta = safe.divide(safe.or_one(lengths[0], some), safe.or_one(lengths[1], some)) ** 0.25
    root = _added(root, beta * q + r / beta, 0.5)
    return _added(root, beta * q - r / beta, -0.5)


def _added(root: Array, v: Array, s: float) -> Array:
    phi = v @ root
    ratio = jnp.maximum(1 + s * jnp.sum(phi**2), jnp.finfo(phi.dtype).eps)  # of determinants
    k = s / (ratio + jnp.sqrt(ratio))
    return root - jnp.multiply.outer(k * (root @ phi), phi)
