r"""The Legendre transform $f^*(\theta) = \sup_w \langle\theta, w\rangle - f(w)$, numerically.

By the envelope theorem, the value at the maximizer $w(\theta)$ has the gradient $w(\theta)$ in
$\theta$ and $-\partial_p f(w; p)$ in a hyperparameter $p$ of $f$. A hyperparameter $p$ of the
domain, such as the radius of a ball, moves $w$ and adds $\langle\theta - \nabla f(w), \partial_p
w\rangle$. With this as derivative rule, `jax.grad` of a conjugate is exact; so are higher
derivatives, because $w(\theta)$ itself is differentiable.

Without a formula, $w(\theta)$ is found coordinate by coordinate if $f$ is separable, which cannot
fail, else by Newton's method with backtracking on $f(w) - \langle\theta, w\rangle$, optionally in
the affine space $\sum_i w_i = s$: the step $d$ then solves $H d + \nu 1 = r$ with $\sum_i d_i = 0$.
The derivative is implicit: at the solution $\nabla f(w; p) = \theta$, so $dw = H^{-1}(d\theta -
\partial_p \nabla f\,dp)$ with $H = \nabla^2 f(w)$.

Boyd, Vandenberghe, Convex Optimization, 2004, chapters 9 and 10.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, Int, PyTree
from optax import tree

from olx import _numeric as safe
from olx._pytree import pytree, static
from olx.convex import roots
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


def from_argmax(f: Partial, argmax: Partial) -> Partial:
    """The conjugate of `f`, given the maximizer as a differentiable function of theta."""
    return Partial(_value, f, argmax)


def transform(f: Partial, start: Scalar, total: Scalar | None, separable: bool) -> Partial:
    """The conjugate of `f`, computed numerically; see `mirror_map` for the arguments."""
    return from_argmax(f, Partial(_argmax, Problem(f, start, total, separable)))


def searched(conjugate: Partial) -> Any:
    """The record of the search that finds a conjugate, with its function as `f`; None if a formula
    gives it."""
    if getattr(conjugate, "func", None) is not _value:
        return None
    problem = conjugate.args[1].args[:1]
    return problem[0] if problem and hasattr(problem[0], "start") else None


@jax.custom_jvp
def _value(f: Partial, argmax: Partial, theta: PyTree) -> Array:
    w = argmax(theta)
    return tree.vdot(theta, w) - f(w)


def _value_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    f, argmax, theta = primals
    w = argmax(theta)
    at_w = lambda f, theta: tree.vdot(theta, w) - f(w)
    value, change = jax.jvp(at_w, (f, theta), (_filled(tangents[0]), _filled(tangents[2])))
    if all(isinstance(leaf, SymbolicZero) for leaf in jax.tree.leaves(tangents[1])):
        return value, change
    _, moved = jax.jvp(lambda argmax: argmax(theta), (argmax,), (_filled(tangents[1]),))
    pull = jax.tree.map(_pull, theta, jax.grad(f)(w))
    return value, change + tree.vdot(pull, moved)


_value.defjvp(_value_jvp, symbolic_zeros=True)


def _pull(theta: Array, slope: Array) -> Array:
    """theta - grad f(w) per coordinate; 0 where the gradient is infinite, since w cannot move."""
    stuck = ~jnp.isfinite(slope)
    return jnp.where(stuck, 0.0, theta - jnp.where(stuck, 0.0, slope))


def _filled(tangents: PyTree) -> PyTree:
    zero = lambda leaf: np.zeros(leaf.shape, leaf.dtype)
    return jax.tree.map(lambda t: zero(t) if isinstance(t, SymbolicZero) else t, tangents)


def _argmax(problem: Problem, theta: PyTree) -> PyTree:
    flat, unravel = ravel_pytree(theta)
    f = Partial(_on_flat, problem.f, Partial(unravel))
    return unravel(_solve(Problem(f, problem.start, problem.total, problem.separable), flat))


def _on_flat(f: Partial, unravel: Partial, w: Float[Array, " d"]) -> Array:
    return f(unravel(w))


@jax.custom_jvp
def _solve(problem: Problem, theta: Float[Array, " d"]) -> Float[Array, " d"]:
    """The maximizer: coordinate by coordinate if `f` is separable, else by damped Newton steps."""
    if not problem.separable:
        return newton(problem, theta)
    slope, total = jax.grad(problem.f), problem.total
    if total is None:
        return roots.invert(slope, theta, jnp.full_like(theta, problem.start))
    start = jnp.full_like(theta, total / theta.size)
    return roots.invert_with_total(slope, theta, total, start)


@_solve.defjvp
def _solve_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    problem, theta = primals
    w = _solve(problem, theta)
    residual = lambda problem, theta: theta - jax.grad(problem.f)(w)
    _, moved = jax.jvp(residual, primals, tangents)
    dw = newton_step(problem, w, moved)
    if problem.total is not None:
        along = newton_step(problem, w, jnp.zeros_like(w), 1.0)
        dw = dw + along * jnp.asarray(tangents[0].total, w.dtype)
    return w, dw


class Search(NamedTuple):
    w: Float[Array, " d"]
    value: Float[Array, ""]
    steps: Int[Array, ""]
    near: Int[Array, ""]  # full steps taken without progress in the value
    done: Bool[Array, ""]


def newton(problem: Problem, theta: Float[Array, " d"]) -> Float[Array, " d"]:
    """The maximizer, by Newton steps with backtracking from the best point of a ray."""
    if problem.total is not None:
        theta = theta - jnp.max(theta)  # same solution, avoids cancellation
    eps = jnp.finfo(theta.dtype).eps
    objective = lambda w: _finite(problem.f(w) - jnp.vdot(theta, w))
    slope = lambda w: jax.grad(problem.f)(w) - theta

    def improve(search: Search) -> Search:
        here = slope(search.w)
        downhill = newton_step(problem, search.w, -here)
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

    first = _best_on_ray(problem, theta, objective)
    value = objective(first)
    lost = ~jnp.isfinite(value)  # a dual that has diverged, or a start outside the domain
    search = Search(first, value, jnp.zeros((), int), jnp.zeros((), int), lost)
    unfinished = lambda search: ~search.done & (search.steps < _STEPS)
    return jnp.where(lost, jnp.nan, lax.while_loop(unfinished, improve, search).w)


def newton_step(problem: Problem, w: Array, r: Array, total: float = 0.0) -> Array:
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


def _best_on_ray(problem: Problem, theta: Array, objective: Callable) -> Array:
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
