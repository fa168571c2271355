r"""Quasi-Newton descent in the unit box, with steps of bounded length.

From the best point $z$ so far, with slope $g$ and a matrix $H$ that approximates the inverse of the
second derivative, the next point is

$$z + \Pi_\rho(-H g), \qquad\text{projected to the box,}$$

where $\Pi_\rho$ shortens a step to the radius $\rho$. A coordinate at an end of its range whose
slope points outwards stays there. If the value falls, the point is kept; the radius doubles after a
full step. If it rises or is not finite, the point stays and the radius becomes a quarter of the
step. In both cases the pair of steps and slopes updates $H$ by the rule of Broyden, Fletcher,
Goldfarb and Shanno, if it shows positive curvature.

Nocedal, Wright, Numerical Optimization, 2006, chapters 4 and 6.
"""

from typing import NamedTuple

import numpy as np

FIRST = 0.1  # the first radius, in units of a range
LARGEST = 0.25
LEAST = 1e-3  # a shorter step is not worth a run


class Walk(NamedTuple):
    """A descent: its best point, what is known there, and how to go on."""

    at: np.ndarray  # [n]
    value: float
    slope: np.ndarray  # [n]
    inverse: np.ndarray | None = None  # [n, n]; None before the first step
    radius: float = FIRST


def proposal(walk: Walk) -> np.ndarray | None:
    """The next point to try; None if the walk is at its end."""
    if not (np.isfinite(walk.value) and np.all(np.isfinite(walk.slope))):
        return None
    outwards = (walk.at <= 0) & (walk.slope > 0) | (walk.at >= 1) & (walk.slope < 0)
    free, slope = ~outwards, np.where(outwards, 0.0, walk.slope)
    if not np.any(slope):
        return None
    if walk.inverse is None:
        step = -slope * walk.radius / np.linalg.norm(slope)
    else:
        inside = np.outer(free, free)
        step = -np.where(inside, walk.inverse, 0.0) @ slope
    length = np.linalg.norm(step)
    step = step * min(1.0, walk.radius / length)
    point = np.clip(walk.at + step, 0.0, 1.0)
    return None if np.linalg.norm(point - walk.at) < LEAST else point


def after(walk: Walk, point: np.ndarray, value: float, slope: np.ndarray) -> Walk:
    """The walk after its proposal was tried."""
    step = point - walk.at
    length = float(np.linalg.norm(step))
    if not (np.isfinite(value) and np.all(np.isfinite(slope))):
        return walk._replace(radius=length / 4)
    inverse = _bent(walk, step, slope - walk.slope)
    if value > walk.value:
        return walk._replace(inverse=inverse, radius=length / 4)
    full = length > 0.99 * walk.radius
    radius = min(LARGEST, 2 * walk.radius) if full else walk.radius
    return Walk(point, value, slope, inverse, radius)


def _bent(walk: Walk, step: np.ndarray, change: np.ndarray) -> np.ndarray | None:
    """The approximation of the inverse after a pair of steps and slopes."""
    curvature = float(step @ change)
    if curvature <= 1e-10 * np.linalg.norm(step) * np.linalg.norm(change):
        return walk.inverse
    before = walk.inverse
    if before is None:
        before = np.eye(len(step)) * curvature / float(change @ change)
    side = np.eye(len(step)) - np.outer(step, change) / curvature
    return side @ before @ side.T + np.outer(step, step) / curvature
