r"""A primal-dual interior-point method for a sum of convex functions with two equalities.

$$\min_a \sum_r f_r(a_r) \quad\text{such that}\quad A a = b, \quad p_r a_r \le q_r,$$

with $A$ of two rows. With multipliers $\lambda > 0$ of the inequalities, $\nu$ of the equalities
and $s = q - p a$, a step solves the linearized conditions of optimality

$$f'(a) + \lambda p + A^\top \nu = 0, \qquad \lambda s = \eta / (10 d), \qquad
  \eta = \textstyle\sum_r \lambda_r s_r.$$

The Hessian is diagonal, so a step needs one system of two equations and costs $O(d)$. Steps keep
$A a = b$, since the first point has it. $\eta$ is the surrogate gap: where the first condition
holds, the value of the primal exceeds that of the dual by $\eta$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 7.3.2, with
the signs and factors of its equations corrected; Boyd and Vandenberghe, Convex Optimization, 2004,
section 11.7.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from olx import _check as check
from olx.core import Scalar

_SHRINK = 0.1  # the next gap is aimed at this share of the present one
_HALVINGS = 40
_STEPS = 60


class Solution(NamedTuple):
    point: Float[Array, " d"]
    inequality: Float[Array, " d"]  # the multipliers lambda
    equality: Float[Array, " 2"]  # the multipliers nu
    gap: Float[Array, ""]  # the surrogate gap
    steps: Int[Array, ""]


def interior_point(
    slopes: Callable[[Array], tuple[Array, Array]],
    equalities: Float[Array, "2 d"],
    signs: Float[Array, " d"],
    bounds: Float[Array, " d"],
    start: Float[Array, " d"],
    gap: Scalar = 1e-10,
) -> Solution:
    r"""Solve until the surrogate gap is at most `gap`, in at most 60 steps.

    slopes: $a \mapsto (f'(a), f''(a))$, entry by entry.
    equalities: $A$; $b$ is $A$ times `start`.
    signs, bounds: $p$ and $q$.
    start: strictly feasible, $p a < q$.

    It can be differentiated forward only.

    >>> import jax.numpy as jnp
    >>> target = jnp.array([0.9, 0.4, -0.5])
    >>> half_square = lambda a: (a - target, jnp.ones_like(a))
    >>> sums = jnp.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    >>> done = interior_point(half_square, sums, -jnp.ones(3), jnp.zeros(3), jnp.ones(3) / 3, 1e-6)
    >>> [round(float(one), 3) for one in done.point]
    [0.75, 0.25, 0.0]
    """
    check.function("interior_point", "slopes", slopes)
    for name, given in (("signs", signs), ("bounds", bounds)):
        check.same_shape("interior_point", f"`{name}`", given, "`start`", start)
    if jnp.shape(equalities) != (2, *jnp.shape(start)):
        raise TypeError(
            f"interior_point: `equalities` has shape {jnp.shape(equalities)}, two rows as long as "
            f"`start` are needed, {(2, *jnp.shape(start))}; fill the second with zeros if there is "
            "one equality."
        )
    a, p, q = equalities, signs, bounds
    size = start.shape[0]
    room = lambda x: q - p * x

    def target(eta: Array) -> Array:
        return _SHRINK * eta / size

    def residual(x: Array, lam: Array, nu: Array, aim: Array) -> Array:
        dual = slopes(x)[0] + lam * p + nu @ a
        return jnp.sqrt(jnp.sum(dual**2) + jnp.sum((lam * room(x) - aim) ** 2))

    def step(now: Solution) -> Solution:
        x, lam, nu = now.point, now.inequality, now.equality
        aim, s, (first, second) = target(now.gap), room(x), slopes(x)
        u = -first - aim * p / s - nu @ a
        z = second + lam * p**2 / s
        turn = _solve(a, z, u)
        along = (u - turn @ a) / z
        change = (lam * p * along + aim) / s - lam
        before = residual(x, lam, nu, aim)

        def moved(t: Array) -> tuple[Array, Array, Array]:
            return x + t * along, lam + t * change, nu + t * turn

        def too_far(search: tuple[Array, Array]) -> Array:
            t, halvings = search
            here = moved(t)
            legal = jnp.all(room(here[0]) > 0) & jnp.all(here[1] > 0)
            less = residual(*here, aim) <= (1 - 0.01 * t) * before
            return ~(legal & less) & (halvings < _HALVINGS)

        halve = lambda search: (search[0] / 2, search[1] + 1)
        t, halvings = lax.while_loop(too_far, halve, (jnp.ones_like(before), jnp.zeros((), int)))
        x, lam, nu = moved(jnp.where(halvings < _HALVINGS, t, 0.0))
        stuck = halvings == _HALVINGS  # only rounding is left
        steps = jnp.where(stuck, _STEPS, now.steps + 1)
        return Solution(x, lam, nu, jnp.sum(lam * room(x)), steps)

    lam = jnp.ones_like(start)
    nu = jnp.zeros(2, start.dtype)
    first = Solution(start, lam, nu, jnp.sum(room(start)), jnp.zeros((), int))
    unfinished = lambda now: (now.gap > gap) & (now.steps < _STEPS)
    return lax.while_loop(unfinished, step, first)


def _solve(a: Float[Array, "2 d"], z: Array, u: Array) -> Float[Array, " 2"]:
    r"""The solution $n$ of $A\,\mathrm{diag}(1/z) A^\top n = A (u / z)$."""
    (m00, m01), (_, m11) = (a / z) @ a.T
    r0, r1 = a @ (u / z)
    whole = (m00 > 0) & (m11 > 0)
    m00, m11 = jnp.where(m00 > 0, m00, 1.0), jnp.where(m11 > 0, m11, 1.0)
    det = m00 * m11 - jnp.where(whole, m01, 0.0) ** 2
    return jnp.stack([m11 * r0 - m01 * r1, m00 * r1 - m01 * r0]) / det
