r"""Solve $g(w_i) = \theta_i$ for an increasing $g$, coordinate by coordinate, all at once.

Every coordinate keeps a bracket. It takes Newton's step where that stays inside the bracket and is
at most half as long as the step before, else the middle of the bracket, else, while one side is
still open, a step some times as long as the last. A point where $g$ is NaN or breaks the order lies
outside the domain and closes the bracket. So nothing is asked of $g$ but to increase, and smooth
ones converge quadratically.

With the sum of the coordinates fixed, $g(w_i) = \theta_i - \nu$, and the multiplier $\nu$ is found
in the same way: the sum decreases in $\nu$.

Press, Teukolsky, Vetterling, Flannery, Numerical Recipes, 3rd edition, 2007, section 9.4.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from olx.core import Scalar

_STEPS = 400
_GROWTH = 8

Slope = Callable[[Float[Array, " d"]], Float[Array, " d"]]


class Search(NamedTuple):
    trial: Float[Array, " d"]
    good: Float[Array, " d"]  # the last trial inside the domain
    miss: Float[Array, " d"]  # of the good one
    low: Float[Array, " d"]
    high: Float[Array, " d"]
    last: Float[Array, " d"]  # the length of the last step
    done: Bool[Array, " d"]
    steps: Int[Array, ""]


def invert(slope: Slope, theta: Float[Array, " d"], start: Float[Array, " d"]) -> Array:
    """The w with slope(w) = theta; slope takes and gives a vector and mixes no coordinates."""

    def step(search: Search) -> Search:
        at, curve = _with_curvature(slope, search.trial)
        return _next(search, at - theta, curve)

    lost = ~jnp.isfinite(theta)  # a dual that has diverged
    unfinished = lambda search: jnp.any(~search.done) & (search.steps < _STEPS)
    found = lax.while_loop(unfinished, step, _begin(start)._replace(done=lost)).good
    return jnp.where(lost, jnp.nan, found)


def invert_with_total(
    slope: Slope, theta: Float[Array, " d"], total: Scalar, start: Float[Array, " d"]
) -> Array:
    """The w with slope(w) = theta - nu that adds up to `total`, from a `start` that does so."""
    theta = theta - jnp.max(theta)  # nu takes it up; saves digits
    at, curve = _with_curvature(slope, start)
    level = theta - at  # nu lies between the smallest and the largest of these
    steep = jnp.where(jnp.isfinite(curve) & (curve > 0), curve, 1.0)
    first = jnp.sum(level / steep) / jnp.sum(1 / steep)

    def step(carry):
        search, w = carry
        warm = jnp.where(jnp.isfinite(w) & (jnp.abs(w) < 1e6 * (1 + jnp.abs(start))), w, start)
        w = invert(slope, theta - search.trial, warm)
        give = 1 / _with_curvature(slope, w)[1]
        return _next(search, total - jnp.sum(w), jnp.sum(give)), w

    unfinished = lambda carry: ~carry[0].done & (carry[0].steps < _STEPS)
    search = _begin(first)._replace(low=jnp.min(level), high=jnp.max(level))
    search = search._replace(done=~jnp.isfinite(first))
    search, w = lax.while_loop(unfinished, step, (search, start))
    give = 1 / _with_curvature(slope, w)[1]
    give = jnp.where(jnp.isfinite(give), give, 0.0)
    share = give / jnp.where(jnp.sum(give) > 0, jnp.sum(give), 1.0)
    return w + share * (total - jnp.sum(w))


def _begin(start: Array) -> Search:
    far, unknown = jnp.full_like(start, jnp.inf), jnp.full_like(start, jnp.nan)
    nowhere = jnp.zeros(start.shape, bool)
    return Search(start, start, unknown, -far, far, far, nowhere, jnp.zeros((), int))


def _next(search: Search, miss: Array, curve: Array) -> Search:
    """Learn from the trial, whose `miss` is increasing in it, and choose the next."""
    w, eps = search.trial, jnp.finfo(search.trial.dtype).eps
    disorder = (w < search.good) & (miss > search.miss) | (w > search.good) & (miss < search.miss)
    inside = ~jnp.isnan(miss) & ~disorder
    below = jnp.where(inside, miss < 0, w < search.good)
    above = jnp.where(inside, miss > 0, w > search.good)
    low = jnp.where(below, jnp.maximum(w, search.low), search.low)
    high = jnp.where(above, jnp.minimum(w, search.high), search.high)
    good = jnp.where(inside, w, search.good)

    jump = -miss / jnp.where(curve > 0, curve, 1.0)
    newton = w + jump
    smooth = inside & (curve > 0) & jnp.isfinite(curve) & jnp.isfinite(jump)
    usable = smooth & (newton > low) & (newton < high) & (jnp.abs(jump) <= search.last / 2)
    open_ended = jnp.isinf(low) | jnp.isinf(high)
    stride = jnp.where(jnp.isinf(search.last), 1 + jnp.abs(w), _GROWTH * search.last)
    onward = jnp.where(jnp.isinf(high), good + stride, good - stride)
    other = jnp.where(open_ended, onward, low / 2 + high / 2)
    trial = jnp.where(usable, newton, other)

    settled = smooth & (jnp.abs(jump) <= 2 * eps * jnp.abs(w))
    narrow = ~open_ended & (high - low <= eps * jnp.maximum(jnp.abs(low), jnp.abs(high)))
    done = search.done | (inside & (miss == 0)) | settled | narrow
    hold = lambda new, old: jnp.where(search.done, old, new)
    good = hold(jnp.where(settled & usable, newton, good), search.good)
    last = hold(jnp.abs(trial - w), search.last)
    return Search(
        jnp.where(done, good, trial),
        good,
        hold(jnp.where(inside, miss, search.miss), search.miss),
        hold(low, search.low),
        hold(high, search.high),
        last,
        done,
        search.steps + 1,
    )


def _with_curvature(slope: Slope, w: Array) -> tuple[Array, Array]:
    return jax.jvp(slope, (w,), (jnp.ones_like(w),))
