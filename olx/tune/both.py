"""Successive halving, then gradient steps from the best of its finalists.

The sweep finds the right valley, also past cliffs where runs diverge; the gradient finds its
lowest point, which no grid of reasonable size contains.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import PyTree

from olx import _check as check
from olx._refusal import RefusedValue, public
from olx.core import Learner, Loss, Rounds
from olx.tune.gradient import check_smooth, descended
from olx.tune.halving import halved
from olx.tune.problem import problem
from olx.tune.result import Tuned, tuned


@public
def both(
    make: Callable[..., Learner],
    loss: Loss,
    rounds: Rounds,
    params: PyTree,
    *,
    over: Mapping[str, Any],
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
    check_smooth(given)
    history, runs = halved(given, configurations, ratio, finalists)
    whole = [one for one in history if one.rounds == given.length and np.isfinite(one.total)]
    if not whole:
        return tuned(given, history, runs)  # refuses
    best = sorted(whole, key=lambda trial: trial.total)[:starts]
    places = [[one.place(t.numbers[name]) for name, one in given.ranges.items()] for t in best]
    more, cost = descended(given, np.clip(places, 0.0, 1.0), steps, configurations)
    return tuned(given, history + more, runs + cost)
