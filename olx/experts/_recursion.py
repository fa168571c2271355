"""The backward recursion of the drifting game, on the lattice of reachable positions."""

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import RefusedType, RefusedValue
from olx.core import Scalar


def lattice(moves: Sequence[float]) -> tuple[tuple[int, ...], float]:
    """The distinct moves in rising order, as multiples of their common unit; and that unit."""
    seen = np.asarray(moves)
    if seen.ndim != 1 or seen.dtype.kind not in "fiu":
        raise RefusedType(f"`moves` must be a list of numbers, got {check.quote(moves)}.")
    given = [float(z) for z in moves]
    exact = [Fraction(z).limit_denominator(10_000) for z in given if math.isfinite(z)]
    rounded = len(exact) == len(given) and all(
        abs(float(f) - z) <= 1e-12 for f, z in zip(exact, given, strict=True)
    )
    if not rounded or not any(exact):
        raise RefusedValue(
            f"`moves` must be finite multiples of a common unit, not all 0, got "
            f"{tuple(moves)}; round them to a few digits."
        )
    below = math.lcm(*(z.denominator for z in exact))
    whole = [int(z * below) for z in sorted(set(exact))]
    unit = math.gcd(*whole)
    return tuple(step // unit for step in whole), unit / below


def potentials(
    final: Callable[[Array], Array], rounds: int, beta: Scalar, steps: tuple[int, ...], unit: float
) -> Array:
    r"""$\Phi_t(s)$ for $t = 0, \dots, T$ and all $s$ within $T + 1$ of the largest moves from 0."""
    longest = max(abs(step) for step in steps)
    reach = (2 * rounds + 1) * longest
    last = jnp.asarray(final(unit * jnp.arange(-reach, reach + 1, dtype=float)), float)

    def back(phi, _):
        before, _ = solve(beta, steps, unit, [jnp.roll(phi, -step) for step in steps])
        return before, before

    _, earlier = lax.scan(back, last, length=rounds)
    table = jnp.concatenate([earlier[::-1], last[None]])
    inner = rounds * longest
    return table[:, inner:-inner]  # drop the ends, where `roll` wraps around


def solve(
    beta: Scalar, steps: tuple[int, ...], unit: float, phi: list[Array]
) -> tuple[Array, Array]:
    """The value and the weight of a chip, from its potentials after each possible move."""
    none = jnp.full_like(phi[0], -jnp.inf)
    value, weight = none, jnp.zeros_like(phi[0])
    moves = [step * unit for step in steps]
    for z, at in zip(moves, phi, strict=True):
        value = jnp.maximum(value, jnp.where(z >= beta, at, none))
    for (a, at_a), (b, at_b) in itertools.combinations(zip(moves, phi, strict=True), 2):
        mean = ((b - beta) * at_a + (beta - a) * at_b) / (b - a)
        value = jnp.maximum(value, jnp.where((a < beta) & (b >= beta), mean, none))
    for z, at in zip(moves, phi, strict=True):
        below = z < beta
        slope = (at - value) / safe.or_one(beta - z, below)
        weight = jnp.maximum(weight, jnp.where(below, slope, 0.0))
    return value, weight
