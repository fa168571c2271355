r"""Convex functions of one number, known by their value and slope: proximal map and conjugate.

Two tangents of a convex $f$, at a point left and at a point right of the one sought, bound $f$
from below, and their crossing is the next place to look: exact after one look where $f$ has a
kink between them. A secant step on the slopes finishes smooth functions. Fenchel-Young holds with
equality at every point looked at, $f^*(f'(s)) = s f'(s) - f(s)$, and $f^*$ is convex; so the chord
between two such points bounds the conjugate from above, whatever the accuracy of the search.

Everything here works on vectors of functions: `look` takes points `[T]` to values and slopes `[T]`.
Rockafellar, Convex Analysis, 1970, section 23.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from olx.core import Scalar

Points = Array  # [T]
Look = Callable[[Points], tuple[Points, Points]]

LOOKS = 128  # at most, by turns at the crossing of the tangents and at the secant


class Bracket(NamedTuple):
    """Points, values and slopes left and right of the point sought."""

    low: Points
    low_value: Points
    low_slope: Points
    high: Points
    high_value: Points
    high_slope: Points


def prox(look: Look, z: Points, rho: Scalar) -> tuple[Points, Points]:
    r"""$s = \arg\min f(s) + \frac{\rho}{2} (s - z)^2$ and $\rho (z - s)$, a slope of $f$ at $s$."""
    value, slope = look(z)
    other = z - slope / rho
    bracket = _ordered(z, value, slope, other, *look(other))
    excess = lambda s, slope: slope + rho * (s - z)

    def model_minimum(b: Bracket):
        return jnp.clip(_crossing(b), z - b.high_slope / rho, z - b.low_slope / rho)

    b = _shrink(look, bracket, excess, model_minimum)
    s = model_minimum(b)
    # rounding must not push the slope out of the range of slopes: the conjugate is infinite there
    return s, jnp.clip(rho * (z - s), b.low_slope, b.high_slope)


def conjugate(look: Look, alpha: Points, near: Points) -> Points:
    r"""An upper bound on $f^*(\alpha) = \sup_s \alpha s - f(s)$, tight up to rounding.

    Infinite where no slope of $f$ reaches $\alpha$.

    near: where to begin the search.
    """
    b = _enclose(look, alpha, near)
    found = (b.low_slope <= alpha) & (alpha <= b.high_slope)
    excess = lambda s, slope: slope - alpha
    b = _shrink(look, b, excess, _crossing)
    spread = b.high_slope - b.low_slope
    share = jnp.where(spread > 0, (alpha - b.low_slope) / jnp.where(spread > 0, spread, 1.0), 0.0)
    left = b.low_slope * b.low - b.low_value
    right = b.high_slope * b.high - b.high_value
    chord = jnp.where(share > 0, left + share * (right - left), left)
    return jnp.where(found, jnp.where(share >= 1, right, chord), jnp.inf)


def _enclose(look: Look, alpha: Points, near: Points) -> Bracket:
    def widen(carry):
        k, width, b = carry
        below, above = b.low_slope > alpha, b.high_slope < alpha
        low = jnp.where(below, near - width, b.low)
        high = jnp.where(above, near + width, b.high)
        values, slopes = jax.vmap(look)(jnp.stack([low, high]))
        return k + 1, 2 * width, Bracket(low, values[0], slopes[0], high, values[1], slopes[1])

    def unfinished(carry):
        k, _, b = carry
        return (k < 48) & jnp.any((b.low_slope > alpha) | (b.high_slope < alpha))

    nowhere = jnp.full_like(near, jnp.inf)
    start = Bracket(near, nowhere, nowhere, near, nowhere, -nowhere)
    width = 1e-3 * (1 + jnp.abs(near))
    return lax.while_loop(unfinished, widen, (0, width, start))[2]


def _shrink(look: Look, bracket: Bracket, excess: Callable, crossing: Callable) -> Bracket:
    def narrow(b: Bracket, s: Points) -> Bracket:
        s = jnp.clip(s, b.low, b.high)
        value, slope = look(s)
        left = excess(s, slope) <= 0
        known = jnp.isfinite(value) & jnp.isfinite(slope)
        pick = lambda new, old, where: jnp.where(where & known, new, old)
        return Bracket(
            pick(s, b.low, left),
            pick(value, b.low_value, left),
            pick(slope, b.low_slope, left),
            pick(s, b.high, ~left),
            pick(value, b.high_value, ~left),
            pick(slope, b.high_slope, ~left),
        )

    def secant(b: Bracket) -> Points:
        low, high = excess(b.low, b.low_slope), excess(b.high, b.high_slope)
        share = jnp.where(high > low, -low / jnp.where(high > low, high - low, 1.0), 0.0)
        return b.low + jnp.clip(share, 0.0, 1.0) * (b.high - b.low)

    def look_once(carry):
        k, b, _ = carry
        b = narrow(b, jnp.where(k % 2 == 0, crossing(b), secant(b)))
        return k + 1, b, wide(b)

    def wide(b: Bracket) -> Array:
        s = jnp.clip(crossing(b), b.low, b.high)
        rounding = 4 * jnp.finfo(s.dtype).eps * (1 + jnp.abs(s))
        return jnp.any(jnp.minimum(s - b.low, b.high - s) > rounding)

    unfinished = lambda carry: (carry[0] < LOOKS) & carry[2]
    return lax.while_loop(unfinished, look_once, (0, bracket, wide(bracket)))[1]


def _crossing(b: Bracket) -> Points:
    width, turn = b.high - b.low, b.high_slope - b.low_slope
    from_low = b.low_value - b.high_value + b.high_slope * width
    inside = jnp.where(turn > 0, from_low / jnp.where(turn > 0, turn, 1.0), 0.0)
    return b.low + jnp.clip(inside, 0.0, width)


def _ordered(z, value, slope, other, other_value, other_slope) -> Bracket:
    first = slope <= 0  # then the minimum is to the right of z
    pick = lambda a, b: (jnp.where(first, a, b), jnp.where(first, b, a))
    (low, high), values = pick(z, other), pick(value, other_value)
    slopes = pick(slope, other_slope)
    return Bracket(low, values[0], slopes[0], high, values[1], slopes[1])
