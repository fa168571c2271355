r"""Proximal map and conjugate of convex functions of one number, from values and slopes.

Two tangents of a convex $f$, left and right of the solution, bound $f$ from below. Their crossing
is the next point to evaluate; it is exact if $f$ is piecewise linear with one kink between them. A
secant step on the slopes converges fast for smooth functions. If neither makes the bracket much
shorter, the next point is its middle. At every evaluated point Fenchel-Young is an equality,
$f^*(f'(s)) = s f'(s) - f(s)$, and $f^*$ is convex. So the chord between two such points is an upper
bound of the conjugate, for any accuracy of the search.

A point where the value or the slope is not finite lies outside the domain. Its slope is set to plus
infinity right of the domain and to minus infinity left of it.

This search is not the one of `olx.convex.roots`. That one takes Newton steps, so it needs a
derivative of the slope, which kinks do not have; and it keeps one point, where the chord needs two.

All functions here are batched: `look` maps points `[T]` to values and slopes `[T]`.
Rockafellar, Convex Analysis, 1970, section 23.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int

from olx import _numeric as safe
from olx.core import Scalar

Points = Array  # [T]
Look = Callable[[Points], tuple[Points, Points]]

LOOKS = 240  # the most evaluations; crossing of the tangents, secant and middle take turns


class Seen(NamedTuple):
    at: Points
    value: Points
    slope: Points  # infinite outside the domain


class Bracket(NamedTuple):
    """The evaluated points left and right of the solution."""

    low: Seen
    high: Seen


class Search(NamedTuple):
    bracket: Bracket
    length: Points  # the length of the bracket three evaluations ago
    done: Bool[Array, " T"]
    looks: Int[Array, ""]


def prox(
    look: Look, near: Points, step: Scalar | Points, z: Points, rho: Scalar = 1.0
) -> tuple[Points, Points]:
    r"""$s = \arg\min c f(s) + \frac{\rho}{2} (s - z)^2$ and $\rho (z - s)$, $c$ times its slope.

    near: a point in the domain, such as $z$ if it is in the domain.
    step: $c$, non-negative.
    """
    here = Seen(near, *look(near))
    bound = z - step * here.slope / rho
    there = _see(look, bound, jnp.where(bound < near, -jnp.inf, jnp.inf))
    excess = lambda seen: _within(seen, step * seen.slope + rho * (seen.at - z))
    limit = lambda seen: _within(seen, step * seen.slope / rho - z)

    def model_minimum(b: Bracket) -> Points:
        return jnp.clip(crossing(b), -limit(b.high), -limit(b.low))

    b = Bracket(*(_pick(bound < near, *two) for two in ((there, here), (here, there))))
    b = _shrink(look, b, excess, model_minimum)
    s = _inside(b, model_minimum(b))
    # Rounding must not push the slope out of its range: the conjugate is infinite there.
    return s, jnp.clip(rho * (z - s), step * b.low.slope, step * b.high.slope)


def conjugate(look: Look, alpha: Points, near: Points) -> tuple[Points, Points]:
    r"""An upper bound on $f^*(\alpha) = \sup_s \alpha s - f(s)$, tight up to rounding, and its $s$.

    Both are infinite if no slope of $f$ reaches $\alpha$.

    near: the start of the search, in the domain.
    """
    b, found = _enclose(look, alpha, near)
    b = _shrink(look, b, lambda seen: seen.slope - alpha, crossing)
    s, spread = _inside(b, crossing(b)), b.high.slope - b.low.slope
    curved = (spread > 0) & jnp.isfinite(spread)
    share = safe.divide(alpha - b.low.slope, spread, 0.0, curved)
    left, right = (seen.slope * seen.at - seen.value for seen in b)
    chord = jnp.where(share > 0, left + share * (right - left), left)
    ends = alpha * s - jnp.where(jnp.isinf(b.low.slope), b.high.value, b.low.value)
    value = jnp.where(jnp.isinf(spread), ends, jnp.where(share >= 1, right, chord))
    nowhere = jnp.where(b.low.slope > alpha, -jnp.inf, jnp.inf)
    return jnp.where(found, value, jnp.inf), jnp.where(found, s, nowhere)


def _enclose(look: Look, alpha: Points, near: Points) -> tuple[Bracket, Bool[Array, " T"]]:
    """A bracket that starts at `near`, and whether some slope in it reaches `alpha`."""
    here = Seen(near, *look(near))
    up = here.slope < alpha
    side = jnp.where(up, jnp.inf, -jnp.inf)
    reached = lambda seen: jnp.where(up, seen.slope >= alpha, seen.slope <= alpha)
    far = float(jnp.finfo(near.dtype).max) ** 0.25  # beyond this a square might overflow

    def widen(carry: tuple) -> tuple:
        k, width, inner, outer = carry
        there = _see(look, near + jnp.where(up, width, -width), side)
        done = reached(outer)
        inner, outer = _pick(done, inner, outer), _pick(done, outer, there)
        return k + 1, width * 2.0**k, inner, outer

    def unfinished(carry: tuple) -> Array:
        _, width, _, outer = carry
        return jnp.any(~reached(outer) & (width < far))

    width = 1e-3 * (1 + jnp.abs(near))
    *_, inner, outer = lax.while_loop(unfinished, widen, (1, width, here, here))
    rest = jnp.abs((alpha - outer.slope) * outer.at)
    found = reached(outer) | (rest <= jnp.finfo(near.dtype).eps)  # reached up to rounding
    return Bracket(_pick(up, inner, outer), _pick(up, outer, inner)), found


def _shrink(look: Look, bracket: Bracket, excess: Callable, guess: Callable) -> Bracket:
    def secant(b: Bracket) -> Points:
        low, high = excess(b.low), excess(b.high)
        usable = (high > low) & jnp.isfinite(high - low)
        share = safe.divide(-low, high - low, 0.5, usable)
        return b.low.at + jnp.clip(share, 0.0, 1.0) * (b.high.at - b.low.at)

    def look_once(search: Search) -> Search:
        b, turn = search.bracket, search.looks % 3
        length = _length(b)
        slow = jnp.where(length > search.length / 2, _middle(b), guess(b))
        trial = jnp.where(turn == 0, guess(b), jnp.where(turn == 1, secant(b), slow))
        outside = jnp.where(jnp.isinf(b.low.slope), -jnp.inf, jnp.inf)
        seen = _see(look, jnp.clip(trial, b.low.at, b.high.at), outside)
        left = excess(seen) <= 0
        new = Bracket(_pick(left, seen, b.low), _pick(left, b.high, seen))
        b = _pick(search.done, b, new)
        length = jnp.where(turn == 2, length, search.length)
        return Search(b, length, search.done | settled(b), search.looks + 1)

    def settled(b: Bracket) -> Array:
        s = jnp.clip(guess(b), b.low.at, b.high.at)
        rounding = 4 * jnp.finfo(s.dtype).eps * (1 + jnp.abs(s))
        return ~(jnp.minimum(s - b.low.at, b.high.at - s) > rounding)

    unfinished = lambda search: (search.looks < LOOKS) & jnp.any(~search.done)
    first = Search(bracket, _length(bracket), settled(bracket), jnp.zeros((), int))
    return lax.while_loop(unfinished, look_once, first).bracket


def _see(look: Look, s: Points, outside: Points) -> Seen:
    value, slope = look(s)
    known = jnp.isfinite(value) & jnp.isfinite(slope)
    return Seen(s, jnp.where(known, value, jnp.inf), jnp.where(known, slope, outside))


def crossing(b: Bracket) -> Points:
    """Where the tangents cross; the middle if one end lies outside the domain."""
    width, turn = b.high.at - b.low.at, b.high.slope - b.low.slope
    from_low = b.low.value - b.high.value + b.high.slope * width
    usable = (turn > 0) & jnp.isfinite(from_low)
    inside = safe.divide(from_low, turn, 0.0, usable)
    return jnp.where(jnp.isinf(turn), _middle(b), b.low.at + jnp.clip(inside, 0.0, width))


def _middle(b: Bracket) -> Points:
    """The middle of the bracket, on a logarithmic scale if it spans orders of magnitude."""
    middle = jnp.sinh((jnp.arcsinh(b.low.at) + jnp.arcsinh(b.high.at)) / 2)
    return jnp.clip(middle, b.low.at, b.high.at)


def _length(b: Bracket) -> Points:
    return jnp.arcsinh(b.high.at) - jnp.arcsinh(b.low.at)


def _inside(b: Bracket, s: Points) -> Points:
    """`s`; if one end lies outside the domain, the other end."""
    s = jnp.where(jnp.isinf(b.high.slope), b.low.at, s)
    return jnp.where(jnp.isinf(b.low.slope), b.high.at, s)


def _within(seen: Seen, number: Points) -> Points:
    """`number` if the point is in the domain, else its infinite slope."""
    return jnp.where(jnp.isfinite(seen.slope), number, seen.slope)


def _pick(condition: Array, yes: NamedTuple, no: NamedTuple):
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)
