r"""Solvers for the best comparator in hindsight, each with a lower bound on the optimum.

`solve_linear_model`: the best linear predictor, for any convex loss of the score.

$$\min_{w \in S} \sum_t c_t\, \ell_t(\langle w, x_t \rangle) \;\ge\;
  -\sum_t (c_t \ell_t)^*(\alpha_t) - \sigma_S\Big(-\sum_t \alpha_t x_t\Big)
  \qquad \text{for every } \alpha \in \mathbb{R}^T.$$

The left side is split as $\sum_t c_t \ell_t(z_t)$ with $z_t = \langle w, x_t \rangle$ and $w \in
S$. The alternating direction method of multipliers solves it; its multipliers are the $\alpha_t$ of
the right side. It uses only values and slopes of the loss, so any convex loss will do, also one
with kinks. The first point is a Newton step from the start. For a quadratic loss it is the solution
of weighted least squares that is nearest to the start.

`solve_projected`: the best point of any convex function on a convex set, by accelerated gradients.

$$w_{k+1} = P_S\Big(v_k - \tfrac1L \nabla F(v_k)\Big), \qquad
  F(w) - \min_S F \le \langle \nabla F(w), w \rangle + \sigma_S(-\nabla F(w)).$$

$v_k$ is extrapolated with momentum. The momentum is reset to 0 when it points uphill. $L$ adapts to
the curvature seen. The bound on the right is the linearization of $F$ at $w$, minimized over $S$.
It holds for any subgradient of any convex $F$. It is 0 at the minimum if $F$ is smooth there.

Boyd, Parikh, Chu, Peleato, Eckstein, Distributed Optimization and Statistical Learning via the
Alternating Direction Method of Multipliers, 2011, sections 3 and 8; O'Donoghue, Candes, Adaptive
Restart for Accelerated Gradient Schemes, 2015.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float

from olx import _numeric as safe
from olx.convex import tangents
from olx.convex.sets import ConvexSet
from olx.core import Scalar

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


def solve_linear_model(
    look: tangents.Look,
    x: Float[Array, "T d"],
    w: Float[Array, " d"],
    domain: ConvexSet,
    tolerance: Scalar,
    steps: Scalar,
) -> Best:
    """Minimize from `w` until value - lower <= tolerance * (1 + |value|), or for `steps` steps.

    look: the function scores -> (values, slopes) of the weighted losses of all rounds.
    domain: a set of flat vectors.
    """
    lower = _bounded_lower if domain.bounded else _free_lower
    invert, kappa = _normal_equations(x, domain)
    limit = jnp.maximum(tolerance, 32 * jnp.finfo(x.dtype).eps)

    def step(s: Split) -> Split:
        w = invert(x.T @ (s.z - s.alpha / s.rho) + kappa * (s.v - s.nu / s.rho))
        xw = RELAX * (x @ w) + (1 - RELAX) * s.z
        relaxed = RELAX * w + (1 - RELAX) * s.v
        at = xw + s.alpha / s.rho
        z, alpha = tangents.prox(look, at, 1.0, at, s.rho)
        v = domain.project(relaxed + s.nu / s.rho)
        nu = s.nu + s.rho * (relaxed - v)
        return Split(z, alpha, v, nu, s.rho)

    def judge(s: Split, best: Best) -> Best:
        newton = domain.project(_newton(look, x, best.w))
        polished = domain.project(_polish(look, x, s))
        points = jnp.stack([best.w, s.v, polished, newton])
        at = points @ x.T
        losses, slopes = jax.vmap(look)(at)
        values = jnp.sum(losses, axis=1)
        first = jnp.nanargmin(values)
        z = jnp.where(first == 3, at[3], s.z)
        alpha = jnp.where(first == 3, slopes[3], s.alpha)
        bound = jnp.fmax(best.lower, lower(look, x, domain, z, alpha))
        return Best(points[first], values[first], bound)

    def judge_and_step(carry: tuple) -> tuple:
        k, s, best, _ = carry
        best = judge(s, best)
        s = lax.fori_loop(0, CHECK_EVERY, lambda _, s: step(s), s)
        off_primal = x @ s.v - s.z
        off_dual = x @ invert(x.T @ s.alpha + kappa * s.nu)
        rho = _rebalance(s, off_primal, off_dual, k)
        open_gap = ~(best.value - best.lower <= limit * (1 + jnp.abs(best.value)))
        return k + CHECK_EVERY, s._replace(rho=rho), best, open_gap

    unfinished = lambda carry: (carry[0] <= steps) & carry[3]

    start = domain.project(w)
    z = x @ start
    losses, alpha = look(z)
    rho = (jnp.mean(jnp.abs(alpha)) + 1e-3) / (jnp.mean(jnp.abs(z)) + 1.0)
    split = Split(z, alpha, start, jnp.zeros_like(w), rho)
    best = Best(start, jnp.sum(losses), jnp.asarray(-jnp.inf, x.dtype))
    return lax.while_loop(unfinished, judge_and_step, (0, split, best, jnp.asarray(True)))[2]


def _bounded_lower(look: Callable, x: Array, domain: ConvexSet, z: Array, alpha: Array) -> Array:
    return -jnp.sum(tangents.conjugate(look, alpha, z)[0]) - domain.support(-(x.T @ alpha))


def _free_lower(look: Callable, x: Array, domain: ConvexSet, z: Array, alpha: Array) -> Array:
    r"""The lower bound without constraint: $\alpha$ is moved so that $\sum_t \alpha_t x_t = 0$.

    Each $\alpha_t$ may move as far as the slopes at a small step from $z_t$ to either side. If no
    move works, the bound is that of $\alpha = 0$: the sum of the smallest losses.
    """
    size = jnp.sum(jnp.abs(x) * jnp.abs(alpha)[:, None])

    def bound(width: Array) -> Array:
        room = _room(look, z, alpha, width)
        gram = x.T @ (room[:, None] * x)
        correct = lambda _, a: a - room * (x @ jnp.linalg.lstsq(gram, x.T @ a)[0])
        moved = lax.fori_loop(0, 3, correct, jnp.where(width > 0, alpha, 0.0))
        vanishes = jnp.max(jnp.abs(x.T @ moved)) <= 64 * jnp.finfo(x.dtype).eps * size
        return jnp.where(vanishes, -jnp.sum(tangents.conjugate(look, moved, z)[0]), -jnp.inf)

    return jnp.nanmax(lax.map(bound, jnp.array([0.0, 1e-3, 1.0], x.dtype)))


def _room(look: Callable, z: Array, alpha: Array, width: Array) -> Array:
    step = width * (1 + jnp.abs(z))
    _, (low, high) = jax.vmap(look)(jnp.stack([z - step, z + step]))
    return jnp.maximum(jnp.minimum(alpha - low, high - alpha), 0.0)


def _newton(look: Callable, x: Array, w: Array) -> Array:
    s = x @ w
    slope, curvature = jax.jvp(lambda s: look(s)[1], (s,), (jnp.ones_like(s),))
    return w - _least_squares(
        x, jnp.where(curvature > 0, curvature, 0.0), slope / safe.or_one(curvature)
    )


def _polish(look: Callable, x: Array, s: Split) -> Array:
    """Move scores that are near a kink exactly onto it."""
    on_kink = _room(look, s.z, s.alpha, float(jnp.finfo(x.dtype).eps) ** 0.4)
    return s.v + _least_squares(x, on_kink, s.z - x @ s.v)


def _least_squares(x: Array, weight: Array, target: Array) -> Array:
    root = jnp.sqrt(weight)
    q, r = jnp.linalg.qr(root[:, None] * x)
    return jnp.linalg.lstsq(r, q.T @ (root * target))[0]


def _normal_equations(x: Array, domain: ConvexSet) -> tuple[Callable, Array]:
    rounds, features = x.shape
    scale = jnp.sum(x * x) / features
    scale = safe.or_one(scale)
    kappa = scale * (0.1 if domain.bounded else 1e3 * float(jnp.finfo(x.dtype).eps))
    if features <= rounds:
        factor = cho_factor(x.T @ x + kappa * jnp.eye(features, dtype=x.dtype))
        return lambda b: cho_solve(factor, b), kappa
    factor = cho_factor(x @ x.T + kappa * jnp.eye(rounds, dtype=x.dtype))
    return lambda b: (b - x.T @ cho_solve(factor, x @ b)) / kappa, kappa


def _rebalance(s: Split, off_primal: Array, off_dual: Array, k: Array) -> Array:
    norm, tiny = jnp.linalg.norm, jnp.finfo(off_primal.dtype).tiny
    ratio = (norm(off_primal) * norm(s.alpha) + tiny) / (norm(off_dual) * norm(s.z) + tiny)
    factor = jnp.clip(ratio, 0.04, 25.0) ** 0.5
    return jnp.where((k < 2000) & (jnp.abs(jnp.log(ratio)) > 1), s.rho * factor, s.rho)


class Point(NamedTuple):
    w: Float[Array, " d"]
    value: Array
    grad: Float[Array, " d"]


class Descent(NamedTuple):
    here: Point
    ahead: Float[Array, " d"]  # the extrapolated point
    momentum: Array
    curvature: Array  # L


def solve_projected(
    function: Callable[[Float[Array, " d"]], Array],
    w: Float[Array, " d"],
    domain: ConvexSet,
    tolerance: Scalar,
    steps: Scalar,
) -> Best:
    """Minimize from `w` until value - lower <= tolerance * (1 + |value|), or for `steps` steps.

    domain: a set of flat vectors; if unbounded, the gap is infinite unless the gradient is 0.
    """
    eps = float(jnp.finfo(w.dtype).eps)
    limit = jnp.maximum(tolerance, 32 * eps)
    look = lambda w: Point(w, *jax.value_and_grad(function)(w))

    def try_step(source: Point, curvature: Array) -> tuple[Point, Array]:
        new = look(domain.project(source.w - source.grad / curvature))
        move = new.w - source.w
        bend = jnp.vdot(new.grad - source.grad, move)
        return new, bend <= curvature * jnp.vdot(move, move)

    def step(carry: tuple) -> tuple:
        k, s, best, _ = carry
        ahead = look(s.ahead)
        source = _choose(jnp.isfinite(ahead.value), ahead, s.here)
        double = lambda trial: (trial[0] + 1, 2 * trial[1], *try_step(source, 2 * trial[1]))
        rejected = lambda trial: ~trial[3] & (trial[0] < 60)
        first = 0.8 * s.curvature
        trial = lax.while_loop(rejected, double, (0, first, *try_step(source, first)))
        _, curvature, new, _ = trial
        uphill = jnp.vdot(source.w - new.w, new.w - s.here.w) > 0
        momentum = jnp.where(uphill, 1.0, (1 + jnp.sqrt(1 + 4 * s.momentum**2)) / 2)
        speed = jnp.where(uphill, 0.0, (s.momentum - 1) / momentum)
        moved = jnp.max(jnp.abs(new.w - source.w)) > eps * jnp.max(jnp.abs(new.w))
        after = Descent(new, new.w + speed * (new.w - s.here.w), momentum, curvature)
        best = _judge(best, new, domain)
        return k + 1, after, best, moved & ~closed(best)

    closed = lambda best: best.value - best.lower <= limit * (1 + jnp.abs(best.value))
    unfinished = lambda carry: (carry[0] < steps) & carry[3]

    start = look(domain.project(w))
    if domain.bounded and domain.farthest is not None:
        vertex = look(domain.farthest(-start.grad))  # the minimum if F is linear
        start = _choose(vertex.value < start.value, vertex, start)
    best = _judge(Best(start.w, start.value, jnp.full_like(start.value, -jnp.inf)), start, domain)
    one = jnp.ones_like(start.value)
    size = jnp.linalg.norm(start.grad)
    descent = Descent(start, start.w, one, jnp.where(size > 0, size, one))
    return lax.while_loop(unfinished, step, (0, descent, best, ~closed(best)))[2]


def _judge(best: Best, point: Point, domain: ConvexSet) -> Best:
    lower = point.value - jnp.vdot(point.grad, point.w) - domain.support(-point.grad)
    better = point.value < best.value
    return Best(
        jnp.where(better, point.w, best.w),
        jnp.where(better, point.value, best.value),
        jnp.fmax(best.lower, lower),
    )


def _choose(first: Array, a: Point, b: Point) -> Point:
    return jax.tree.map(lambda a, b: jnp.where(first, a, b), a, b)
