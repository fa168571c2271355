r"""The sketch of random projections: $S_t = \sum_{s \le t} r_s \hat g_s^\top$ with random $r_s$.

The entries of $r_s$ are independent normal numbers of variance $1/m$, so the mean of $S^\top S$ is
the sketched sum. The matrix $(\alpha I + S S^\top)^{-1}$ is kept by its root: with $q = S \hat g +
\frac{|\hat g|^2}2 r$ a round adds $q r^\top + r q^\top$ to $S S^\top$, which is one update and one
downdate of rank one. A round costs $O(m^2)$ beside the products with the row. The square of a
vector $\hat g$ counts as at most about 5e11 alpha, in float32 150,000 alpha: $r$ is shorter for a
longer vector, else the downdate would lose all digits.

Theorem (conditional form): while $(1 - \epsilon)\, \hat G_t^\top \hat G_t \preceq S_t^\top S_t$ for
the matrix $\hat G_t$ with the rows $\hat g_s$, see `olx.second_order.projection_terms`. For $m$ of
the order of (rank + $\ln T$) / $\epsilon^2$ the condition holds with high probability. What the
draws add to the regret is bounded in expectation, see `olx.second_order.projection_drift`.

Luo, Optimal and Adaptive Online Learning, 2016, algorithm 12 and theorem 17.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx import _safe as safe
from olx._pytree import pytree, static
from olx.core import Scalar
from olx.second_order import _spectral
from olx.second_order._root import changed
from olx.second_order.sketch import Sketch, dtype_of, empty_rows


@pytree
class ProjectionHparams:
    size: int = static()
    key: Array


class Projection(NamedTuple):
    root: Float[Array, "m m"]  # Q Q' is the inverse of alpha I + S S'
    total: Float[Array, ""]  # the trace of S S'
    key: Array  # for the next vector


def random_projection(size: int, key: Array) -> Sketch:
    r"""A random sketch of `size` rows.

    size: $m$, at least 1.
    key: a key of `jax.random`; a batch over keys repeats the game with new draws.

    >>> import jax, jax.numpy as jnp
    >>> sketch = random_projection(3, jax.random.key(0))
    >>> small, rows = sketch.init(2.0, jnp.zeros(5))
    >>> small, r = sketch.update(2.0, small, jnp.zeros(3), jnp.ones(()))
    >>> inverse = jnp.linalg.inv(2.0 * jnp.eye(3) + jnp.outer(r, r))
    >>> bool(jnp.allclose(small.root @ small.root.T, inverse, atol=1e-6))
    True
    """
    check.key("random_projection", key)
    check.size("random_projection", "size", size)
    return Sketch(ProjectionHparams(size, key), size, init, update, solve, energy)


def init(hp: ProjectionHparams, alpha: Scalar, params: PyTree) -> tuple[Projection, PyTree]:
    dtype = dtype_of(params)
    root = jnp.eye(hp.size, dtype=dtype) / jnp.sqrt(jnp.asarray(alpha, dtype))
    return Projection(root, jnp.zeros((), dtype), hp.key), empty_rows(hp.size, params)


def update(
    hp: ProjectionHparams, alpha: Scalar, small: Projection, zg: Array, gg: Array
) -> tuple[Projection, Array]:
    later, now = jax.random.split(small.key)
    r = jax.random.normal(now, zg.shape, zg.dtype) / jnp.sqrt(jnp.asarray(hp.size, zg.dtype))
    r = safe.sqrt(_spectral.share(gg, _spectral.most(alpha, gg, 0.75))) * r
    q = zg + gg / 2 * r
    total = jnp.maximum(small.total + 2 * jnp.vdot(q, r), 0.0)
    return Projection(changed(small.root, q, r), total, later), r


def solve(alpha: Scalar, small: Projection, zx: Array, xx: Array) -> tuple[Array, Array]:
    along = zx @ small.root
    least = alpha / (alpha + small.total)  # no eigenvalue of S'S is larger than the trace
    return small.root @ along, jnp.maximum(xx - jnp.vdot(along, along), least * xx)


def energy(alpha: Scalar, small: Projection, zv: Array) -> Array:
    return jnp.vdot(zv, zv)
