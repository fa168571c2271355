r"""Quasi-Newton descent in the unit box, with steps of bounded length.

From a point $z$ with slope $g$, and with a matrix $H$ that approximates the inverse of the second
derivative, the next point is

$$z + \Pi_\rho(-H g), \qquad\text{projected to the box,}$$

where $\Pi_\rho$ shortens a step to the radius $\rho$. A coordinate at an end of its range whose
slope points outwards stays there. If the value falls, the walk goes to the new point; the radius
doubles after a full step. If it rises or is not finite, the walk stays and the radius becomes a
quarter of the step. In both cases the pair of steps and slopes updates $H$ by the rule of Broyden,
Fletcher, Goldfarb and Shanno, if it shows positive curvature. Where the value is steep, a step is
not shorter than a two-hundredth of a range: a pair of far points can make $H$ too small.

With large step sizes a run can be chaotic: its total loss is jagged, and the slope at one point
says nothing about the valley around it. If the value rises twice in a row, the walk goes on from
the lower of the two points that it tried.

Nocedal, Wright, Numerical Optimization, 2006, chapters 4 and 6.
"""

from typing import NamedTuple

import numpy as np

LARGEST = 0.25  # radius, in units of a range
LEAST = 1e-4  # a shorter step changes nothing
SHORT, STEEP = 5e-3, 1e-3  # where a short step would change the value by so much, it is not shorter
WORTH = 1e-6  # of the value; a step that promises less is not worth a run


class Walk(NamedTuple):
    """A descent: where it is, what is known there, and how to go on."""

    at: np.ndarray  # [n]
    value: float
    slope: np.ndarray  # [n]
    radius: float = 0.1
    inverse: np.ndarray | None = None  # [n, n]; None before the first step
    risen: "Walk | None" = None  # the point that was tried last, if its value was higher


@np.errstate(over="ignore", invalid="ignore")  # a run that nearly diverges has huge slopes
def proposal(walk: Walk) -> np.ndarray | None:
    """The next point to try; None if the walk is at its end."""
    if not (np.isfinite(walk.value) and np.all(np.isfinite(walk.slope))):
        return None
    outwards = (walk.at <= 0) & (walk.slope > 0) | (walk.at >= 1) & (walk.slope < 0)
    slope = np.where(outwards, 0.0, walk.slope)
    top = np.abs(slope).max()
    if top == 0:
        return None
    size = float(top * np.linalg.norm(slope / top))
    if walk.inverse is None:
        step = -walk.radius * (slope / top) / np.linalg.norm(slope / top)
    else:
        step = -np.where(np.outer(~outwards, ~outwards), walk.inverse, 0.0) @ slope
        short = min(SHORT, walk.radius)
        length = float(np.linalg.norm(step))
        if length < short and size * short > STEEP * abs(walk.value):
            step = step * short / length  # the curvature of a far point was too large
        elif -0.5 * float(step @ slope) < WORTH * abs(walk.value):
            return None
    step = step * min(1.0, walk.radius / float(np.linalg.norm(step)))
    point = np.clip(walk.at + step, 0.0, 1.0)
    return None if np.linalg.norm(point - walk.at) < LEAST else point


@np.errstate(over="ignore", invalid="ignore")
def after(walk: Walk, point: np.ndarray, value: float, slope: np.ndarray) -> Walk:
    """The walk after its proposal was tried."""
    step = point - walk.at
    length = float(np.linalg.norm(step))
    if not (np.isfinite(value) and np.all(np.isfinite(slope))):
        return walk._replace(radius=length / 4)
    inverse = _bent(walk.inverse, step, slope - walk.slope)
    if value <= walk.value:
        full = length > 0.99 * walk.radius
        radius = min(LARGEST, 2 * walk.radius) if full else walk.radius
        return Walk(point, value, slope, radius, inverse)
    tried = Walk(point, value, slope, min(LARGEST, 2 * length))
    if walk.risen is None:
        return walk._replace(radius=length / 4, inverse=inverse, risen=tried)
    return min(tried, walk.risen, key=lambda one: one.value)


def _bent(inverse: np.ndarray | None, step: np.ndarray, change: np.ndarray) -> np.ndarray | None:
    """The approximation of the inverse after a step and the change of the slope along it."""
    curvature = float(step @ change)
    if not np.isfinite(change @ change) or curvature <= 1e-10 * np.linalg.norm(
        step
    ) * np.linalg.norm(change):
        return inverse
    if inverse is None:
        inverse = np.eye(len(step)) * curvature / float(change @ change)
    side = np.eye(len(step)) - np.outer(step, change) / curvature
    return side @ inverse @ side.T + np.outer(step, step) / curvature
