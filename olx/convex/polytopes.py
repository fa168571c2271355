r"""Euclidean projections on polytopes: box sections, polyhedra and transport polytopes.

A box section is $\{l \le w \le u, \langle a, w\rangle = b\}$. Its projection is
$w_i = \min(\max(v_i - \tau a_i, l_i), u_i)$, and $\langle a, w\rangle$ falls in the one number
$\tau$.

A polyhedron is $\{G w \le h, A w = b\}$. The projection on the affine set of its active rows is
exact, once it is known which are active. The dual method of Goldfarb and Idnani finds them: it
begins with the equations, adds the row that is violated most, and drops a row whose multiplier
$\lambda_i$ would become negative on the way. The result is accepted if it is feasible and the
duality gap

$$\tfrac12 \|w - v\|^2 - \lambda^\top (M v - r) + \tfrac12 \|M^\top \lambda\|^2, \qquad
  M = (G; A),\; r = (h; b),$$

which is at least $\tfrac12\|w - w^*\|^2$, is 0 up to rounding.

A transport polytope holds the non-negative matrices with given sums of rows and columns. The
Euclidean projection of $V$ is $W_{ij} = (V_{ij} + \alpha_i + \beta_j)_+$, the entropic one of $e^V$
is $W_{ij} = e^{V_{ij} + \alpha_i + \beta_j}$. In both the multipliers minimize a convex function
whose gradient is what the sums of $W$ exceed the wanted ones by, found by damped Newton steps.

All are exact up to rounding, and so are their derivatives, at points where they exist: the last
step is repeated with the active constraints fixed. An empty set is refused, or gives NaN if its
numbers are traced.

Goldfarb, Idnani, A Numerically Stable Dual Method for Solving Strictly Convex Quadratic Programs,
1983; Cuturi, Sinkhorn Distances: Lightspeed Computation of Optimal Transport, 2013; Blondel, Seguy,
Rolet, Smooth and Sparse Optimal Transport, 2018.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.flatten_util import ravel_pytree
from jax.scipy.special import logsumexp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import RefusedType, RefusedValue, own_name, public
from olx.convex.projections import like_flat, low_end
from olx.convex.roots import root
from olx.core import Scalar

_STEPS = 200  # of a search for multipliers
_HALVINGS = 30  # of one such step
_SLACK = 64  # times the rounding of the largest number: what counts as 0


@public
def box_section(v: PyTree, low: PyTree, high: PyTree, normal: PyTree, offset: Scalar) -> PyTree:
    r"""Project on $\{\text{low} \le w \le \text{high}, \langle a, w\rangle = b\}$.

    low, high: one number, or one per coordinate; they may be infinite.
    normal: $a$, one number or one per coordinate, of any sign.
    offset: $b$.

    >>> import jax.numpy as jnp
    >>> box_section(jnp.array([2.0, 0.5, 0.25]), 0.0, 1.0, 1.0, 1.5).round(4).tolist()
    [1.0, 0.375, 0.125]
    """
    check.numbers("v", v)
    flat, unravel = ravel_pytree(v)
    for name, value in (("low", low), ("high", high), ("normal", normal), ("offset", offset)):
        check.numbers(name, value)
    low, high, a = (
        like_flat("low", low, flat),
        like_flat("high", high, flat),
        like_flat("normal", normal, flat),
    )
    low, b = low_end(low, high), jnp.asarray(offset, flat.dtype)
    excess = Partial(_section_excess, flat, low, high, a, b)
    ends = lax.stop_gradient(_section_bracket(excess, flat, low, high, a))
    tau = root(excess, *ends, (ends[0] + ends[1]) / 2)
    w = jnp.clip(flat - tau * a, low, high)
    size = jnp.sum(jnp.abs(a * w)) + jnp.abs(b)
    reached = lax.stop_gradient(jnp.abs(jnp.sum(a * w) - b) <= _slack(flat) * (1 + size))
    return unravel(_unless_empty(reached, flat, w))


@public
def polyhedron(
    v: PyTree,
    matrix: Float[Array, "m d"],
    most: Float[Array, " m"],
    equal_matrix: Float[Array, "k d"] | None = None,
    equal: Float[Array, " k"] | None = None,
) -> PyTree:
    r"""Project on $\{G w \le h, A w = b\}$, by a search for the active rows.

    matrix, most: $G$ and $h$. They act on all numbers of `v` as one vector.
    equal_matrix, equal: $A$ and $b$; none if left out.

    >>> import jax.numpy as jnp
    >>> polyhedron(jnp.array([2.0, 2.0]), jnp.eye(2), jnp.array([1.0, 3.0])).round(4).tolist()
    [1.0, 2.0]
    """
    check.numbers("v", v)
    flat, unravel = ravel_pytree(v)
    pairs = [("matrix", matrix, "most", most)]
    if equal_matrix is not None and equal is not None:
        pairs.append(("equal_matrix", equal_matrix, "equal", equal))
    rows = _rows(flat, *pairs)
    active, sure = _active_rows(*lax.stop_gradient((rows, flat)))
    return unravel(_unless_empty(sure, flat, _on_rows(rows, active, flat)[0]))


@public
def affine(v: PyTree, matrix: Float[Array, "k d"], equal: Float[Array, " k"]) -> PyTree:
    r"""Project on $\{A w = b\}$.

    matrix, equal: $A$ and $b$. They act on all numbers of `v` as one vector.

    >>> import jax.numpy as jnp
    >>> affine(jnp.array([2.0, 2.0]), jnp.array([[1.0, 1.0]]), jnp.array([2.0])).round(4).tolist()
    [1.0, 1.0]
    """
    check.numbers("v", v)
    flat, unravel = ravel_pytree(v)
    rows = _rows(flat, ("matrix", matrix, "equal", equal))
    w, _ = _on_rows(rows, jnp.ones(rows.right.shape, bool), flat)
    return unravel(_unless_empty(_feasible(rows, flat, w), flat, w))


@public
def transport(v: Float[Array, "n m"], rows: Array, columns: Array) -> Float[Array, "n m"]:
    r"""Project on the non-negative matrices whose rows and columns have given sums.

    rows, columns: the sums; non-negative, with the same total.

    >>> import jax.numpy as jnp
    >>> transport(jnp.eye(2), jnp.ones(2), jnp.array([1.5, 0.5])).round(4).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    rows, columns = _sums(v, rows, columns, check.non_negative)
    ready = jnp.zeros_like(rows), jnp.zeros_like(columns)
    return _balanced(_positive, v, rows, columns, ready)


@public
def entropic_transport(
    logits: Float[Array, "n m"], rows: Array, columns: Array
) -> Float[Array, "n m"]:
    r"""The entropic projection of $e^{\text{logits}}$ on the matrices with given sums.

    With `logits` of minus a cost, divided by a temperature, it is the plan of entropic transport.

    rows, columns: the sums of the rows and the columns; positive, with the same total.

    >>> import jax.numpy as jnp
    >>> entropic_transport(jnp.zeros((2, 2)), jnp.ones(2), jnp.array([1.5, 0.5])).round(4).tolist()
    [[0.75, 0.25], [0.75, 0.25]]
    """
    rows, columns = _sums(logits, rows, columns, check.positive)
    ready = jnp.log(rows) - logsumexp(logits, axis=1), jnp.zeros_like(columns)
    return _balanced(jnp.exp, logits, rows, columns, ready)


def _slack(like: Array) -> float:
    return _SLACK * float(jnp.finfo(like.dtype).eps)


@own_name("project")
def _unless_empty(reached: Array, v: Array, w: Array) -> Array:
    """The point w; an empty set, where it is not reached, is refused, or NaN if traced."""
    reached |= jnp.any(jnp.isnan(lax.stop_gradient(v)))  # a bad number stays one
    if not isinstance(reached, Tracer) and not reached:
        raise RefusedValue("the set is empty, or so thin that rounding cannot tell; relax it.")
    return jnp.where(reached, w, jnp.nan)


def _section_excess(v: Array, low: Array, high: Array, a: Array, b: Array, tau: Array) -> Array:
    """Increasing in tau."""
    return b - jnp.sum(a * jnp.clip(v - tau * a, low, high))


def _section_bracket(
    excess: Partial, v: Array, low: Array, high: Array, a: Array
) -> tuple[Array, Array]:
    """Two numbers with tau between them.

    Outside all finite knots the excess is linear, with the slope of the coordinates without an end.
    """
    knots = lambda end: safe.divide(v - end, a, 0.0, (a != 0) & jnp.isfinite(end))
    first = jnp.minimum(jnp.minimum(jnp.min(knots(low)), jnp.min(knots(high))), 0.0)
    last = jnp.maximum(jnp.maximum(jnp.max(knots(low)), jnp.max(knots(high))), 0.0)
    upper, lower = jnp.where(a > 0, high, low), jnp.where(a > 0, low, high)  # as tau falls, rises
    slope = lambda end: jnp.sum(jnp.where(jnp.isfinite(end), 0.0, a * a))
    before = safe.divide(jnp.maximum(excess(first), 0.0), slope(upper))
    after = safe.divide(jnp.maximum(-excess(last), 0.0), slope(lower))
    return first - 2 * before - 1, last + 2 * after + 1


class _Rows(NamedTuple):
    """The rows M w <= r, or = r where they are `equal`, scaled to length 1."""

    matrix: Float[Array, "k d"]
    right: Float[Array, " k"]
    equal: np.ndarray


def _rows(v: Array, *pairs: tuple[str, Array, str, Array]) -> _Rows:
    """pairs: the names and values of both sides."""
    for name, rows, side, right in pairs:
        check.array(name, rows, 2)
        check.array(side, right, 1)
        if jnp.shape(rows) != (jnp.shape(right)[0], v.size):
            raise RefusedType(
                f"`{name}` has shape {jnp.shape(rows)}; it needs one row per number of `{side}`, "
                f"{jnp.shape(right)[0]}, and one column per number of `v`, {v.size}."
            )
    whole = jnp.concatenate([jnp.asarray(rows, v.dtype) for _, rows, _, _ in pairs])
    right = jnp.concatenate([jnp.asarray(right, v.dtype) for *_, right in pairs])
    length = safe.or_one(safe.sqrt(jnp.sum(whole * whole, axis=1)))
    equal = [np.full(len(right), side == "equal") for _, _, side, right in pairs]
    return _Rows(whole / length[:, None], right / length, np.concatenate(equal))


class _Walk(NamedTuple):
    w: Array
    multipliers: Array
    active: Array  # the rows that hold with equality
    row: Array  # the one that is being added
    steps: Array
    empty: Array  # whether no point satisfies the active rows and this one


def _active_rows(rows: _Rows, v: Array) -> tuple[Array, Array]:
    """Which rows hold with equality at the projection, and whether that is certain."""
    equal, count = jnp.asarray(rows.equal), rows.right.shape[0]
    slack = _slack(v) * _scale(rows, v)
    over = lambda w: jnp.where(equal, 0.0, rows.matrix @ w - rows.right)

    def step(seen: _Walk) -> _Walk:
        worst = jnp.argmax(over(seen.w))
        row = jnp.where(seen.row < 0, worst, seen.row)
        inverse = jnp.linalg.pinv(jnp.where(seen.active[:, None], rows.matrix, 0.0))
        share = inverse.T @ rows.matrix[row]  # of the active rows in the new one
        rest = rows.matrix[row] - rows.matrix.T @ jnp.where(seen.active, share, 0.0)
        free = jnp.vdot(rest, rest)
        whole = safe.divide(over(seen.w)[row], free, jnp.inf, free > _slack(v))
        sinks = seen.active & ~equal & (share > _slack(v))
        spans = safe.divide(seen.multipliers, share, jnp.inf, sinks)
        length = jnp.minimum(whole, jnp.min(spans))
        added = whole <= jnp.min(spans)
        empty = jnp.isinf(length)
        length = jnp.where(empty, 0.0, length)
        here = jnp.arange(count) == row
        left = jnp.where(added, -1, jnp.argmin(spans))
        multipliers = (
            seen.multipliers
            - length * jnp.where(seen.active, share, 0.0)
            + jnp.where(here, length, 0.0)
        )
        return _Walk(
            seen.w - length * jnp.where(jnp.isinf(whole), 0.0, rest),
            jnp.where(jnp.arange(count) == left, 0.0, multipliers),
            (seen.active | (here & added)) & (jnp.arange(count) != left),
            jnp.where(added, -1, row),
            seen.steps + 1,
            empty,
        )

    def unfinished(seen: _Walk) -> Array:
        violated = (seen.row >= 0) | (jnp.max(over(seen.w), initial=0.0) > slack)
        return violated & ~seen.empty & (seen.steps < _STEPS + 10 * count)

    w, multipliers = _on_rows(rows, equal, v)
    no = jnp.asarray(-1)
    start = _Walk(w, multipliers, equal, no, jnp.asarray(0), jnp.asarray(False))
    last = lax.while_loop(unfinished, step, start)
    w, _ = _on_rows(rows, last.active, v)
    sure = _is_projection(rows, v, w, last.multipliers)
    return last.active, sure & ~last.empty


def _on_rows(rows: _Rows, active: Array, v: Array) -> tuple[Array, Array]:
    """The projection on the affine set of the active rows, and the multipliers of all rows.

    The second of two steps takes away the rounding of the first, which is as large as `v`.
    """
    inverse = jnp.linalg.pinv(jnp.where(active[:, None], rows.matrix, 0.0))
    w = v
    for _ in range(2):
        w = w - inverse @ jnp.where(active, rows.matrix @ w - rows.right, 0.0)
    return w, inverse.T @ (v - w)


def _is_projection(rows: _Rows, v: Array, w: Array, multipliers: Array) -> Array:
    """Whether w is feasible, the multipliers are legal, and the duality gap is 0."""
    slack = _slack(v) * _scale(rows, v)
    legal = jnp.all(jnp.asarray(rows.equal) | (multipliers >= -slack))
    dual = rows.matrix.T @ multipliers
    gain = jnp.vdot(multipliers, rows.matrix @ v - rows.right) - jnp.vdot(dual, dual) / 2
    gap = jnp.vdot(w - v, w - v) / 2 - gain
    return _feasible(rows, v, w) & legal & (gap <= slack * _scale(rows, v))


def _feasible(rows: _Rows, v: Array, w: Array) -> Array:
    over = rows.matrix @ w - rows.right
    over = jnp.max(jnp.where(rows.equal, jnp.abs(over), over), initial=0.0)
    return over <= _slack(v) * _scale(rows, v)


def _scale(rows: _Rows, v: Array) -> Array:
    return 1 + jnp.max(jnp.abs(v)) + jnp.max(jnp.abs(rows.right), initial=0.0)


@own_name("transport")
def _sums(v: Array, rows: Array, columns: Array, legal: Callable) -> tuple[Array, Array]:
    """The wanted sums as arrays; refuses other shapes, bad numbers and unequal totals."""
    check.array("v", v, 2)
    sums = []
    for name, given, size in (
        ("rows", rows, jnp.shape(v)[0]),
        ("columns", columns, jnp.shape(v)[1]),
    ):
        given = jnp.asarray(legal(name, given, each=True), jnp.result_type(v))
        if given.shape != (size,):
            raise RefusedType(f"`{name}` has shape {given.shape}; it needs {size} sums.")
        sums.append(given)
    total, other = (jnp.sum(one) for one in sums)
    equal = jnp.abs(total - other) <= _slack(v) * v.size * (1 + total)
    if not isinstance(equal, Tracer) and not equal:
        raise RefusedValue(f"`rows` must sum to what `columns` do, got {total:g} and {other:g}.")
    return jnp.where(equal, sums[0], jnp.nan), sums[1]


def _positive(x: Array) -> Array:
    return jnp.where(x > 0, x, 0.0)


def _balanced(
    entry: Callable[[Array], Array], v: Array, rows: Array, columns: Array, ready: tuple
) -> Array:
    """The matrix `entry(v + alpha + beta)` with the wanted sums.

    entry: non-negative and not decreasing, element by element.
    ready: the first multipliers.
    """
    n, wanted = rows.size, jnp.concatenate([rows, columns])
    at = lambda v, x: v + x[:n, None] + x[None, n:]
    of = lambda w: jnp.concatenate([jnp.sum(w, axis=1), jnp.sum(w, axis=0)])
    slope = lambda v, x: jax.jvp(entry, (at(v, x),), (jnp.ones_like(v),))[1]
    fixed_v, fixed = lax.stop_gradient((v, wanted))
    start = lax.stop_gradient(jnp.concatenate(ready))
    small = _slack(v) * (1 + jnp.max(fixed)) * v.size

    def miss(x: Array) -> Array:
        return of(entry(at(fixed_v, x))) - fixed

    def step(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, size, steps = carry
        damping = jnp.minimum(size, 1e-2) * 1e-2 + jnp.finfo(v.dtype).eps
        hessian = _hessian(slope(fixed_v, x))
        move = jnp.linalg.solve(hessian + damping * jnp.eye(x.size, dtype=x.dtype), -miss(x))
        tries = x[None] + move * 0.5 ** jnp.arange(_HALVINGS, dtype=x.dtype)[:, None]
        sizes = jnp.max(jnp.abs(jax.vmap(miss)(tries)), axis=1)
        best = jnp.nanargmin(jnp.where(jnp.isfinite(sizes), sizes, jnp.inf))
        return tries[best], sizes[best], steps + 1

    first = start, jnp.max(jnp.abs(miss(start))), jnp.zeros((), int)
    unfinished = lambda carry: (carry[1] > small) & (carry[2] < _STEPS)
    x, size, _ = lax.while_loop(unfinished, step, first)
    inverse = jnp.linalg.pinv(_hessian(slope(fixed_v, x)), hermitian=True)
    x = x - inverse @ (of(entry(at(v, x))) - wanted)  # with the derivatives of v and the sums
    return _unless_empty(size <= small, v, entry(at(v, x)))


def _hessian(slope: Array) -> Array:
    """The derivative of the sums of rows and columns in the multipliers."""
    return jnp.block(
        [[jnp.diag(jnp.sum(slope, axis=1)), slope], [slope.T, jnp.diag(jnp.sum(slope, axis=0))]]
    )
