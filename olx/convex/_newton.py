r"""Newton's method with backtracking for $\max_w \langle\theta, w\rangle - f(w)$.

Optionally in the affine space $\sum_i w_i = s$: the step $d$ then solves $H d + \nu 1 = r$ with
$\sum_i d_i = 0$.

Boyd, Vandenberghe, Convex Optimization, 2004, chapters 9 and 10.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, Int

from olx import _numeric as safe
from olx._pytree import pytree, static
from olx.core import Scalar

_STEPS = 1000
_HALVINGS = 40
_NEAR = 100  # full steps allowed without progress in the value; tiny duals need dozens


@pytree
class Problem:
    f: Partial
    start: Scalar
    total: Scalar | None
    separable: bool = static()


class Search(NamedTuple):
    w: Float[Array, " d"]
    value: Float[Array, ""]
    steps: Int[Array, ""]
    near: Int[Array, ""]  # full steps taken without progress in the value
    done: Bool[Array, ""]


def solve(problem: Problem, theta: Float[Array, " d"]) -> Float[Array, " d"]:
    """The maximizer, by Newton steps with backtracking from the best point of a ray."""
    if problem.total is not None:
        theta = theta - jnp.max(theta)  # same solution, avoids cancellation
    eps = jnp.finfo(theta.dtype).eps
    objective = lambda w: _finite(problem.f(w) - jnp.vdot(theta, w))
    slope = lambda w: jax.grad(problem.f)(w) - theta

    def improve(search: Search) -> Search:
        here = slope(search.w)
        downhill = step(problem, search.w, -here)
        decrease = -jnp.vdot(here, downhill)

        def too_long(size: Array) -> Array:
            ahead = search.w + size * downhill
            # Compare slopes, not values: near the solution differences of values are all rounding.
            enough = jnp.vdot(slope(ahead), downhill) <= decrease / 2
            return ~(enough & jnp.isfinite(objective(ahead)))

        def shorter(trial: tuple) -> tuple[Array, Array, Array]:
            size, halvings, _ = trial
            return size / 2, halvings + 1, too_long(size / 2)

        # A batched loop evaluates its condition twice, with other rounding: only read flags there.
        unsettled = lambda trial: trial[2] & (trial[1] < _HALVINGS)
        one = jnp.ones_like(decrease)
        size, halvings, _ = lax.while_loop(unsettled, shorter, (one, 0, too_long(one)))
        close = decrease <= 8 * eps * (1 + jnp.abs(search.value))
        close &= jnp.isfinite(objective(search.w + downhill))  # then step in full
        size = jnp.where(close, 1.0, jnp.where(halvings == _HALVINGS, 0.0, size))
        trial = search.w + size * downhill
        better = jnp.isfinite(objective(trial)) & jnp.all(jnp.isfinite(trial))
        w = jnp.where(better, trial, search.w)
        small = jnp.max(jnp.abs(w - search.w)) <= 4 * eps * jnp.max(jnp.abs(w))
        near = search.near + close.astype(int)
        stop = small | (near > _NEAR) | (halvings == _HALVINGS) & ~close | ~better
        return Search(w, objective(w), search.steps + 1, near, stop)

    first = _first(problem, theta, objective)
    value = objective(first)
    lost = ~jnp.isfinite(value)  # a dual that has diverged, or a start outside the domain
    search = Search(first, value, jnp.zeros((), int), jnp.zeros((), int), lost)
    unfinished = lambda search: ~search.done & (search.steps < _STEPS)
    return jnp.where(lost, jnp.nan, lax.while_loop(unfinished, improve, search).w)


def step(problem: Problem, w: Array, r: Array, total: float = 0.0) -> Array:
    """Solve H d = r, or, if the sum of w is fixed, H d + nu 1 = r with sum(d) = total."""
    divide = _diagonal(problem, w) if problem.separable else _dense(problem, w)
    d = divide(r)
    if problem.total is None:
        return d
    ones = divide(jnp.ones_like(w))
    return d - ones * (jnp.sum(d) - total) / jnp.sum(ones)


def _diagonal(problem: Problem, w: Array):
    curvature = jax.jvp(jax.grad(problem.f), (w,), (jnp.ones_like(w),))[1]
    divisor = jnp.where(jnp.isfinite(curvature) & (curvature > 0), curvature, _huge(w))
    return lambda r: r / divisor


def _dense(problem: Problem, w: Array):
    """Solve with the Hessian; the step is 0 along flat directions and at kinks.

    The Hessian is first scaled to a unit diagonal. Otherwise, near a steep border, the steep
    coordinates make all others look flat.
    """
    hessian = jax.hessian(problem.f)(w)
    diagonal = lax.stop_gradient(jnp.diagonal(hessian))
    bad = ~jnp.isfinite(diagonal)
    unit = safe.or_one(diagonal, ~bad & (diagonal > 0)) ** -0.5
    hessian = jnp.where(bad[:, None] | bad[None, :], 0.0, hessian) * unit[:, None] * unit
    inverse = _inverse(lax.stop_gradient(hessian))
    times = lambda d: jnp.where(bad, d, hessian @ d)

    def refined(_: Callable, r: Array) -> Array:
        d = inverse @ r
        return d + inverse @ (r - hessian @ d)

    solve = lambda r: lax.custom_linear_solve(times, r, refined, symmetric=True)
    return lambda r: unit * solve(jnp.where(bad, 0.0, unit * r))


def _inverse(matrix: Array) -> Array:
    """A generalized inverse of a positive semidefinite matrix of unit diagonal (sweep operator).

    Rows without a pivot are left out. It calls no library factorization, so it can be batched
    inside loops on every device.
    """
    size = matrix.shape[0]
    least = 1e2 * size * jnp.finfo(matrix.dtype).eps
    places = jnp.arange(size)

    def sweep(k: Array, carry: tuple) -> tuple[Array, Array]:
        a, used = carry
        here = places == k
        row = lax.dynamic_index_in_dim(a, k, keepdims=False)
        pivot = jnp.sum(jnp.where(here, row, 0.0))
        good = pivot > least
        scaled = row / safe.or_one(pivot, good)
        swept = a - row[:, None] * scaled
        swept = jnp.where(
            here[:, None] | here, jnp.where(here[:, None], scaled, scaled[:, None]), swept
        )
        swept = jnp.where(here[:, None] & here, -1 / safe.or_one(pivot, good), swept)
        return jnp.where(good, swept, a), used | (here & good)

    a, used = lax.fori_loop(0, size, sweep, (matrix, jnp.zeros(size, bool)))
    return jnp.where(used[:, None] & used, -a, 0.0)


def _first(problem: Problem, theta: Array, objective: Callable) -> Array:
    """The best point on a ray from `start` along theta, among multiples from 0 to 1000."""
    if problem.total is None:
        base, ray = jnp.full_like(theta, problem.start), theta
    else:
        base, ray = jnp.full_like(theta, problem.total / theta.size), theta - jnp.mean(theta)
    sizes = jnp.concatenate([jnp.zeros(1, theta.dtype), jnp.logspace(-9, 3, 25, dtype=theta.dtype)])
    points = base + sizes[:, None] * ray
    return points[jnp.argmin(jax.vmap(objective)(points))]


def _finite(value: Array) -> Array:
    return jnp.where(jnp.isnan(value), jnp.inf, value)


def _huge(w: Array) -> Array:
    return jnp.asarray(jnp.finfo(w.dtype).max ** 0.5, w.dtype)
