r"""Whether the loss of new rows is above that of the past by more than chance.

The past are the last $m$ rounds of the run that made the model, with mean loss $a$ and variance
$s^2$. The new rows are $n$ rounds, with mean $b$ and variance $v^2$. The alarm is raised if

$$z = \frac{b - a}{\sqrt{s^2 / m + v^2 / n}} > 3.$$

If the losses of all these rounds are independent and of one mean, $z$ is about normal, and one
alarm in 740 is false (Welch, Biometrika 34, 1947). Two things are assumed: rounds hardly depend on
each other, and the learner had settled by the last rounds of its run. If losses of neighbours are
alike, alarms are false more often; if the learner still improves, a small drift stays unseen. With
fewer than 30 rounds on a side there is no judgement. A drift that leaves the loss as it is, or one
that the learner follows at once, raises no alarm.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array

from olx.core import Curve, Feedback
from olx.keep import Keep
from olx.lab.tasks.metrics import Metric, measure, metric_values
from olx.lab.tasks.task import Task

ROUNDS = 1000  # of the past, at most, and of the newest rows of a service
ENOUGH = 30  # rounds to judge by
ALARM = 3.0  # standard errors


class Losses(NamedTuple):
    """The losses of some rounds, as far as the rule needs them."""

    rounds: int
    mean: float
    variance: float


def losses_of(values: Sequence[float] | np.ndarray) -> Losses:
    """The summary of some losses.

    >>> losses_of([1.0, 3.0])
    Losses(rounds=2, mean=2.0, variance=1.0)
    """
    found = np.asarray(values, float)
    if not len(found):
        return Losses(0, 0.0, 0.0)
    return Losses(len(found), float(found.mean()), float(found.var()))


def drift(past: Losses, new: Losses) -> float | None:
    """How many standard errors the new mean is above the past one; None if rounds are too few.

    >>> drift(Losses(100, 0.5, 0.25), Losses(100, 0.8, 0.25)) > ALARM
    True
    >>> drift(Losses(100, 0.5, 0.25), Losses(10, 0.8, 0.25)) is None
    True
    """
    if min(past.rounds, new.rounds) < ENOUGH:
        return None
    size = math.sqrt(past.variance / past.rounds + new.variance / new.rounds)
    above = new.mean - past.mean
    return above / size if size > 0 else math.copysign(math.inf, above) if above else 0.0


def judgement(past: Losses, new: Losses) -> tuple[bool, str]:
    """Whether to raise the alarm, and the reason in words."""
    found = drift(past, new)
    if found is None:
        few = f"with fewer than {ENOUGH} rounds, before or now, a drift is not judged"
        return False, f"{new.rounds} new rounds, {past.rounds} of the past: {few}."
    means = f"mean loss {new.mean:.4g} against {past.mean:.4g} in the last {past.rounds:,} rounds"
    if found > ALARM:
        return True, f"drift: {means} of its run, {found:.1f} standard errors above."
    return False, f"no drift: {means} of its run, {found:+.1f} standard errors."


def last_rounds(length: int) -> Keep:
    """Which of `length` rounds a run keeps, so that `past` can tell its last ones."""
    return functools.partial(_last, length)


def _last(length: int, start: int, stop: int) -> np.ndarray:
    """A rule that keeps the round before the last ones, whose losses later ones are compared with.

    They are at most half of all rounds, so that the learner has settled.
    """
    cut = length - min(ROUNDS, length // 2)
    return np.array([cut] if start < cut <= stop else [], int)


def past_measure(task: Task) -> Callable[[Feedback], dict[str, Array]] | None:
    """What a run sums beside its loss, for `past`."""
    return measure((*usual_metrics(task), Metric(squared_loss)))


def squared_loss(feedback: Feedback) -> Array:
    """The square of the loss, for its variance."""
    return feedback.value**2


def usual_metrics(task: Task) -> tuple[Metric, ...]:
    """The metrics of a task that are shown if no config names some."""
    return task.usual or task.others[:1]


def past(curve: Curve, task: Task, outcome: np.ndarray) -> dict[str, Any]:
    """The means over a run with these outcomes, and the losses of its last rounds."""
    sums = {name: np.asarray(each, float) for name, each in curve.sums.items()}
    totals, squares = np.asarray(curve.total, float), sums["squared_loss"]
    rounds, before = int(curve.at[-1]), int(curve.at[0]) if len(curve.at) > 1 else 0
    last = [each[-1] - (each[0] if before else 0.0) for each in (totals, squares)]
    mean, square = (each / (rounds - before) for each in last)
    last_sums = {name: each[-1] for name, each in sums.items()}
    means = metric_values(usual_metrics(task), last_sums, outcome)
    return {
        "loss": totals[-1] / rounds,
        **{name: float(value) for name, value in means.items()},
        "last": Losses(rounds - before, mean, max(square - mean**2, 0.0))._asdict(),
    }
