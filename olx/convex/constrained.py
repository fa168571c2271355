r"""The maximizer of $\langle\theta, w\rangle - f(w)$ over a closed convex set $S$, numerically.

With the Euclidean projection $P$ on $S$, a point $w$ is the maximizer if and only if, for any step
$s > 0$,

$$F(w) = w - P(z) = 0, \qquad z = w - s\,(\nabla f(w) - \theta).$$

Each step solves the linear equation $(I - P'(z)(I - s \nabla^2 f(w)))\, d = -F(w)$ (a semismooth
Newton step) and takes $P(w + d)$ if that halves the residual. Else it takes the projected gradient
step $P(z)$ if the value falls by as much as a step of size $s$ promises, and else halves $s$. The
matrix is regular for a strictly convex $f$, since $0 \preceq P' \preceq I$ is symmetric. The same
equation, differentiated, gives exact derivatives in $\theta$ and in the numbers of $f$ and $S$.
Where the search does not converge the point is NaN.

Facchinei, Pang, Finite-Dimensional Variational Inequalities and Complementarity Problems, 2003,
chapters 8 and 10.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, Int, PyTree

from olx._pytree import pytree
from olx.core import Scalar

_STEPS = 500
_SIZES = 0.5 ** np.arange(8)  # of a Newton step


@pytree
class Problem:
    f: Partial
    project: Partial
    start: Scalar


def argmax(problem: Problem, theta: PyTree) -> PyTree:
    """The point of the set where <theta, w> - f(w) is largest; the search starts near `start`."""
    flat, unravel = ravel_pytree(theta)
    on_flat = lambda function: Partial(_on_flat, function, Partial(unravel))
    flat_problem = Problem(on_flat(problem.f), on_flat(problem.project), problem.start)
    return unravel(_solve(flat_problem, flat))


def _on_flat(function: Partial, unravel: Partial, w: Float[Array, " d"]) -> Array:
    return ravel_pytree(function(unravel(w)))[0].reshape(-1)


def _value(problem: Problem, w: Array) -> Array:
    return problem.f(w)[0]


def _slope(problem: Problem, w: Array) -> Array:
    return jax.grad(_value, argnums=1)(problem, w)


class Search(NamedTuple):
    w: Float[Array, " d"]
    step: Float[Array, ""]
    residual: Float[Array, ""]  # |F(w)| / s
    steps: Int[Array, ""]
    solved: Bool[Array, ""]  # whether a Newton step moves the point by no more than rounding


@jax.custom_jvp
def _solve(problem: Problem, theta: Float[Array, " d"]) -> Float[Array, " d"]:
    eps = jnp.finfo(theta.dtype).eps
    project = problem.project
    objective = lambda w: _value(problem, w) - jnp.vdot(theta, w)
    pull = lambda w: _slope(problem, w) - theta

    def residual_of(w: Array, step: Array) -> Array:
        size = jnp.max(jnp.abs(w - project(w - step * pull(w)))) / step
        return jnp.where(jnp.isfinite(size), size, jnp.inf)

    def improve(search: Search) -> Search:
        w, step = search.w, search.step
        here = pull(w)
        trial = project(w - step * here)
        direction = _newton_step(problem, w, step, theta, trial - w)
        points = jax.vmap(project)(w + _SIZES[:, None].astype(w.dtype) * direction)
        found = jax.vmap(lambda point: residual_of(point, step))(points)
        good = found <= (1 - _SIZES / 4) * search.residual
        newton = points[jnp.argmax(good)]  # the longest one that is good enough
        by_newton = jnp.any(good)
        moved = trial - w
        promise = jnp.vdot(here, moved) + jnp.vdot(moved, moved) / (2 * step)
        slack = 8 * eps * (1 + jnp.abs(objective(w)))
        by_gradient = residual_of(trial, step)
        falls = jnp.isfinite(by_gradient) & (objective(trial) <= objective(w) + promise + slack)
        after = jnp.where(by_newton, newton, jnp.where(falls, trial, w))
        longer = jnp.where(by_newton, 1.0, jnp.where(falls, 1.5, 0.5)) * step
        solved = jnp.max(jnp.abs(direction)) <= 16 * eps * jnp.max(jnp.abs(w))
        return Search(after, longer, residual_of(after, longer), search.steps + 1, solved)

    first = project(jnp.full_like(theta, problem.start))
    one = jnp.ones((), theta.dtype)
    none = jnp.zeros((), int)
    search = Search(first, one, residual_of(first, one), none, jnp.zeros((), bool))
    left = lambda search: jnp.isfinite(search.residual) & (search.steps < _STEPS)
    found = lax.while_loop(lambda search: ~search.solved & left(search), improve, search)
    return jnp.where(found.solved, found.w, jnp.nan)


def _newton_step(problem: Problem, w: Array, step: Scalar, theta: Array, right: Array) -> Array:
    """Solve (I - P'(z) (I - s H)) d = `right`."""
    identity = jnp.eye(w.size, dtype=w.dtype)
    z = w - step * (_slope(problem, w) - theta)
    hessian = jax.jacfwd(lambda w: _slope(problem, w))(w)
    matrix = identity - jax.jacfwd(problem.project)(z) @ (identity - step * hessian)
    return jnp.linalg.solve(matrix, right)


@_solve.defjvp
def _solve_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    problem, theta = primals
    w = _solve(problem, theta)
    target = lambda problem, theta: problem.project(w - (_slope(problem, w) - theta))
    _, moved = jax.jvp(target, primals, tangents)
    return w, _newton_step(problem, w, 1.0, theta, moved)
