r"""The best linear predictor in hindsight, for any convex loss of the score, with a dual bound.

$$\min_{w \in S} \sum_t c_t\, \ell_t(\langle w, x_t \rangle) \;\ge\;
  -\sum_t (c_t \ell_t)^*(\alpha_t) - \sigma_S\Big(-\sum_t \alpha_t x_t\Big)
  \qquad \text{for every } \alpha \in \mathbb{R}^T.$$

The left side is split as $\sum_t c_t \ell_t(z_t)$ with $z_t = \langle w, x_t \rangle$ and $w \in S$
and solved by the alternating direction method of multipliers, whose multipliers are the $\alpha_t$
of the right side. Only values and slopes of the loss are used, so a loss written on the spot is
served like any other, kinks included. The first point is a Newton step from the start: weighted
least squares of least norm where the loss is quadratic.

Boyd, Parikh, Chu, Peleato, Eckstein, Distributed Optimization and Statistical Learning via the
Alternating Direction Method of Multipliers, 2011, sections 3 and 8.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float

from olx.core import Scalar
from olx.hindsight import scores
from olx.hindsight.domains import Domain

RELAX = 1.6
CHECK_EVERY = 20


class Best(NamedTuple):
    """The best point seen, its value, and the best lower bound seen."""

    w: Float[Array, " d"]
    value: Array
    lower: Array


class Split(NamedTuple):
    """The two copies of scores and weights, with their multipliers."""

    z: Float[Array, " T"]
    alpha: Float[Array, " T"]
    v: Float[Array, " d"]
    nu: Float[Array, " d"]
    rho: Array


def solve(
    look: scores.Look,
    x: Float[Array, "T d"],
    w: Float[Array, " d"],
    domain: Domain,
    tolerance: Scalar,
    steps: Scalar,
) -> Best:
    """Minimize from `w` until value - lower <= tolerance * (1 + |value|), or for `steps` steps.

    look: the weighted losses of all rounds: scores -> values, slopes.
    domain: of flat vectors.
    """
    lower = _bounded_lower if domain.bounded else _free_lower
    invert, kappa = _normal_equations(x, domain)
    total = lambda w: jnp.sum(look(x @ w)[0])
    limit = jnp.maximum(tolerance, 32 * jnp.finfo(x.dtype).eps)

    def step(s: Split) -> tuple[Split, Array, Array]:
        w = invert(x.T @ (s.z - s.alpha / s.rho) + kappa * (s.v - s.nu / s.rho))
        xw = RELAX * (x @ w) + (1 - RELAX) * s.z
        relaxed = RELAX * w + (1 - RELAX) * s.v
        z, alpha = scores.prox(look, xw + s.alpha / s.rho, s.rho)
        v = domain.project(relaxed + s.nu / s.rho)
        nu = s.nu + s.rho * (relaxed - v)
        return Split(z, alpha, v, nu, s.rho), x @ w - z, z - s.z

    def judge(s: Split, best: Best) -> Best:
        value = total(s.v)
        better = value < best.value
        return Best(
            jnp.where(better, s.v, best.w),
            jnp.where(better, value, best.value),
            jnp.fmax(best.lower, lower(look, x, domain, s.z, s.alpha)),
        )

    def judge_and_step(carry):
        k, s, best = carry
        best = judge(s, best)
        s = lax.fori_loop(0, CHECK_EVERY - 1, lambda _, s: step(s)[0], s)
        s, primal, change = step(s)
        return k + CHECK_EVERY, _rebalance(s, primal, s.rho * change, k), best

    def unfinished(carry):
        k, _, best = carry
        return (k <= steps) & ~(best.value - best.lower <= limit * (1 + jnp.abs(best.value)))

    start = domain.project(w)
    newton = domain.project(_newton(look, x, start))
    start = jnp.where(total(newton) < total(start), newton, start)
    z = x @ start
    alpha = look(z)[1]
    rho = (jnp.mean(jnp.abs(alpha)) + 1e-3) / (jnp.mean(jnp.abs(z)) + 1.0)
    split = Split(z, alpha, start, jnp.zeros_like(w), rho)
    infinite = jnp.asarray(jnp.inf, x.dtype)
    best = Best(start, infinite, -infinite)
    return lax.while_loop(unfinished, judge_and_step, (0, split, best))[2]


def _bounded_lower(look, x, domain, z, alpha):
    return -jnp.sum(scores.conjugate(look, alpha, z)) - domain.support(-(x.T @ alpha))


def _free_lower(look, x, domain, z, alpha):
    r"""Without constraint $\sum_t \alpha_t x_t$ must vanish: move $\alpha$ where it has room.

    The room of $\alpha_t$ is its distance to the slopes at a step from $z_t$ to either side. Where
    no move works, $\alpha = 0$ remains: the sum of the least losses.
    """
    size = jnp.sum(jnp.abs(x) * jnp.abs(alpha)[:, None])

    def bound(width):
        step = width * (1 + jnp.abs(z))
        room = jnp.minimum(alpha - look(z - step)[1], look(z + step)[1] - alpha)
        room = jnp.maximum(room, 0.0)
        gram = x.T @ (room[:, None] * x)
        correct = lambda _, a: a - room * (x @ jnp.linalg.lstsq(gram, x.T @ a)[0])
        moved = lax.fori_loop(0, 3, correct, jnp.where(width > 0, alpha, 0.0))
        vanishes = jnp.max(jnp.abs(x.T @ moved)) <= 64 * jnp.finfo(x.dtype).eps * size
        lower = -jnp.sum(scores.conjugate(look, moved, z))
        return jnp.where(vanishes, lower, -jnp.inf)

    return jnp.nanmax(lax.map(bound, jnp.array([0.0, 1e-3, 1.0], x.dtype)))


def _newton(look, x, w):
    s = x @ w
    _, slope = look(s)
    curvature = jax.jvp(lambda s: look(s)[1], (s,), (jnp.ones_like(s),))[1]
    curved = curvature > 0
    root = jnp.sqrt(jnp.where(curved, curvature, 1.0))
    rows = jnp.where(curved, root, 0.0)[:, None] * x
    wanted = jnp.where(curved, root * s - slope / root, 0.0)
    return jnp.linalg.lstsq(rows, wanted)[0]


def _normal_equations(x, domain) -> tuple[Callable, Array]:
    rounds, features = x.shape
    scale = jnp.sum(x * x) / features
    scale = jnp.where(scale > 0, scale, 1.0)
    kappa = scale * (0.1 if domain.bounded else 1e3 * float(jnp.finfo(x.dtype).eps))
    if features <= rounds:
        factor = cho_factor(x.T @ x + kappa * jnp.eye(features, dtype=x.dtype))
        return lambda b: cho_solve(factor, b), kappa
    factor = cho_factor(x @ x.T + kappa * jnp.eye(rounds, dtype=x.dtype))
    return lambda b: (b - x.T @ cho_solve(factor, x @ b)) / kappa, kappa


def _rebalance(s: Split, primal, dual, k) -> Split:
    norm = jnp.linalg.norm
    small = jnp.finfo(primal.dtype).tiny
    ratio = (norm(primal) / (norm(s.z) + small)) / (norm(dual) / (norm(s.alpha) + small) + small)
    damped = jnp.clip(ratio, 0.04, 25.0) ** 0.5
    return s._replace(rho=jnp.where((k < 2000) & (jnp.abs(jnp.log(ratio)) > 1), s.rho * damped, s.rho))
