r"""A convex network: a potential whose shape and directions are numbers that can be learned.

The conjugate is a sum of convex functions of one number, each along a direction $a_j$,

$$\psi^*(\theta) = \sum_j \varphi_j(\langle a_j, \theta\rangle), \qquad
  \varphi_j = \sum_{k=0}^K c_{jk} (h_{j,k+1} - h_{jk}), \qquad
  h_{jk}(t) = b_{jk} \Big( \sqrt{b_{jk}^2 + t^2} - b_{jk} \Big),$$

with widths $b_{j1} < \dots < b_{jK}$, $h_{j0} = 0$ and $h_{j,K+1} = t^2 / 2$. The second derivative
of $h_{jk}$ is $(1 + t^2 / b_{jk}^2)^{-3/2}$, which increases with $k$ up to 1. So $\varphi_j''(t)$
is a mean of the levels $c_{j0}, \dots, c_{jK}$ with positive weights: $c_{j0}$ at 0, $c_{jK}$ far
away, and $c_{jk}$ between the widths $b_{jk}$ and $b_{j,k+1}$.

If the first level is lower than the last one, small duals give smaller decisions, as a soft
threshold does. If it is higher, decisions saturate. Equal levels give a quadratic.

**Strong convexity.** With $M = \sum_j \max_k c_{jk}\, a_j a_j^\top$, for all $\theta$ and $z$,

$$\nabla^2 \psi^* \preceq M, \qquad
  \psi^*(\theta + z) \le \psi^*(\theta) + \langle \nabla\psi^*(\theta), z\rangle +
  \tfrac12 z^\top M z.$$

So $\psi$ is 1-strongly convex in $\|w\| = (w^\top M^{-1} w)^{1/2}$, whose dual norm is
$(\theta^\top M \theta)^{1/2}$, for all positive levels: no choice of the numbers breaks the bound.
The conjugate is given because a learner needs its gradient in every round. The potential itself is
found numerically; only certificates and the start of `omd` and `md` need it.

Kakade, Shalev-Shwartz, Tewari, On the Duality of Strong Convexity and Strong Smoothness, 2009.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.scipy.linalg import cho_factor, cho_solve
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import RefusedType, RefusedValue, public
from olx.convex import _domain, legendre
from olx.convex.norms import Norm
from olx.mirrors.base import MirrorMap


@public
def convex_network(
    levels: Float[Array, "*m K1"],
    widths: Float[Array, "*m K"],
    matrix: Float[Array, "m d"] | None = None,
) -> MirrorMap:
    r"""The potential of a convex network with one hidden layer; decisions are vectors.

    levels: $c$, positive: one row per direction, or one row for all. Each has one number more than
        the row of `widths`.
    widths: $b$, positive and increasing along each row.
    matrix: one direction $a_j$ per row; its columns must be linearly independent. If None, the
        directions are the coordinates, and the potential is separable.

    All of them are leaves, so `jax.grad` of a whole run works with respect to them.

    >>> import jax.numpy as jnp
    >>> mirror = convex_network(jnp.array([0.1, 1.0]), jnp.array([0.5]))
    >>> mirror.to_primal(jnp.array([0.1, 1.0, 10.0])).round(3).tolist()
    [0.012, 0.598, 9.551]
    """
    levels, widths = jnp.asarray(levels), jnp.asarray(widths)
    matrix = None if matrix is None else jnp.asarray(matrix)
    _check_shapes(levels, widths, matrix)
    levels = check.positive("levels", levels, each=True)
    widths = _increasing(check.positive("widths", widths, each=True))
    top = jnp.max(levels, axis=-1)
    conjugate = Partial(_conjugate, levels, widths, matrix)
    return MirrorMap(
        _potential(conjugate, levels, widths, matrix),
        conjugate,
        norm=Norm(Partial(_norm, top, matrix), Partial(_dual_norm, top, matrix)),
        modulus=1.0,
        retraction=Partial(_domain.same),
        separable=matrix is None,
    )


def _potential(conjugate: Partial, levels: Array, widths: Array, matrix: Array | None) -> Partial:
    """The numeric potential; a square matrix needs one coordinate at a time, after a solve."""
    if matrix is None or matrix.shape[0] != matrix.shape[1]:
        return legendre.transform(conjugate, 0.0, None, separable=matrix is None)
    alone = Partial(_conjugate, levels, widths, None)
    return Partial(_after_solve, matrix, legendre.transform(alone, 0.0, None, separable=True))


def _after_solve(matrix: Array, function: Callable, w: Array) -> PyTree:
    return function(jnp.linalg.solve(matrix.T, w))


def _conjugate(levels: Array, widths: Array, matrix: Array | None, theta: Array) -> Array:
    t = _along(matrix, theta)
    far, drops = levels[..., -1], levels[..., :-1] - levels[..., 1:]
    return jnp.sum(far * t * t / 2) + jnp.sum(drops * _bend(widths, t[..., None]))


def _bend(width: Array, t: Array) -> Array:
    r"""$h(t)$, without cancellation for small $t$."""
    return t * (width * t / (jnp.sqrt(width**2 + t**2) + width))


def _along(matrix: Array | None, theta: Array) -> Array:
    return theta if matrix is None else matrix @ theta


def _norm(top: Array, matrix: Array | None, w: Array) -> Array:
    if matrix is None:
        return safe.sqrt(jnp.sum(w * w / top))
    return safe.sqrt(w @ cho_solve(cho_factor(matrix.T @ (top[..., None] * matrix)), w))


def _dual_norm(top: Array, matrix: Array | None, theta: Array) -> Array:
    return safe.sqrt(jnp.sum(top * _along(matrix, theta) ** 2))


def _increasing(widths: Array) -> Array:
    """The widths themselves, if they increase; traced ones are NaN where they do not."""
    if isinstance(widths, Tracer):
        return jnp.where(jnp.diff(widths, axis=-1, prepend=0.0) > 0, widths, jnp.nan)
    rows = np.atleast_2d(widths)
    falls = np.any(np.diff(rows, axis=-1) <= 0, axis=-1)
    if np.any(falls):
        seen = rows[falls][0].tolist()
        raise RefusedValue(f"`widths` must increase along each row, got {seen}.")
    return widths


def _check_shapes(levels: Array, widths: Array, matrix: Array | None) -> None:
    (*rows, steps), seen = widths.shape or (0,), (levels.shape, widths.shape)
    if levels.ndim not in (1, 2) or steps == 0 or levels.shape != (*rows, steps + 1):
        raise RefusedType(
            "`levels` must be a row, or one row per direction, with one number "
            f"more than the row of `widths`; got shapes {seen[0]} and {seen[1]}."
        )
    if matrix is None:
        return
    if jnp.ndim(matrix) != 2 or rows not in ([], [matrix.shape[0]]):
        raise RefusedType(
            "`matrix` must have one direction per row, and `levels` one row per "
            f"direction or one in all; got shapes {jnp.shape(matrix)} and {seen[0]}."
        )
    if isinstance(matrix, Tracer):
        return
    rank, columns = np.linalg.matrix_rank(np.asarray(matrix)), matrix.shape[1]
    if rank < columns:
        raise RefusedValue(
            "the columns of `matrix` must be linearly independent, got rank "
            f"{rank} with {columns} columns; add directions, as those of the identity."
        )
