r"""Quadratics with a diagonal or a full matrix, and an optional penalty.

With a diagonal matrix,

$$\psi(w) = \frac12 \sum_i c_i w_i^2 + \rho F(w), \qquad
  \nabla\psi^*(\theta) = \operatorname{prox}_F(\theta / c, \rho / c).$$

It is used by dual averaging, AdaGrad and their composite forms. With an $\ell_1$ penalty the
decision is a soft threshold. $\psi$ is 1-strongly convex in $(\sum_i c_i w_i^2)^{1/2}$, whose dual
norm is $(\sum_i \theta_i^2 / c_i)^{1/2}$.

With a full matrix,

$$\psi(w) = \tfrac12 w^\top A w + \rho F(w), \qquad
  \nabla\psi^*(\theta) = \arg\min_w \tfrac12 w^\top A w - \langle\theta, w\rangle + \rho F(w).$$

Without penalty the decision is $A^{-1}\theta$; with an $\ell_1$ penalty it solves a lasso. In
general it is the fixed point of $w \mapsto \operatorname{prox}_F(w - \gamma(Aw - \theta),
\gamma\rho)$ with $\gamma = 1/\lambda_{\max}(A)$. It is found by accelerated proximal steps and, now
and then, a Newton step on the fixed-point equation, which is exact once the support is correct. The
derivative is implicit, from the same equation, and correct to second order away from kinks. $\psi$
is 1-strongly convex in $(w^\top A w)^{1/2}$, whose dual norm is $(\theta^\top A^{-1}
\theta)^{1/2}$.

Duchi, Hazan, Singer, Adaptive Subgradient Methods for Online Learning and Stochastic
Optimization, 2011; Nesterov, Introductory Lectures on Convex Optimization, 2004.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.scipy.linalg import cho_factor, cho_solve
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, Int, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import like, pytree
from olx._refusal import RefusedType, RefusedValue, public
from olx.convex import _domain
from olx.convex.norms import Norm
from olx.convex.prox import Penalty
from olx.core import Scalar
from olx.mirrors.base import MirrorMap, with_argmax


@public
def quadratic(
    curvature: PyTree, penalty: Penalty | None = None, strength: Scalar = 1.0
) -> MirrorMap:
    r"""A diagonal quadratic plus a penalty.

    curvature: $c$, non-negative, one number or a tree shaped like a decision. Where it is 0, as for
        a feature that has always been 0, the decision is 0.
    penalty: $F$; must be separable unless the curvature is one number.
    strength: $\rho$, non-negative; for composite losses the step size times the round number.

    >>> import jax.numpy as jnp, olx
    >>> from olx.convex.prox import l1
    >>> curvature = jnp.array([1.0, 2.0, 0.0])
    >>> quadratic(curvature, l1(), 0.5).to_primal(jnp.array([0.25, -4.5, 0.0])).tolist()
    [0.0, -2.0, 0.0]
    """
    curvature = check.non_negative("curvature", curvature, each=True)
    strength = check.non_negative("strength", strength)
    if penalty is not None:
        check.instance("penalty", penalty, Penalty)
        if not penalty.separable and not _single(curvature):
            raise RefusedType(
                "a penalty that mixes coordinates needs one curvature for all of them; "
                "give a number, a separable penalty such as `l1`, or use `full_quadratic`."
            )
    return diagonal_quadratic(curvature, penalty, strength)


def diagonal_quadratic(curvature: PyTree, penalty: Penalty | None, strength: Scalar) -> MirrorMap:
    """`quadratic` of numbers that are known to be legal, as those that a regularizer computes."""
    return with_argmax(
        Partial(_potential, curvature, penalty, strength),
        Partial(_argmax, curvature, penalty, strength),
        norm=Norm(Partial(_norm, curvature), Partial(_dual_norm, curvature)),
        modulus=1.0,
        contains=None if penalty is None else Partial(_is_finite, penalty),
        separable=penalty is None or penalty.separable,
    )


def _penalized(smooth: Array, penalty: Penalty | None, strength: Scalar, w: PyTree) -> Array:
    """A potential plus `strength` times its penalty; an infinite penalty stays infinite."""
    if penalty is None:
        return smooth
    extra = penalty.value(w)
    return smooth + jnp.where(jnp.isinf(extra), extra, strength * extra)


def _is_finite(penalty: Penalty, w: PyTree) -> Array:
    return penalty.value(w) < jnp.inf


def _potential(curvature: PyTree, penalty: Penalty, strength: Scalar, w: PyTree) -> Array:
    return _penalized(_squares(curvature, w) / 2, penalty, strength, w)


def _argmax(curvature: PyTree, penalty: Penalty, strength: Scalar, theta: PyTree) -> PyTree:
    if _single(curvature):
        center = jax.tree.map(lambda leaf: _over(leaf, curvature), theta)
        step = _over(strength, curvature)
    else:
        center = jax.tree.map(_over, theta, curvature)
        step = jax.tree.map(lambda c: _over(strength, c), curvature)
    return center if penalty is None else penalty.prox(center, step)


def _over(top: PyTree, curvature: PyTree) -> Array:
    # a NaN curvature must give NaN, not 0
    return safe.divide(top, curvature, 0.0, curvature != 0)


def _single(curvature: PyTree) -> bool:
    leaf = jax.tree_util.treedef_is_leaf(jax.tree.structure(curvature))
    return leaf and jnp.ndim(curvature) == 0


def _squares(curvature: PyTree, w: PyTree) -> Array:
    squares = jax.tree.map(lambda c, leaf: c * leaf * leaf, like(curvature, w), w)
    return jnp.asarray(tree.sum(squares))


def _norm(curvature: PyTree, w: PyTree) -> Array:
    return safe.sqrt(_squares(curvature, w))


def _dual_norm(curvature: PyTree, theta: PyTree) -> Array:
    def squares(c: Array, leaf: Array) -> Array:
        return safe.divide(leaf * leaf, c, jnp.where(leaf == 0, 0.0, jnp.inf), c != 0)

    return safe.sqrt(jnp.asarray(tree.sum(jax.tree.map(squares, like(curvature, theta), theta))))


_TRIES = 500
_STEPS_BETWEEN = 20


@pytree
class Problem:
    matrix: Float[Array, "d d"]
    penalty: Penalty
    strength: Scalar


class Search(NamedTuple):
    w: Float[Array, " d"]
    ahead: Float[Array, " d"]
    tries: Int[Array, ""]
    done: Bool[Array, ""]


@public
def full_quadratic(
    matrix: Float[Array, "d d"], penalty: Penalty | None = None, strength: Scalar = 1.0
) -> MirrorMap:
    r"""The quadratic $\frac12 w^\top A w$ of a positive definite matrix, plus a penalty.

    matrix: $A$, symmetric positive definite; decisions are vectors of its size.
    penalty: $F$, separable or not; its prox must be differentiable almost everywhere.
    strength: $\rho$, non-negative.

    >>> import jax.numpy as jnp
    >>> from olx.convex.prox import l1
    >>> a = jnp.array([[2.0, 1.0], [1.0, 2.0]])
    >>> full_quadratic(a, l1(), 0.5).to_primal(jnp.array([2.5, 1.25])).round(6).tolist()
    [1.0, 0.0]
    """
    matrix = _positive_definite(matrix)
    strength = check.non_negative("strength", strength)
    if penalty is not None:
        check.instance("penalty", penalty, Penalty)
    problem = None if penalty is None else Problem(matrix, penalty, strength)
    return with_argmax(
        Partial(_full_potential, matrix, penalty, strength),
        Partial(_inverse, matrix) if problem is None else Partial(_solve, problem),
        norm=Norm(Partial(_full_norm, matrix), Partial(_full_dual_norm, matrix)),
        modulus=1.0,
        contains=None if penalty is None else Partial(_is_finite, penalty),
        retraction=Partial(_domain.same) if penalty is None else None,
    )


def _full_potential(matrix: Array, penalty: Penalty, strength: Scalar, w: Array) -> Array:
    return _penalized(w @ matrix @ w / 2, penalty, strength, w)


def _inverse(matrix: Array, theta: Array) -> Array:
    return cho_solve(cho_factor(matrix), theta)


def _full_norm(matrix: Array, w: Array) -> Array:
    return safe.sqrt(w @ matrix @ w)


def _full_dual_norm(matrix: Array, theta: Array) -> Array:
    return safe.sqrt(theta @ _inverse(matrix, theta))


@jax.custom_jvp
def _solve(problem: Problem, theta: Float[Array, " d"]) -> Float[Array, " d"]:
    """The fixed point, up to rounding."""
    values = jnp.linalg.eigvalsh(problem.matrix)
    step, ratio = 1 / values[-1], jnp.sqrt(jnp.maximum(values[0] / values[-1], 0.0))
    momentum = (1 - ratio) / (1 + ratio)
    residual = lambda w: w - _forward(problem, step, theta, w)
    rounding = (16 + theta.size) * float(jnp.finfo(theta.dtype).eps)
    size = lambda w: jnp.max(jnp.abs(w))

    def move(_: Array, pair: tuple) -> tuple[Array, Array]:
        w, ahead = pair
        new = _forward(problem, step, theta, ahead)
        return new, new + momentum * (new - w)

    def attempt(search: Search) -> Search:
        w, ahead = lax.fori_loop(0, _STEPS_BETWEEN, move, (search.w, search.ahead))
        newton = w - jnp.linalg.solve(jax.jacfwd(residual)(w), residual(w))
        better = size(residual(newton)) < size(residual(w))
        left = jnp.where(better, size(residual(newton)), size(residual(w)))
        best = jnp.where(better, newton, w)
        close = ~(left > rounding * (size(best) + step * size(theta)))
        return Search(jnp.where(close, best, w), ahead, search.tries + 1, close)

    start = jnp.zeros_like(theta)
    search = Search(start, start, jnp.zeros((), int), jnp.zeros((), bool))
    unfinished = lambda search: ~search.done & (search.tries < _TRIES)
    return lax.while_loop(unfinished, attempt, search).w


@_solve.defjvp
def _solve_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    problem, theta = primals
    w = _solve(problem, theta)
    step = 1 / jnp.linalg.eigvalsh(lax.stop_gradient(problem.matrix))[-1]
    _, moved = jax.jvp(lambda problem, theta: _forward(problem, step, theta, w), primals, tangents)
    slope = jax.jacfwd(lambda w: w - _forward(problem, step, theta, w))(w)
    return w, jnp.linalg.solve(slope, moved)


def _forward(problem: Problem, step: Array, theta: Array, w: Array) -> Array:
    downhill = w - step * (problem.matrix @ w - theta)
    return problem.penalty.prox(downhill, step * problem.strength)


def _positive_definite(matrix: Array) -> Array:
    if jnp.ndim(matrix) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise RefusedType(
            f"`matrix` must be square, got shape {jnp.shape(matrix)}; for a "
            "diagonal use `quadratic`."
        )
    if isinstance(matrix, Tracer):
        return matrix
    seen = np.asarray(matrix)
    if not np.allclose(seen, seen.T, rtol=1e-5, atol=1e-6 * np.max(np.abs(seen))):
        raise RefusedValue("`matrix` must be symmetric.")
    least = np.linalg.eigvalsh(seen)[0]
    if not least > 0:
        raise RefusedValue(f"`matrix` must be positive definite, got an eigenvalue of {least:.3g}.")
    return matrix
