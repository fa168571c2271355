r"""The best fixed matrix in hindsight, and what Newton steps with a fixed matrix cost.

Mirror descent with $\psi(w) = \frac12 w^\top A w$ takes the steps $w_{s+1} = w_s - A^{-1} g_s$ from
$w_1 = 0$. For every $u$

$$\sum_{s \le t} \langle g_s, w_s - u\rangle \le \frac12 \Big( u^\top A u +
  \sum_{s \le t} g_s^\top A^{-1} g_s \Big).$$

If $|\langle u, x_s\rangle| \le C$ and the losses have slopes of at most $L$ in the score, $u$ lies
in $K' = \{u : u^\top G u \le t\, (C L)^2\}$, with $G = \sum_{s \le t} g_s g_s^\top$. If $G$ is
invertible, the right side for the worst $u \in K'$ is

$$\frac12 \Big( t\, (C L)^2\, \lambda_{\max}(G^{-1/2} A G^{-1/2}) + \mathrm{tr}(A^{-1} G) \Big) \ge
  C L \sqrt{d t},$$

with equality for the matrix $A = \frac1{C L} \sqrt{d / t}\, G$. It is no method, because it must be
known before the gradients are, but it says which matrix to aim at. `olx.second_order.newton`, whose
matrix follows $G$, loses a logarithm to it.

Luo, Optimal and Adaptive Online Learning, 2016, propositions 1 and 2.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import RefusedType, RefusedValue, public
from olx.core import Feedback, Learner, Scalar
from olx.frameworks.mistakes import alike
from olx.frameworks.omd import OMDHparams, OMDState
from olx.mirrors.euclidean import euclidean
from olx.mirrors.full_quadratic import full_quadratic
from olx.theorem import MET, UNIT_WEIGHTS, ZERO, About, Certificate, Theorem, summed

AT_ZERO = "the first weights must be 0"


@public
def best_matrix(gradients: Float[Array, "t d"], size: Scalar) -> Float[Array, "d d"]:
    r"""The matrix $\frac1{C L} \sqrt{d / t}\, G$ with the least cost over $K'$.

    gradients: one per row; their squares must add up to an invertible matrix.
    size: $C L$, positive.

    >>> import jax.numpy as jnp
    >>> best_matrix(jnp.eye(2), 0.5).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """
    size = check.positive("size", size)
    if np.ndim(gradients) != 2:
        raise RefusedType(
            f"`gradients` has shape {np.shape(gradients)}; give one gradient per row."
        )
    gram = np.asarray(gradients, float).T @ np.asarray(gradients, float)
    least = np.linalg.eigvalsh(gram)[0] if np.all(np.isfinite(gram)) else np.nan
    if not least > np.finfo(float).eps * len(gram) * np.trace(gram):
        raise RefusedValue(
            "the gradients must span all coordinates, got a smallest eigenvalue of "
            f"{least:.3g}; leave out coordinates that are always 0, or turn the others."
        )
    rounds, width = np.shape(gradients)
    return jnp.asarray(np.sqrt(width / rounds) * gram) / size


class Account(NamedTuple):
    first: Bool[Array, ""]  # whether the first weights are 0
    gram: Float[Array, "d d"]  # G
    rounds: Float[Array, ""]
    regret: Float[Array, ""]  # the sum of <g, w - u>
    terms: Float[Array, ""]  # the sum of absolute values, for the rounding error
    unit: Bool[Array, ""]


@public
def fixed_matrix_regret(size: Scalar) -> Theorem:
    r"""Propositions 1 and 2, for `olx.omd` with the Euclidean or a full quadratic potential.

    `published` is the cost over $K'$, never below $C L \sqrt{d t}$; it is infinite while $G$ is not
    invertible, or if $u$ is not in $K'$. The matrix is that of the potential, over `eta`.

    size: $C L$, positive.
    """
    size = check.positive("size", size)
    parts = terms, Partial(both_sides, size), start
    source = "Luo 2016, propositions 1 and 2"
    return summed("fixed_matrix_regret", source, *parts, about=_FIXED)


def start(hp: OMDHparams, state: OMDState, u: PyTree) -> Account:
    u = check.comparator(u, state.theta)
    first = jnp.all(hp.mirror.to_primal(state.theta) == 0)
    return Account(first, jnp.zeros((u.size, u.size), u.dtype), ZERO, ZERO, ZERO, MET)


def terms(hp: OMDHparams, state: OMDState, feedback: Feedback, u: PyTree) -> Account:
    g, w = feedback.grad, feedback.action
    return Account(
        MET,
        jnp.outer(g, g),
        jnp.ones((), g.dtype),
        jnp.vdot(g, w - u),
        jnp.vdot(jnp.abs(g), jnp.abs(w) + jnp.abs(u)),
        jnp.asarray(feedback.weight) == 1,
    )


def both_sides(size: Scalar, hp: OMDHparams, account: Account, u: PyTree) -> Certificate:
    matrix = jax.hessian(hp.mirror.potential)(jnp.zeros_like(u)) / hp.eta
    root = jnp.linalg.cholesky(matrix)
    half = solve_triangular(root, account.gram, lower=True)
    values = jnp.linalg.eigvalsh(solve_triangular(root, half.T, lower=True))
    energy, most = jnp.sum(values), account.rounds * size**2
    right = (u @ matrix @ u + energy) / 2
    rounding = 64 * u.size * jnp.finfo(u.dtype).eps
    worst = safe.divide(most, values[0], jnp.inf, values[0] > rounding * energy)
    inside = u @ account.gram @ u <= most * (1 + rounding)
    published = jnp.where(inside, (worst + energy) / 2, jnp.inf)
    proof = Certificate(account.regret, right, account.terms + right, published)
    return proof.given(AT_ZERO, account.first).given(UNIT_WEIGHTS, account.unit)


def _is_fixed(learner: Learner) -> bool:
    hp: Any = learner.hparams
    known = euclidean(), full_quadratic(jnp.eye(2))
    return isinstance(hp, OMDHparams) and alike(hp.mirror, *known)


_FIXED = About("`olx.omd` with `euclidean()` or `full_quadratic(matrix)`", _is_fixed)
