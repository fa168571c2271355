r"""Descent along the gradient of the total loss, through all rounds of a run.

The derivatives of the total loss by the numbers are exact; `olx.tune.slopes` says how they are
computed. Each of several starts is a descent of its own, and all of them are played as one sweep.
Steps are taken in the logarithm of a number whose range has positive ends, and points are projected
on the ranges; see `olx.tune.descent`.

The total loss is not convex in such numbers, so a descent ends in a local minimum. Start from
several places, or from the best of a sweep: `olx.tune.both`.
"""

from collections.abc import Callable, Mapping
from typing import Any

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
from olx.tune.descent import LARGEST, Walk, after, proposal
from olx.tune.game import paid
from olx.tune.problem import Problem, problem
from olx.tune.ranges import spread
from olx.tune.result import Trial, Tuned, tuned
from olx.tune.slopes import OfAction, sloped, slopes


@public
def by_gradient(
    make: Callable[..., Learner],
    loss: Loss,
    rounds: Rounds,
    params: PyTree,
    *,
    over: Mapping[str, Any],
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
    check_smooth(given)
    history, runs = descended(given, spread(starts, len(given.ranges)), steps, starts)
    _check_starts(given, history[:starts])
    return tuned(given, history, runs)


def descended(
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
        tries = [proposal(walk) for walk in walks]
        live = [i for i, point in enumerate(tries) if point is not None]
        if not live:
            break
        pairs = zip(walks, tries, strict=True)
        points = np.stack([walk.at if point is None else point for walk, point in pairs])
        values, gradients = _look(given, points, history)
        for i in live:
            walks[i] = after(walks[i], points[i], values[i], gradients[i])
    return history, len(history) * (1.0 + len(given.ranges))


@np.errstate(over="ignore", invalid="ignore")  # a run may diverge
def _look(
    given: Problem, places: np.ndarray, history: list[Trial]
) -> tuple[np.ndarray, np.ndarray]:
    """The total losses at `places`, and their slopes in the unit box."""
    numbers = given.numbers(places)
    learners = sloped(given.make, given.loss, {k: jnp.asarray(v) for k, v in numbers.items()})
    loss = OfAction(as_tree(given.loss))
    run = paid(learners, loss, given.rounds, given.params, measure=slopes)
    curve: Any = run.curve
    values, own = np.asarray(curve.total)[:, -1], np.asarray(curve.sums)[:, -1]
    rows = given.rows(numbers)
    for row, value, each in zip(rows, values, own, strict=True):
        named = dict(zip(given.ranges, each.tolist(), strict=True))
        history.append(Trial(row, given.length, float(value), named))
    stretch = [one.stretch(numbers[name]) for name, one in given.ranges.items()]
    return values, own * np.stack(stretch, axis=1)


def check_smooth(given: Problem) -> None:
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
