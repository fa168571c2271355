r"""The Legendre transform $f^*(\theta) = \sup_w \langle\theta, w\rangle - f(w)$, in numbers.

The value at the maximizer $w(\theta)$ has, by the envelope theorem, the gradient $w(\theta)$ in
$\theta$ and $-\partial_p f(w; p)$ in any number $p$ inside $f$. A number $p$ of the domain, such as
the radius of a ball, moves $w$ itself and adds $\langle\theta - \nabla f(w), \partial_p w\rangle$.
Written as a derivative rule this makes `jax.grad` of a conjugate exact, and exact again when
differentiated, because $w(\theta)$ itself is differentiable.

Without a formula, $w(\theta)$ is found coordinate by coordinate where $f$ is separable, which
cannot fail, and else by Newton's method with backtracking on $f(w) - \langle\theta, w\rangle$; in
the affine space $\sum_i w_i = s$ if asked. At the solution
$\nabla f(w; p) = \theta$, so $dw = H^{-1}(d\theta - \partial_p \nabla f\,dp)$ with
$H = \nabla^2 f(w)$: the implicit derivative.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, Int, PyTree
from optax import tree

from olx._pytree import pytree, static
from olx.convex import _monotone
from olx.core import Scalar

_STEPS = 1000
_HALVINGS = 40


def from_argmax(f: Partial, argmax: Partial) -> Partial:
    """The conjugate of `f`, given the maximizer as a differentiable function of theta."""
    return Partial(_value, f, argmax)


def transform(f: Partial, start: Scalar, total: Scalar | None, separable: bool) -> Partial:
    """The conjugate of `f`, found numerically; see `mirror_map` for the arguments."""
    return from_argmax(f, Partial(_argmax, Problem(f, start, total, separable)))


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


@jax.custom_jvp
def _value(f: Partial, argmax: Partial, theta: PyTree) -> Array:
    w = argmax(theta)
    return tree.vdot(theta, w) - f(w)


def _value_jvp(primals, tangents):
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
    """How much a move along each coordinate is worth; where the slope is infinite, w is stuck."""
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
    """The maximizer: coordinate by coordinate if it can be, else by damped Newton steps."""
    if problem.separable and problem.total is None:
        start = jnp.full_like(theta, problem.start)
        return _monotone.invert(jax.grad(problem.f), theta, start)
    if problem.separable:
        start = jnp.full_like(theta, problem.total / theta.size)
        return _monotone.invert_with_total(jax.grad(problem.f), theta, problem.total, start)
    return _damped_newton(problem, theta)


def _damped_newton(problem: Problem, theta: Float[Array, " d"]) -> Float[Array, " d"]:
    """Newton steps with backtracking, from the best point of a ray."""
    objective = lambda w: _finite(problem.f(w) - jnp.vdot(theta, w))
    slope = lambda w: jax.grad(problem.f)(w) - theta

    def step(search: Search) -> Search:
        downhill = _newton(problem, search.w, -slope(search.w))
        decrease = -jnp.vdot(slope(search.w), downhill)

        def shorter(trial):
            return trial[0] / 2, trial[1] + 1

        def too_long(trial):
            size, halvings = trial
            ahead = search.w + size * downhill
            # by slopes, not by values: they still tell far from near where values have no digits
            enough = jnp.isfinite(objective(ahead)) & (jnp.vdot(slope(ahead), downhill) <= decrease / 2)
            return ~enough & (halvings < _HALVINGS)

        size, halvings = lax.while_loop(too_long, shorter, (jnp.ones_like(decrease), 0))
        flat = jnp.finfo(theta.dtype).eps * (1 + jnp.abs(search.value))
        close = decrease <= 8 * flat  # the value no longer shows progress: trust the full step
        close &= jnp.isfinite(objective(search.w + downhill))
        size = jnp.where(close, 1.0, jnp.where(halvings == _HALVINGS, 0.0, size))
        trial = search.w + size * downhill
        better = jnp.isfinite(objective(trial)) & jnp.all(jnp.isfinite(trial))
        w = jnp.where(better, trial, search.w)
        small = jnp.max(jnp.abs(w - search.w)) <= 4 * jnp.finfo(theta.dtype).eps * jnp.max(
            jnp.abs(w)
        )
        stop = small | (halvings == _HALVINGS) & ~close | ~better
        return Search(w, objective(w), search.steps + 1, stop)

    first = _first(problem, theta, objective)
    search = Search(first, objective(first), jnp.zeros((), int), jnp.zeros((), bool))
    unfinished = lambda search: ~search.done & (search.steps < _STEPS)
    return lax.while_loop(unfinished, step, search).w


@_solve.defjvp
def _solve_jvp(primals, tangents):
    problem, theta = primals
    w = _solve(problem, theta)
    residual = lambda problem, theta: theta - jax.grad(problem.f)(w)
    _, moved = jax.jvp(residual, primals, tangents)
    dw = _newton(problem, w, moved)
    if problem.total is not None:
        along = _newton(problem, w, jnp.zeros_like(w), 1.0)
        dw = dw + along * jnp.asarray(tangents[0].total, w.dtype)
    return w, dw


def _newton(problem: Problem, w: Array, r: Array, total: float = 0.0) -> Array:
    """Solve H d = r, or H d + nu 1 = r with sum(d) = total where the sum of w is fixed."""
    solve = _diagonal(problem, w) if problem.separable else _dense(problem, w)
    d = solve(r)
    if problem.total is None:
        return d
    ones = solve(jnp.ones_like(w))
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
