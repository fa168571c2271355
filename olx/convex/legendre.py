r"""The Legendre transform $f^*(\theta) = \sup_w \langle\theta, w\rangle - f(w)$, numerically.

By the envelope theorem, the value at the maximizer $w(\theta)$ has the gradient $w(\theta)$ in
$\theta$ and $-\partial_p f(w; p)$ in a hyperparameter $p$ of $f$. A hyperparameter $p$ of the
domain, such as the radius of a ball, moves $w$ and adds $\langle\theta - \nabla f(w), \partial_p
w\rangle$. With this as derivative rule, `jax.grad` of a conjugate is exact; so are higher
derivatives, because $w(\theta)$ itself is differentiable.

Without a formula, $w(\theta)$ is found coordinate by coordinate if $f$ is separable, which cannot
fail, else by Newton's method with backtracking on $f(w) - \langle\theta, w\rangle$, optionally in
the affine space $\sum_i w_i = s$. The derivative is implicit: at the solution $\nabla f(w; p) =
\theta$, so $dw = H^{-1}(d\theta - \partial_p \nabla f\,dp)$ with $H = \nabla^2 f(w)$.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx.convex import _newton, roots
from olx.convex._newton import Problem
from olx.core import Scalar


def from_argmax(f: Partial, argmax: Partial) -> Partial:
    """The conjugate of `f`, given the maximizer as a differentiable function of theta."""
    return Partial(_value, f, argmax)


def transform(f: Partial, start: Scalar, total: Scalar | None, separable: bool) -> Partial:
    """The conjugate of `f`, computed numerically; see `mirror_map` for the arguments."""
    return from_argmax(f, Partial(_argmax, Problem(f, start, total, separable)))


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
        return _newton.solve(problem, theta)
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
    dw = _newton.step(problem, w, moved)
    if problem.total is not None:
        along = _newton.step(problem, w, jnp.zeros_like(w), 1.0)
        dw = dw + along * jnp.asarray(tangents[0].total, w.dtype)
    return w, dw
