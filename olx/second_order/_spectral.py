r"""The matrix of a sketch with orthonormal directions, as steps and theorems count it.

For $S = e^{1/2} V$ with orthonormal rows $V$ the step uses

$$A = \alpha I + V^\top \text{diag}(\bar e) V, \qquad
  \bar e = \min\big( e,\; \alpha\, (\epsilon^{-1/2} - 1) \big),$$

with $\epsilon$ the spacing of floats: an energy counts as at most about 2,900 alpha in float32 and
67 million alpha in float64. With a larger one, small errors of $V$ would make $A$ indefinite. The
sketch keeps the energies $e$ themselves; it needs them to tell its directions apart.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from olx import _safe as safe
from olx.core import Scalar

WHOLE = "energies of the sketch must not exceed `alpha` / eps^(1/2), where the step counts less"


def solve(alpha: Scalar, frame: Array, energy: Array, zx: Array, xx: Array) -> tuple[Array, Array]:
    """The solution for directions V = frame Z; nothing cancels."""
    v = frame @ zx
    rest = jnp.maximum(xx - jnp.vdot(v, v), 0.0)
    left = alpha / (alpha + counted(alpha, energy))
    return ((1 - left) * v) @ frame, rest + jnp.sum(left * v**2)


def square(alpha: Scalar, frame: Array, energy: Array, zv: Array) -> Float[Array, ""]:
    r"""$v^\top (A - \alpha I) v$."""
    return jnp.sum(counted(alpha, energy) * (frame @ zv) ** 2)


def is_whole(alpha: Scalar, energy: Array) -> Bool[Array, ""]:
    """Whether all energies count in full."""
    return jnp.all(energy <= most(alpha, energy))


def counted(alpha: Scalar, energy: Array) -> Array:
    r"""$\bar e$."""
    return jnp.minimum(energy, most(alpha, energy))


def share(square: Array, most: Array) -> Array:
    """The share of a squared length that counts, if it counts as at most `most`."""
    return safe.divide(jnp.minimum(square, most), square, 1.0)


def most(alpha: Scalar, energy: Array, power: float = 0.5) -> Array:
    r"""$\alpha\, (\epsilon^{-p} - 1)$."""
    return alpha * jnp.asarray(float(jnp.finfo(energy.dtype).eps) ** -power - 1, energy.dtype)
