r"""Ranges of numbers, as the unit box in which tuning takes its points and its steps.

A point $z \in [0, 1]^n$ of the box stands for the numbers

$$\lambda_i = \mathrm{low}_i + z_i (\mathrm{high}_i - \mathrm{low}_i) \quad\text{or}\quad
  \lambda_i = \mathrm{low}_i\, (\mathrm{high}_i / \mathrm{low}_i)^{z_i},$$

the second on a logarithmic axis. The first points of the box are those of an additive recurrence,
$z_k = \tfrac12 + k a \bmod 1$ with $a_i = \phi^{-i}$ and $\phi^{n + 1} = \phi + 1$. They cover the
box more evenly than random points, and they are the same in each call.

Niederreiter, Random Number Generation and Quasi-Monte Carlo Methods, 1992.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from olx import _check as check
from olx._refusal import RefusedType, RefusedValue, public


class Range(NamedTuple):
    """The range of a number; made by `uniform` or `loguniform`."""

    low: float
    high: float
    logarithmic: bool  # whether steps are taken in the logarithm of the number

    def at(self, z: Any) -> np.ndarray:
        """The numbers at places from 0, the lower end, to 1, the upper end."""
        if not self.logarithmic:
            return self.low + np.asarray(z, float) * (self.high - self.low)
        return np.exp(self._log(self.low) + np.asarray(z, float) * self.width)

    def place(self, value: Any) -> np.ndarray:
        """The place of a number, from 0 to 1."""
        if not self.logarithmic:
            return (np.asarray(value, float) - self.low) / self.width
        return (np.log(value) - self._log(self.low)) / self.width

    def stretch(self, value: Any) -> np.ndarray:
        """The derivative of the number by its place."""
        value = np.asarray(value, float)
        return value * self.width if self.logarithmic else np.full_like(value, self.width)

    @property
    def width(self) -> float:
        """The length of the axis."""
        if self.logarithmic:
            return self._log(self.high) - self._log(self.low)
        return self.high - self.low

    @staticmethod
    def _log(value: float) -> float:
        return math.log(value)


@public
def uniform(low: float, high: float) -> Range:
    """A range whose numbers are spread evenly, as in the grids of the lab.

    >>> uniform(0.0, 2.0).at([0.0, 0.5, 1.0]).tolist()
    [0.0, 1.0, 2.0]
    """
    return _checked(low, high, False)


@public
def loguniform(low: float, high: float) -> Range:
    """A range of positive numbers that are spread evenly on a logarithmic axis.

    >>> loguniform(0.01, 1.0).at([0.0, 0.5, 1.0]).round(6).tolist()
    [0.01, 0.1, 1.0]
    """
    return _checked(low, high, True)


def ranges_of(over: Any) -> dict[str, Range]:
    """The range of each number; a pair of positive ends is a range on a logarithmic axis."""
    if not isinstance(over, Mapping) or not over:
        raise RefusedType(
            f"`over` must name at least one number and its range, as "
            f'over={{"eta": (1e-4, 10.0)}}, got {over!r:.80}.'
        )
    return {name: _range(name, given) for name, given in over.items()}


def _range(name: str, given: Any) -> Range:
    if isinstance(given, Range):
        return given
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise RefusedType(
            f"the range of `{name}` must be a pair (low, high), got {given!r:.80}; "
            "`olx.tune.uniform` and `olx.tune.loguniform` also make one."
        )
    low, high = given
    return _checked(low, high, None, f"the range of `{name}`: ")


def _checked(low: Any, high: Any, logarithmic: bool | None, where: str = "") -> Range:
    real = lambda end: isinstance(end, int | float | np.number) and not isinstance(end, bool)
    if not (real(low) and real(high) and math.isfinite(low) and math.isfinite(high)):
        seen = f"{check.quote(low)} and {check.quote(high)}"
        raise RefusedType(f"{where}the ends must be finite numbers, got {seen}.")
    if low >= high:
        raise RefusedValue(f"{where}the lower end must come first and be less, got {low}, {high}.")
    if logarithmic and low <= 0:
        raise RefusedValue(
            f"the ends must be positive, got {low}; `olx.tune.uniform` takes any ends."
        )
    return Range(float(low), float(high), low > 0 if logarithmic is None else logarithmic)


def spread(count: int, numbers: int) -> np.ndarray:
    """`count` points of the unit box, [count, numbers]; one number is divided evenly.

    >>> spread(4, 1)[:, 0].tolist()
    [0.125, 0.375, 0.625, 0.875]
    """
    if numbers == 1:
        return ((np.arange(count) + 0.5) / count)[:, None]
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (numbers + 1))
    steps = root ** -np.arange(1.0, numbers + 1)
    return (0.5 + np.arange(1, count + 1)[:, None] * steps) % 1.0
