r"""Projections on a slab in the geometry of a matrix.

$$\arg\min_w \; (w - v)^\top A (w - v) \quad \text{subject to} \quad
  \text{low} \le \langle w, x \rangle \le \text{high}.$$

Let $\tau$ be the signed distance of $\langle v, x\rangle$ to the interval. If $A$ is positive
definite, the solution is $v - \tau A^{-1} x / (x^\top A^{-1} x)$. If $A$ is only semidefinite, let
$P$ project on its null space, where moves cost nothing. If $P x \ne 0$, the solution nearest to $v$
is $v - \tau P x / (x^\top P x)$; otherwise the first formula holds with the pseudo-inverse. If $x$
is zero, the solution is $v$.

Luo, Agarwal, Cesa-Bianchi, Langford, Efficient Second Order Online Learning by Sketching, 2016.
"""

from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, Float

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import RefusedType, public
from olx.convex import _interval
from olx.convex import _spectral as spectral
from olx.core import Scalar


@public
def slab(
    v: Float[Array, " d"],
    x: Float[Array, " d"],
    low: Scalar,
    high: Scalar,
    inverse: Scalar | Float[Array, "..."] = 1.0,
) -> Float[Array, " d"]:
    r"""Project `v` on the slab of `x`, for positive definite $A$.

    inverse: $A^{-1}$ as a matrix, as a vector (its diagonal), or as a number.

    >>> import jax.numpy as jnp
    >>> slab(jnp.array([2.0, 1.0]), jnp.array([1.0, 0.0]), -1.0, 1.0).tolist()
    [1.0, 1.0]
    """
    _check(v, x, low, high, inverse=(inverse, 0, 1, 2))
    low = _interval.ordered(low, high)
    direction = inverse @ x if jnp.ndim(inverse) == 2 else inverse * x
    return v - _step(jnp.vdot(v, x), low, high, jnp.vdot(x, direction)) * direction


@public
def slab_semidefinite(
    v: Float[Array, " d"],
    x: Float[Array, " d"],
    low: Scalar,
    high: Scalar,
    matrix: Float[Array, "d d"],
) -> Float[Array, " d"]:
    r"""Project `v` on the slab of `x`, for positive semidefinite $A$ = `matrix`.

    Eigenvalues below $d \epsilon \lambda_{\max}$ count as zero, $\epsilon$ the spacing of floats,
    and $x$ lies in the range of $A$ if $\|Px\|^2 \le \sqrt\epsilon \|x\|^2$.
    """
    _check(v, x, low, high, matrix=(matrix, 2))
    low = _interval.ordered(low, high)
    matrix = spectral.symmetrize(matrix)
    values = jnp.linalg.eigvalsh(lax.stop_gradient(matrix))
    rounding = float(jnp.finfo(x.dtype).eps)
    smallest = 8 * x.size * rounding * jnp.max(jnp.abs(values))
    reach = Partial(jnp.abs)
    inverse = spectral.apply(spectral.Curve(Partial(_inverse, smallest), reach), matrix)
    null = spectral.apply(spectral.Curve(Partial(_null, smallest), reach), matrix)
    free = null @ x
    outside = jnp.vdot(free, free) > rounding**0.5 * jnp.vdot(x, x)
    direction = jnp.where(outside, free, inverse @ x)
    return v - _step(jnp.vdot(v, x), low, high, jnp.vdot(x, direction)) * direction


def _check(v: Any, x: Any, low: Any, high: Any, **matrix: Any) -> None:
    ends = {"low": (low, 0), "high": (high, 0)}
    for name, (value, *axes) in {"v": (v, 1), "x": (x, 1), **ends, **matrix}.items():
        if isinstance(value, list | tuple | dict):
            raise RefusedType(f"`{name}` must be an array, got {check.quote(value)}.")
        check.numbers(name, value)
        wide = jnp.ndim(value) == 0 or jnp.shape(value)[-1] == jnp.shape(v)[-1]
        if jnp.ndim(value) not in axes or not wide:
            raise RefusedType(
                f"`{name}` has shape {jnp.shape(value)}, `v` {jnp.shape(v)}; give vectors "
                "of one length, and a matrix of that width."
            )


def _step(score: Array, low: Scalar, high: Scalar, size: Array) -> Array:
    excess = jnp.where(score > high, score - high, jnp.where(score < low, score - low, 0.0))
    excess = jnp.where(jnp.isnan(low), jnp.nan, excess)
    return safe.divide(excess, size)


def _inverse(smallest: Array, x: Array) -> Array:
    return safe.divide(1, x, 0.0, x > smallest)


def _null(smallest: Array, x: Array) -> Array:
    return jnp.where(x > smallest, 0.0, jnp.ones_like(x))
