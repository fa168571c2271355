r"""Descent along the gradient of the total loss, through all rounds of a run.

The derivatives of the total loss by the numbers are exact; `olx.tune.slopes` says how they are
computed. Each of several starts is a descent of its own, and all of them are played as one sweep.
Steps are taken in the unit box, so in the logarithm of a number whose range has positive ends. From
a point $z$ with slope $g$, and with a matrix $H$ that approximates the inverse of the second
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

The total loss is not convex in such numbers, so a descent ends in a local minimum. Start from
several places, or from the best of a sweep, as `both` does: the sweep finds the right valley, also
past cliffs where runs diverge; the gradient finds its lowest point, which no grid of reasonable
size contains.

Nocedal, Wright, Numerical Optimization, 2006, chapters 4 and 6.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx import _check as check
from olx._pytree import as_tree
from olx._refusal import RefusedType, RefusedValue, public
from olx.core import Learner, Loss, Rounds
from olx.engine.chunks import take
from olx.streams.sparse_rows import SparseRows
from olx.tune.halving import halving_trials
from olx.tune.problem import Problem, Ranges, Trial, Tuned, problem, spread
from olx.tune.slopes import OfAction, sloped, slopes


@public
def by_gradient(
    make: Callable[..., Learner],
    loss: Loss,
    rounds: Rounds,
    params: PyTree,
    *,
    over: Ranges,
    starts: int = 4,
    steps: int = 8,
) -> Tuned:
    r"""Choose numbers by gradient steps from several starts.

    A step plays the stream once per start. It costs about $1 + n$ runs for $n$ numbers. A start
    whose run diverges is dropped. If the loss jumps where the numbers change, as the number of
    mistakes does, its slope is of no use: take `by_halving`.

    make: a function of the numbers that gives a learner.
    over: the range of each number by name, as in `by_halving`.
    starts: how many places to start from; they are spread evenly over the ranges.
    steps: how often each descent may try a new point.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_regression(jax.random.key(0), rounds=400, features=5)
    >>> make = lambda eta: olx.linear(olx.ogd(eta))
    >>> found = olx.tune.by_gradient(
    ...     make, olx.losses.squared, rounds, jnp.zeros(5), over={"eta": (1e-4, 1.0)}
    ... )
    >>> best = found.numbers["eta"]
    >>> near = [olx.run(make(eta), olx.losses.squared, rounds, jnp.zeros(5)).total
    ...         for eta in (0.9 * best, 1.1 * best)]
    >>> bool(found.total < min(near))
    True
    """
    given = problem(make, loss, rounds, params, over)
    check.count("starts", starts)
    check.count("steps", steps)
    _check_smooth(given)
    history, runs = _descents(given, spread(starts, len(given.ranges)), steps, starts)
    _check_starts(given, history[:starts])
    return given.result(history, runs)


@public
def both(
    make: Callable[..., Learner],
    loss: Loss,
    rounds: Rounds,
    params: PyTree,
    *,
    over: Ranges,
    configurations: int = 64,
    ratio: int = 4,
    finalists: int = 4,
    starts: int = 1,
    steps: int = 6,
) -> Tuned:
    """Choose numbers by `by_halving`, and go on with `by_gradient` from the best ones.

    make: a function of the numbers that gives a learner.
    over: the range of each number by name, as in `by_halving`.
    configurations, ratio, finalists: of the sweeps, as in `by_halving`.
    starts: from how many of the finalists to descend.
    steps: how often each descent may try a new point.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_regression(jax.random.key(0), rounds=400, features=5)
    >>> def make(eta, q):
    ...     return olx.linear(olx.omd(eta, olx.mirrors.pnorm(q)))
    >>> found = olx.tune.both(
    ...     make, olx.losses.squared, rounds, jnp.zeros(5),
    ...     over={"eta": (1e-4, 10.0), "q": (1.1, 2.0)}, configurations=16, steps=4,
    ... )
    >>> sorted(found.numbers), found.note, found.runs < 25
    (['eta', 'q'], '', True)
    """
    given = problem(make, loss, rounds, params, over)
    check.count("starts", starts)
    check.count("steps", steps)
    if starts > finalists:
        raise RefusedValue(f"`starts` must be at most `finalists`, {finalists}, got {starts}.")
    _check_smooth(given)
    history, runs = halving_trials(given, configurations, ratio, finalists)
    whole = [one for one in history if one.rounds == given.length and np.isfinite(one.total)]
    if not whole:
        return given.result(history, runs)  # refuses
    best = sorted(whole, key=lambda trial: trial.total)[:starts]
    places = [[one.place(t.numbers[name]) for name, one in given.ranges.items()] for t in best]
    more, cost = _descents(given, np.clip(places, 0.0, 1.0), steps, configurations)
    return given.result(history + more, runs + cost)


def _descents(
    given: Problem, places: np.ndarray, steps: int, among: int
) -> tuple[list[Trial], float]:
    """All trials, and their cost in runs; `places` [K, n] are the starts.

    among: how many points were spread over the ranges; the first radius is half their distance.

    A descent ends where the slope is 0 or not finite.
    """
    history: list[Trial] = []
    radius = min(LARGEST, 0.5 * among ** (-1 / len(given.ranges)))
    first = zip(places, *_look(given, places, history), strict=True)
    walks = [Walk(*one, radius) for one in first]
    for _ in range(steps):
        tries = [proposed_point(walk) for walk in walks]
        live = [i for i, point in enumerate(tries) if point is not None]
        if not live:
            break
        pairs = zip(walks, tries, strict=True)
        points = np.stack([walk.at if point is None else point for walk, point in pairs])
        values, gradients = _look(given, points, history)
        for i in live:
            walks[i] = next_walk(walks[i], points[i], values[i], gradients[i])
    return history, len(history) * (1.0 + len(given.ranges))


@np.errstate(over="ignore", invalid="ignore")  # a run may diverge
def _look(
    given: Problem, places: np.ndarray, history: list[Trial]
) -> tuple[np.ndarray, np.ndarray]:
    """The total losses at `places`, and their slopes in the unit box."""
    numbers = given.numbers(places)
    learners = sloped(given.make, given.loss, {k: jnp.asarray(v) for k, v in numbers.items()})
    loss = OfAction(as_tree(given.loss))
    run = given.sweep(learners, loss, given.rounds, measure=slopes)
    curve: Any = run.curve
    values, own = np.asarray(curve.total)[:, -1], np.asarray(curve.sums)[:, -1]
    rows = given.rows(numbers)
    for row, value, each in zip(rows, values, own, strict=True):
        named = dict(zip(given.ranges, each.tolist(), strict=True))
        history.append(Trial(row, given.length, float(value), named))
    stretch = [one.stretch(numbers[name]) for name, one in given.ranges.items()]
    return values, own * np.stack(stretch, axis=1)


def _check_smooth(given: Problem) -> None:
    """Refuse games that have no derivatives, before they are played."""
    if isinstance(given.rounds.context, SparseRows):
        raise RefusedType(
            "derivatives need dense rows: pass `rows.toarray()`, or take "
            "`olx.tune.by_halving`, which plays sparse rows."
        )
    row = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), take(given.rounds, 0, 1))
    middle = given.rows(given.numbers(np.full((1, len(given.ranges)), 0.5)))[0]
    learner = given.make(**middle)
    act = lambda params, context: learner.predict(learner.init(params), context)
    try:
        actions = jax.eval_shape(act, given.params, row.context)
    except Exception:
        return  # the driver says what is wrong
    for leaf in jax.tree.leaves(actions):
        if not jnp.issubdtype(leaf.dtype, jnp.floating):
            raise RefusedType(
                f"the action of this learner is of type {leaf.dtype}, so its loss "
                "has no derivative; take `olx.tune.by_halving`."
            )


def _check_starts(given: Problem, first: list[Trial]) -> None:
    """Refuse if no descent could begin."""
    slopes = np.array([list((trial.slopes or {}).values()) for trial in first])
    known = np.isfinite([trial.total for trial in first]) & np.all(np.isfinite(slopes), axis=1)
    if not known.any():
        raise RefusedValue(
            f"the run diverges from all {len(first)} starts: its loss or its slope "
            "is not finite. Lower the upper ends of the ranges, or take `olx.tune.both`, which "
            "starts where a sweep is best."
        )
    if not np.any(slopes[known]):
        names = " and ".join(f"`{name}`" for name in given.ranges)
        raise RefusedValue(
            f"the total loss has the slope 0 in {names} at all starts that do not "
            "diverge; it does not depend smoothly on these numbers. Take `olx.tune.by_halving`."
        )


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
def proposed_point(walk: Walk) -> np.ndarray | None:
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
def next_walk(walk: Walk, point: np.ndarray, value: float, slope: np.ndarray) -> Walk:
    """The walk after its proposal was tried."""
    step = point - walk.at
    length = float(np.linalg.norm(step))
    if not (np.isfinite(value) and np.all(np.isfinite(slope))):
        return walk._replace(radius=length / 4)
    inverse = _updated_inverse(walk.inverse, step, slope - walk.slope)
    if value <= walk.value:
        full = length > 0.99 * walk.radius
        radius = min(LARGEST, 2 * walk.radius) if full else walk.radius
        return Walk(point, value, slope, radius, inverse)
    tried = Walk(point, value, slope, min(LARGEST, 2 * length))
    if walk.risen is None:
        return walk._replace(radius=length / 4, inverse=inverse, risen=tried)
    return min(tried, walk.risen, key=lambda one: one.value)


def _updated_inverse(
    inverse: np.ndarray | None, step: np.ndarray, change: np.ndarray
) -> np.ndarray | None:
    """The approximation of the inverse after a step and the change of the slope along it."""
    curvature, sizes = float(step @ change), np.linalg.norm(step) * np.linalg.norm(change)
    if not np.isfinite(change @ change) or curvature <= 1e-10 * sizes:
        return inverse
    if inverse is None:
        inverse = np.eye(len(step)) * curvature / float(change @ change)
    side = np.eye(len(step)) - np.outer(step, change) / curvature
    return side @ inverse @ side.T + np.outer(step, step) / curvature
