r"""Newton's method with backtracking for $\max_w \langle\theta, w\rangle - f(w)$.

In the affine space $\sum_i w_i = s$ if asked: the step $d$ then solves $H d + \nu 1 = r$ with
$\sum_i d_i = 0$.

Boyd, Vandenberghe, Convex Optimization, 2004, chapters 9 and 10.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, Int

from olx._pytree import pytree, static
from olx.core import Scalar

_STEPS = 1000
_HALVINGS = 40


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
    done: Bool[Array, ""]


def solve(problem: Problem, theta: Float[Array, " d"]) -> Float[Array, " d"]:
    """Newton steps with backtracking, from the best point of a ray."""
    if problem.total is not None:
        theta = theta - jnp.max(theta)  # moves no solution, saves digits
    eps = jnp.finfo(theta.dtype).eps
    objective = lambda w: _finite(problem.f(w) - jnp.vdot(theta, w))
    slope = lambda w: jax.grad(problem.f)(w) - theta

    def improve(search: Search) -> Search:
        here = slope(search.w)
        downhill = step(problem, search.w, -here)
        decrease = -jnp.vdot(here, downhill)

        def shorter(trial):
            return trial[0] / 2, trial[1] + 1

        def too_long(trial):
            size, halvings = trial
            ahead = search.w + size * downhill
            # by slopes, not by values: they still tell far from near where values have no digits
            enough = jnp.vdot(slope(ahead), downhill) <= decrease / 2
            return ~(enough & jnp.isfinite(objective(ahead))) & (halvings < _HALVINGS)

        size, halvings = lax.while_loop(too_long, shorter, (jnp.ones_like(decrease), 0))
        close = decrease <= 8 * eps * (1 + jnp.abs(search.value))
        close &= jnp.isfinite(objective(search.w + downhill))  # no progress to see: step in full
        size = jnp.where(close, 1.0, jnp.where(halvings == _HALVINGS, 0.0, size))
        trial = search.w + size * downhill
        better = jnp.isfinite(objective(trial)) & jnp.all(jnp.isfinite(trial))
        w = jnp.where(better, trial, search.w)
        small = jnp.max(jnp.abs(w - search.w)) <= 4 * eps * jnp.max(jnp.abs(w))
        stop = small | (halvings == _HALVINGS) & ~close | ~better
        return Search(w, objective(w), search.steps + 1, stop)

    first = _first(problem, theta, objective)
    search = Search(first, objective(first), jnp.zeros((), int), jnp.zeros((), bool))
    unfinished = lambda search: ~search.done & (search.steps < _STEPS)
    return lax.while_loop(unfinished, improve, search).w


def step(problem: Problem, w: Array, r: Array, total: float = 0.0) -> Array:
    """Solve H d = r, or H d + nu 1 = r with sum(d) = total where the sum of w is fixed."""
    divide = _diagonal(problem, w) if problem.separable else _dense(problem, w)
    d = divide(r)
    if problem.total is None:
        return d
    ones = divide(jnp.ones_like(w))
    return d - ones * (jnp.sum(d) - total) / jnp.sum(ones)


def _diagonal(problem: Problem, w: Array):
    curvature = jax.jvp(jax.grad(problem.f), (w,), (jnp.ones_like(w),))[1]
    safe = jnp.where(jnp.isfinite(curvature) & (curvature > 0), curvature, _huge(w))
    return lambda r: r / safe


def _dense(problem: Problem, w: Array):
    """Solve with the Hessian; where it is flat, with the smallest step; at a kink, with none.

    The Hessian is first scaled to a unit diagonal, without which near a steep border the steep
    coordinates make all others look flat.
    """
    hessian = jax.hessian(problem.f)(w)
    diagonal = lax.stop_gradient(jnp.diagonal(hessian))
    bad = ~jnp.isfinite(diagonal)
    unit = jnp.where(~bad & (diagonal > 0), diagonal, 1.0) ** -0.5
    hessian = jnp.where(bad[:, None] | bad[None, :], 0.0, hessian) * unit[:, None] * unit
    values, vectors = jnp.linalg.eigh(lax.stop_gradient(hessian))
    flat = values <= 1e2 * jnp.finfo(w.dtype).eps * jnp.max(jnp.abs(values))
    null = jnp.where(flat, vectors, 0.0)
    lifted = hessian + null @ null.T * jnp.maximum(jnp.max(jnp.abs(values)), 1e-30)
    keep = lambda r: r - null @ (null.T @ r)
    return lambda r: unit * keep(jnp.linalg.solve(lifted, keep(jnp.where(bad, 0.0, unit * r))))


def _first(problem: Problem, theta: Array, objective) -> Array:
    """The best point of a ray from `start` along theta, over sizes from tiny to huge."""
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
