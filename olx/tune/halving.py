r"""Successive halving over prefixes of a stream.

A rung plays a prefix of the stream. All configurations play the first rung; the best $1 / r$ of
them, by their loss so far, play on to the next one, and the last rung is the whole stream. With
$N_k$ configurations and $T_k$ rounds in rung $k$, and $T_0 = 0$, this plays

$$\sum_k N_k (T_k - T_{k - 1})$$

rounds, because a configuration goes on from its own state: no round is played twice. If
$N_k \propto r^{-k}$ and $T_k \propto r^k$, all rungs after the first cost alike.

The best of a prefix need not be the best of the stream. For a stream whose rounds are exchangeable,
the means of prefixes settle; for one that drifts, use a lower `ratio` or more `finalists`.

Jamieson, Talwalkar, Non-stochastic Best Arm Identification and Hyperparameter Optimization, 2016.
"""

from collections.abc import Callable

import jax
import numpy as np
from jaxtyping import PyTree

from olx import _check as check
from olx._refusal import RefusedValue, public
from olx.core import Learner, Loss, Rounds
from olx.engine.chunks import take
from olx.tune.problem import Problem, Ranges, Trial, Tuned, problem, spread


@public
def by_halving(
    make: Callable[..., Learner],
    loss: Loss,
    rounds: Rounds,
    params: PyTree,
    *,
    over: Ranges,
    configurations: int = 64,
    ratio: int = 4,
    finalists: int = 4,
) -> Tuned:
    r"""Choose numbers by sweeps over longer and longer prefixes of the stream.

    It needs no gradient, so any learner that `olx.sweep` plays will do, also on sparse rows.

    make: a function of the numbers that gives a learner.
    over: the range of each number by name: `(low, high)`, on a logarithmic axis if both are
        positive; or `olx.tune.uniform(low, high)` or `olx.tune.loguniform(low, high)`.
    configurations: how many play the first rung. They are spread evenly over the ranges.
    ratio: of each rung, one in `ratio` goes on, and the next rung is `ratio` times as long.
    finalists: how many play the whole stream, at least.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_regression(jax.random.key(0), rounds=400, features=5)
    >>> make = lambda eta: olx.linear(olx.ogd(eta))
    >>> found = olx.tune.by_halving(
    ...     make, olx.losses.squared, rounds, jnp.zeros(5), over={"eta": (1e-4, 10.0)}
    ... )
    >>> len(found.history), round(found.runs, 1)
    (84, 10.0)
    >>> 0.02 < found.numbers["eta"] < 0.2
    True
    """
    given = problem(make, loss, rounds, params, over)
    return given.result(*halving_trials(given, configurations, ratio, finalists))


@np.errstate(over="ignore", invalid="ignore")  # a run may diverge
def halving_trials(
    given: Problem, configurations: int, ratio: int, finalists: int
) -> tuple[list[Trial], float]:
    """All trials, and their cost in runs."""
    ends, sizes = rungs(given.length, configurations, ratio, finalists)
    numbers = given.numbers(spread(configurations, len(given.ranges)))
    state, total, played, begin, history = None, np.zeros(configurations), 0, 0, []
    for end, size in zip(ends, sizes, strict=True):
        if size < len(total):
            best = np.argsort(np.where(np.isfinite(total), total, np.inf), kind="stable")[:size]
            numbers = {name: each[best] for name, each in numbers.items()}
            total, state = total[best], jax.tree.map(lambda leaf, best=best: leaf[best], state)
        learners = given.batch(numbers).learners
        part = take(given.rounds, begin, end)
        run = given.sweep(learners, given.loss, part, state=state)
        total, state = total + np.asarray(run.total), run.state
        history += [
            Trial(row, end, float(loss))
            for row, loss in zip(given.rows(numbers), total, strict=True)
        ]
        played, begin = played + size * (end - begin), end
    return history, played / given.length


def rungs(
    length: int, configurations: int, ratio: int, finalists: int
) -> tuple[list[int], list[int]]:
    """The last round of each rung, and how many configurations play it.

    >>> rungs(1000, 64, 4, 4)
    ([63, 250, 1000], [64, 16, 4])
    """
    for name, value in (("configurations", configurations), ("finalists", finalists)):
        check.count(name, value)
    check.count("ratio", ratio)
    if ratio < 2:
        raise RefusedValue(f"`ratio` must be at least 2, got {ratio}.")
    if finalists > configurations:
        raise RefusedValue(
            f"`finalists` is {finalists}, there are {configurations} configurations; give "
            f"at most as many finalists, or more `configurations`."
        )
    sizes = [configurations]
    while sizes[-1] > finalists:
        sizes.append(max(finalists, sizes[-1] // ratio))
    ends = [-(-length // ratio**k) for k in reversed(range(len(sizes)))]
    if len(set(ends)) < len(ends):
        raise RefusedValue(
            f"the stream has {length} rounds, too few for {len(ends)} rungs; give fewer "
            f"`configurations` than {configurations}, or more `finalists`."
        )
    return ends, sizes
