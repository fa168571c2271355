r"""Projections that optax lacks: capped and floored simplices, weighted balls, and slabs.

Euclidean projections solve $\min_w \frac12\|w - v\|^2$, entropic ones $\min_w \sum_i w_i \log
(w_i / u_i)$ with $u = e^{\text{logits}}$. All are exact: a sort finds the active constraints, and
then the solution is a differentiable formula. A pytree is treated as one long vector.

A projection on a slab in the geometry of a matrix is

$$\arg\min_w \; (w - v)^\top A (w - v) \quad \text{subject to} \quad
  \text{low} \le \langle w, x \rangle \le \text{high}.$$

Let $\tau$ be the signed distance of $\langle v, x\rangle$ to the interval. If $A$ is positive
definite, the solution is $v - \tau A^{-1} x / (x^\top A^{-1} x)$. If $A$ is only semidefinite, let
$P$ project on its null space, where moves cost nothing. If $P x \ne 0$, the solution nearest to $v$
is $v - \tau P x / (x^\top P x)$; otherwise the first formula holds with the pseudo-inverse. If $x$
is zero, the solution is $v$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 7.1; Luo,
Agarwal, Cesa-Bianchi, Langford, Efficient Second Order Online Learning by Sketching, 2016.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import RefusedType, RefusedValue, own_name, public
from olx._words import as_given
from olx.convex import _domain
from olx.convex import _spectral as spectral
from olx.core import Scalar


@public
def entropic_floor(logits: PyTree, floor: Scalar) -> PyTree:
    r"""The entropic projection of $e^{\text{logits}}$ on $\{w \ge \text{floor}, \sum_i w_i = 1\}$.

    floor: from 0 (softmax) to one over the number of coordinates.

    >>> import jax.numpy as jnp
    >>> entropic_floor(jnp.log(jnp.array([0.01, 0.09, 0.3, 0.6])), 0.1).round(4).tolist()
    [0.1, 0.1, 0.2667, 0.5333]
    """
    check.numbers("logits", logits)
    flat, unravel = ravel_pytree(logits)
    floor = check.between("floor", floor, 0.0, 1 / flat.size)
    order = jnp.argsort(flat)
    shares = _shares(flat[order], floor)
    return unravel(_rest(flat, floor, order, shares >= floor))


@public
def entropic_cap(logits: PyTree, cap: Scalar) -> PyTree:
    r"""The entropic projection of $e^{\text{logits}}$ on $\{w \le \text{cap}, \sum_i w_i = 1\}$.

    cap: at least one over the number of coordinates; 1 gives the softmax.

    >>> import jax.numpy as jnp
    >>> entropic_cap(jnp.log(jnp.array([0.1, 0.3, 0.6])), 0.5).round(3).tolist()
    [0.125, 0.375, 0.5]
    """
    check.numbers("logits", logits)
    flat, unravel = ravel_pytree(logits)
    cap = check.between("cap", cap, 1 / flat.size, jnp.inf)
    order = jnp.argsort(-flat)
    shares = _shares(flat[order], cap)
    return unravel(_rest(flat, cap, order, shares <= cap))


@public
def simplex(v: PyTree, total: Scalar) -> PyTree:
    r"""The Euclidean projection on $\{w \ge 0, \sum_i w_i = \text{total}\}$.

    Sort, find how many coordinates stay positive, subtract the same number from all of them.
    """
    check.numbers("v", v)
    flat, unravel = ravel_pytree(v)
    flat = flat - lax.stop_gradient(jnp.max(flat))  # same projection, avoids cancellation
    ranked = jnp.sort(lax.stop_gradient(flat))[::-1]
    ranks = jnp.arange(1, flat.size + 1, dtype=flat.dtype)
    mass = lax.stop_gradient(total)
    positive = ranked * ranks > jnp.cumsum(ranked) - mass
    level = (jnp.sum(jnp.where(positive, ranked, 0.0)) - mass) / _number(positive, flat)
    kept = ~(flat <= level)  # keeps NaN visible; `flat` and `ranked` may be rounded differently
    threshold = (jnp.sum(jnp.where(kept, flat, 0.0)) - total) / _number(kept, flat)
    return unravel(jnp.where(kept, jnp.maximum(flat - threshold, 0.0), 0.0))


@public
def capped_simplex(v: PyTree, cap: PyTree, total: Scalar = 1.0) -> PyTree:
    r"""The Euclidean projection on $\{0 \le w \le \text{cap}, \sum_i w_i = \text{total}\}$.

    cap: one number, or one per coordinate; the caps must sum to at least `total`. A cap adds a
        knot per coordinate to the sort, so `simplex` is not a special case of this function.

    >>> import jax.numpy as jnp
    >>> capped_simplex(jnp.array([2.0, 0.25, 0.0]), 0.5).round(4).tolist()
    [0.5, 0.375, 0.125]
    """
    check.numbers("v", v)
    flat, unravel = ravel_pytree(v)
    cap = check.non_negative("cap", cap, each=True)
    total = check.non_negative("total", total)
    caps = like_flat("cap", cap, flat)
    total = _reachable(total, caps)
    caps = jnp.where(caps > total, total, caps)
    start = lax.stop_gradient(_level(flat, caps, total))
    free = (flat - start > 0) & (flat - start < caps)
    full = flat - start >= caps
    count = jnp.sum(free, dtype=flat.dtype)
    excess = jnp.sum(jnp.where(free, flat, 0.0)) + jnp.sum(jnp.where(full, caps, 0.0)) - total
    level = safe.divide(excess, count, start)
    w = jnp.where(full, caps, jnp.where(free, flat - level, 0.0))
    return unravel(jnp.where(jnp.isnan(start), jnp.nan, w))


@public
def sparse_simplex(v: PyTree, most: int, total: Scalar = 1.0) -> PyTree:
    r"""A nearest point with at most `most` positive numbers, none negative, that sum to `total`.

    These points are no convex set. The largest `most` numbers are projected on the simplex.

    Kyrillidis, Becker, Cevher, Koch, Sparse Projections onto the Simplex, 2013.

    >>> import jax.numpy as jnp
    >>> sparse_simplex(jnp.array([0.5, 0.25, 0.25, 0.0]), 2).round(4).tolist()
    [0.625, 0.375, 0.0, 0.0]
    """
    check.numbers("v", v)
    check.count("most", most)
    flat, unravel = ravel_pytree(v)
    values, places = lax.top_k(flat, min(most, flat.size))
    near = simplex(values, check.positive("total", total))
    return unravel(jnp.zeros_like(flat).at[places].set(near))


@public
def subsimplex(v: PyTree, total: Scalar = 1.0) -> PyTree:
    r"""The Euclidean projection on $\{w \ge 0, \sum_i w_i \le \text{total}\}$.

    >>> import jax.numpy as jnp
    >>> subsimplex(jnp.array([0.5, -1.0, 0.25])).tolist()
    [0.5, 0.0, 0.25]
    """
    check.numbers("v", v)
    flat, unravel = ravel_pytree(v)
    total = check.non_negative("total", total)
    positive = jnp.where(flat > 0, flat, 0.0)
    w = jnp.where(jnp.sum(positive) < total, positive, simplex(flat, total))
    return unravel(jnp.where(jnp.isnan(total), jnp.nan, w))


@public
def weighted_l1_ball(v: PyTree, weights: PyTree, radius: Scalar) -> PyTree:
    r"""The Euclidean projection on $\{\sum_i a_i |w_i| \le \text{radius}\}$, $a$ the `weights`.

    weights: non-negative, shaped like `v`, or one number; a coordinate of weight 0 is free.

    >>> import jax.numpy as jnp
    >>> weighted_l1_ball(jnp.array([3.0, 1.0, -7.0]), jnp.array([1.0, 2.0, 0.0]), 2.0).tolist()
    [2.0, 0.0, -7.0]
    """
    check.numbers("v", v)
    flat, unravel = ravel_pytree(v)
    weights = check.non_negative("weights", weights, each=True)
    radius = check.non_negative("radius", radius)
    a = like_flat("weights", weights, flat)
    sign = jnp.where(flat < 0, -1.0, jnp.ones_like(flat))
    return unravel(sign * _within(sign * flat, a, radius))


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
    _check_slab(v, x, low, high, inverse=(inverse, 0, 1, 2))
    low = low_end(low, high)
    direction = inverse @ x if jnp.ndim(inverse) == 2 else inverse * x
    return v - _excess_over(jnp.vdot(v, x), low, high, jnp.vdot(x, direction)) * direction


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
    _check_slab(v, x, low, high, matrix=(matrix, 2))
    low = low_end(low, high)
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
    return v - _excess_over(jnp.vdot(v, x), low, high, jnp.vdot(x, direction)) * direction


def low_end(low: Scalar, high: Scalar) -> Scalar:
    """`low`, refused if it exceeds `high`; if an end is traced, NaN instead of a refusal."""
    for name, end in (("low", low), ("high", high)):
        check.numbers(name, end)
    if isinstance(low, Tracer) or isinstance(high, Tracer):
        return as_given(jnp.where(low <= high, low, jnp.nan), low)
    if not np.all(np.asarray(low) <= np.asarray(high)):
        raise RefusedValue(f"`low` must not exceed `high`, got {low} and {high}.")
    return low


def like_flat(name: str, value: PyTree, flat: Float[Array, " n"]) -> Array:
    """One number per coordinate."""
    given = ravel_pytree(value)[0].astype(flat.dtype)
    if given.size not in (1, flat.size):
        raise RefusedType(
            f"`{name}` has {given.size} numbers, `v` {flat.size}; give one for all, or "
            "one per coordinate."
        )
    return jnp.broadcast_to(given, flat.shape)


def _number(mask: Bool[Array, " n"], like: Array) -> Array:
    """How many entries are true, at least 1."""
    return jnp.maximum(jnp.sum(mask, dtype=like.dtype), 1.0)


def _shares(ordered: Float[Array, " n"], bound: Scalar) -> Float[Array, " n"]:
    """The share of coordinate l if all coordinates before it are set to `bound`."""
    ordered = jnp.maximum(lax.stop_gradient(ordered), jnp.finfo(ordered.dtype).min)
    left = 1 - jnp.arange(ordered.size, dtype=ordered.dtype) * bound
    gaps = jnp.append(jnp.diff(ordered), 0.0)

    def join(later: tuple, earlier: tuple) -> tuple[Array, Array]:
        # logits relative to the first, so that large ones keep their digits
        return earlier[0] + later[0], jnp.logaddexp(earlier[1], earlier[0] + later[1])

    start = (gaps, jnp.zeros_like(gaps))
    return left * jnp.exp(-lax.associative_scan(join, start, reverse=True)[1])


def _rest(logits: Array, bound: Scalar, order: Array, legal: Bool[Array, " n"]) -> Array:
    """Set coordinates before the first legal share to `bound`; split the rest by softmax."""
    last = jnp.arange(legal.size) == legal.size - 1
    held = jnp.argmax(legal | last)
    free = jnp.zeros_like(legal).at[order].set(jnp.arange(legal.size) >= held)
    lowest = jnp.finfo(logits.dtype).min
    top = lax.stop_gradient(jnp.max(jnp.where(free, logits, lowest)))  # any constant works
    mass = jnp.where(free, jnp.exp(jnp.where(free, logits, top) - top), 0.0)
    left = 1 - held.astype(logits.dtype) * bound
    return jnp.where(free, left * mass / jnp.sum(mass), bound)


@own_name("capped_simplex")
def _reachable(total: Scalar, caps: Array) -> Scalar:
    """`total`, refused if the sum of the caps is smaller; NaN instead if the values are traced."""
    room = jnp.sum(caps)
    short = room * (1 + _domain.rounding(caps)) < total
    if isinstance(short, Tracer):
        return jnp.where(short, jnp.nan, total)
    if short:
        raise RefusedValue(f"`cap` must sum to at least {total:g}, got {room:g}.")
    return total


def _level(v: Array, caps: Array, total: Scalar) -> Array:
    r"""The $\tau$ with $\sum_i \min(\max(v_i - \tau, 0), c_i)$ = total, by its knots in $\tau$."""
    knots = jnp.concatenate([v, v - caps])
    slopes = jnp.concatenate([jnp.ones_like(v), -jnp.ones_like(v)])
    order = jnp.argsort(-knots)
    knots, slopes = knots[order], jnp.cumsum(slopes[order])
    sums = jnp.cumsum(jnp.concatenate([jnp.zeros(1, v.dtype), -jnp.diff(knots) * slopes[:-1]]))
    last = jnp.clip(jnp.sum(sums <= total) - 1, 0, knots.size - 1)
    slope = slopes[last]
    return knots[last] - safe.divide(total - sums[last], slope)


def _within(u: Array, a: Array, radius: Scalar) -> Array:
    r"""The projection of $u \ge 0$ on $\{w \ge 0, \sum_i a_i w_i \le \text{radius}\}$."""
    bound = a > 0
    ratio = lax.stop_gradient(safe.divide(u, a, jnp.inf, bound))
    order = jnp.argsort(-ratio)
    rank = jnp.arange(u.size)
    spent, squares = jnp.cumsum((a * u)[order]), jnp.cumsum((a * a)[order])
    above = ratio[order] >= (spent - radius) / safe.or_one(squares)
    first = jnp.sum(~bound)  # rounding must not drop the largest ratio
    last = jnp.max(jnp.where((above & (radius > 0)) | (rank <= first), rank, 0))
    active = bound & jnp.zeros_like(bound).at[order].set(rank <= last)
    size = jnp.sum(jnp.where(active, a * a, 0.0))
    level = (jnp.sum(jnp.where(active, a * u, 0.0)) - radius) / safe.or_one(size)
    shrunk = jnp.where(active, u - level * a, jnp.where(bound, 0.0, u))
    shrunk = jnp.where(shrunk < 0, 0.0, shrunk)
    w = jnp.where(jnp.sum(a * u) < radius, u, shrunk)
    return jnp.where(jnp.isnan(radius), jnp.nan, w)


def _check_slab(v: Array, x: Array, low: Scalar, high: Scalar, **matrix: tuple) -> None:
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


def _excess_over(score: Array, low: Scalar, high: Scalar, size: Array) -> Array:
    excess = jnp.where(score > high, score - high, jnp.where(score < low, score - low, 0.0))
    excess = jnp.where(jnp.isnan(low), jnp.nan, excess)
    return safe.divide(excess, size)


def _inverse(smallest: Array, x: Array) -> Array:
    return safe.divide(1, x, 0.0, x > smallest)


def _null(smallest: Array, x: Array) -> Array:
    return jnp.where(x > smallest, 0.0, jnp.ones_like(x))
