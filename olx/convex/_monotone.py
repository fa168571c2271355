r"""Solve $g(w_i) = \theta_i$ for an increasing $g$, for all coordinates in parallel.

If the sum of the coordinates is fixed, solve $g(w_i) = \theta_i - \nu$. The sum decreases in $\nu$,
so the same search finds the multiplier $\nu$.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float

from olx import _numeric as safe
from olx.convex.roots import search, with_slope
from olx.core import Scalar

Slope = Callable[[Float[Array, " d"]], Float[Array, " d"]]


def invert(slope: Slope, theta: Float[Array, " d"], start: Float[Array, " d"]) -> Array:
    """The w with slope(w) = theta; `slope` is an elementwise function of a vector."""

    def look(w: Array, memory: None):
        at, curve = with_slope(slope, w)
        return at - theta, curve, memory

    far = jnp.full_like(start, jnp.inf)
    return search(look, -far, far, start, ~jnp.isfinite(theta))[0]


def invert_with_total(
    slope: Slope, theta: Float[Array, " d"], total: Scalar, start: Float[Array, " d"]
) -> Array:
    """The w with slope(w) = theta - nu and sum `total`; `start` must have the same sum."""
    theta = theta - jnp.max(theta)  # nu shifts with it; avoids cancellation
    at, curve = with_slope(slope, start)
    level = theta - at  # nu lies between the smallest and the largest of these
    steep = safe.or_one(curve, jnp.isfinite(curve) & (curve > 0))
    first = jnp.sum(level / steep) / jnp.sum(1 / steep)

    def look(nu: Array, w: Array):
        warm = jnp.where(jnp.isfinite(w) & (jnp.abs(w) < 1e6 * (1 + jnp.abs(start))), w, start)
        w = invert(slope, theta - nu, warm)
        return total - jnp.sum(w), jnp.sum(1 / with_slope(slope, w)[1]), w

    _, w = search(look, jnp.min(level), jnp.max(level), first, ~jnp.isfinite(first), start)
    give = 1 / with_slope(slope, w)[1]
    give = jnp.where(jnp.isfinite(give), give, 0.0)
    share = give / safe.or_one(jnp.sum(give))
    return w + share * (total - jnp.sum(w))
