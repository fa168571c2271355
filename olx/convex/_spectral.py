r"""Functions of the eigenvalues of a symmetric matrix, differentiable at repeated eigenvalues.

For $A = V \operatorname{diag}(\lambda) V^\top$ and a function $f$ of one number, $f(A) = V
\operatorname{diag}(f(\lambda)) V^\top$. Its derivative needs no derivative of $V$, which does not
exist at repeated eigenvalues. It needs only divided differences of $f$:

$$Df(A)[E] = V \big( f[\lambda_i, \lambda_j] \circ V^\top E V \big) V^\top, \qquad
  f[a, b] = \frac{f(a) - f(b)}{a - b}, \quad f[a, a] = f'(a),$$

and the $k$-th derivative is the sum, over all orders of the directions, of their products weighted
by $f[\lambda_{i_0}, \dots, \lambda_{i_k}]$. The rule below gives the derivative of the $k$-th
derivative as the next one, so forward mode is correct to every order. Reverse mode is correct for
two derivatives; at repeated eigenvalues a third gives NaN, elsewhere any number is correct. For
close points, a divided difference is the integral of $f^{(k)}$ over the simplex they span (Hermite
and Genocchi), computed by Gauss quadrature.

Rectangular matrices are the off-diagonal block of a symmetric one with eigenvalues $\pm\sigma$.

Daleckii, Krein, Integration and Differentiation of Functions of Hermitian Operators, 1965.
"""

import itertools
import string

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float

from olx import _numeric as safe
from olx._pytree import pytree

_NODES, _MASSES = np.polynomial.legendre.leggauss(4)
_CLOSE = 0.1


@pytree
class Curve:
    """A function of one number, applied elementwise.

    reach: point -> the distance to the nearest singularity of the function.
    """

    f: Partial
    reach: Partial


def symmetrize(a: Float[Array, "d d"]) -> Float[Array, "d d"]:
    return (a + a.T) / 2


@jax.custom_jvp
def trace(curve: Curve, a: Float[Array, "d d"]) -> Float[Array, ""]:
    r"""$\operatorname{tr} f(A)$ of a symmetric matrix; its gradient is $f'(A)$."""
    return jnp.sum(curve.f(jnp.linalg.eigh(a)[0]))


@trace.defjvp
def _trace_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    curve, a = primals
    slope = Curve(Partial(_slope, curve.f), curve.reach)
    change = jnp.vdot(apply(slope, a), tangents[1])
    if jax.tree.leaves(curve.f):
        change += trace(_moved(curve, tangents[0]), a)
    return trace(curve, a), change


def apply(curve: Curve, a: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """$f(A)$ of a symmetric matrix."""
    return _along(curve, a, ())


@jax.custom_jvp
def apply_odd(curve: Curve, a: Float[Array, "m n"]) -> Float[Array, "m n"]:
    r"""$U \operatorname{diag}(f(\sigma)) V^\top$ of a rectangular matrix, for an odd $f$."""
    u, values, v = jnp.linalg.svd(a, full_matrices=False)
    return (u * curve.f(values)) @ v


@apply_odd.defjvp
def _apply_odd_jvp(primals: tuple, tangents: tuple):
    block = lambda curve, a: apply(curve, dilate(a))[: a.shape[0], a.shape[0] :]
    return jax.jvp(block, primals, tangents)


def dilate(a: Float[Array, "m n"]) -> Float[Array, "d d"]:
    r"""The symmetric matrix with $A$ above the diagonal; eigenvalues are $\pm\sigma_i(A)$ and 0."""
    rows, columns = a.shape
    zeros = lambda size: jnp.zeros((size, size), a.dtype)
    return jnp.block([[zeros(rows), a], [a.T, zeros(columns)]])


@jax.custom_jvp
def _along(curve: Curve, a: Array, directions: tuple[Array, ...]) -> Array:
    """The derivative of f(A) in the given directions; its order is their number."""
    values, vectors = jnp.linalg.eigh(a)
    order = len(directions)
    turned = [vectors.T @ direction @ vectors for direction in directions]
    if order == 0:
        inner = jnp.diag(curve.f(values))
    else:
        grids = jnp.meshgrid(*[values] * (order + 1), indexing="ij", sparse=True)
        table = _divided(curve, jnp.sort(jnp.stack(jnp.broadcast_arrays(*grids)), axis=0))
        axes = string.ascii_letters[: order + 1]
        pairs = ",".join(axes[i : i + 2] for i in range(order))
        formula = f"{axes},{pairs}->{axes[0]}{axes[-1]}"
        terms = [jnp.einsum(formula, table, *some) for some in itertools.permutations(turned)]
        inner = jnp.sum(jnp.stack(terms), axis=0)
    return vectors @ inner @ vectors.T


@_along.defjvp
def _along_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    curve, a, directions = primals
    change = _along(curve, a, (*directions, tangents[1]))
    for i, tangent in enumerate(tangents[2]):
        change += _along(curve, a, (*directions[:i], tangent, *directions[i + 1 :]))
    if jax.tree.leaves(curve.f):
        change += _along(_moved(curve, tangents[0]), a, directions)
    return _along(curve, a, directions), change


def _divided(curve: Curve, points: Float[Array, "k ..."]) -> Array:
    """The divided difference of points sorted along the first axis."""
    order = points.shape[0] - 1
    if order == 0:
        return curve.f(points[0])
    gap = points[-1] - points[0]
    reach = jnp.minimum(curve.reach(points[0]), curve.reach(points[-1]))
    close = gap <= _CLOSE * reach
    apart = _divided(curve, points[1:]) - _divided(curve, points[:-1])
    return jnp.where(close, _mean(curve.f, points), apart / safe.or_one(gap))


def _mean(f: Partial, points: Float[Array, "k ..."]) -> Array:
    """The integral of the k-th derivative over the simplex that the k + 1 points span."""
    order = points.shape[0] - 1
    for _ in range(order):
        f = Partial(_slope, f)
    total = jnp.zeros_like(points[0])
    for nodes in itertools.product(range(len(_NODES)), repeat=order):
        place, mass, left = points[0], 1.0, 1.0
        for level, node in enumerate(nodes):
            left *= float(1 + _NODES[node]) / 2
            mass *= float(_MASSES[node]) / 2 * (left if level + 1 < order else 1.0)
            place = place + left * (points[level + 1] - points[level])
        total += mass * f(place)
    return total


def _slope(f: Partial, x: Array) -> Array:
    return jax.jvp(f, (x,), (jnp.ones_like(x),))[1]


def _moved(curve: Curve, tangent: Curve) -> Curve:
    """The change of a curve if its hyperparameters change by `tangent`."""
    return Curve(Partial(_change, curve.f, tangent.f), curve.reach)


def _change(f: Partial, tangent: Partial, x: Array) -> Array:
    return jax.jvp(lambda f: f(x), (f,), (tangent,))[1]
