r"""The best point in hindsight of a convex function on a convex set, by accelerated gradients.

$$w_{k+1} = P_S\Big(v_k - \tfrac1L \nabla F(v_k)\Big), \qquad
  F(w) - \min_S F \le \langle \nabla F(w), w \rangle + \sigma_S(-\nabla F(w)).$$

$v_k$ is extrapolated with momentum. The momentum is reset to 0 when it points uphill. $L$ adapts to
the curvature seen. The bound on the right is the linearization of $F$ at $w$, minimized over $S$.
It holds for any subgradient of any convex $F$. It is 0 at the minimum if $F$ is smooth there.

O'Donoghue, Candes, Adaptive Restart for Accelerated Gradient Schemes, 2015.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from olx.convex.sets import ConvexSet
from olx.core import Scalar
from olx.hindsight.linear_model import Best


class Point(NamedTuple):
    w: Float[Array, " d"]
    value: Array
    grad: Float[Array, " d"]


class Descent(NamedTuple):
    here: Point
    ahead: Float[Array, " d"]  # the extrapolated point
    momentum: Array
    curvature: Array  # L


def solve(
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

    def try_step(source: Point, curvature) -> tuple[Point, Array]:
        new = look(domain.project(source.w - source.grad / curvature))
        move = new.w - source.w
        bend = jnp.vdot(new.grad - source.grad, move)
        return new, bend <= curvature * jnp.vdot(move, move)

    def step(carry):
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


def _choose(first, a: Point, b: Point) -> Point:
    return jax.tree.map(lambda a, b: jnp.where(first, a, b), a, b)
