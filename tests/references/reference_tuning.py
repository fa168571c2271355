"""Gradient descent with the step eta / t^power, and successive halving, in NumPy float64."""

import numpy as np


def losses(rows, targets, weights, eta, power):
    """The squared losses (s - y)^2 / 2 of every round of one run; weights scale the steps.

    A round of weight 0 changes nothing, and is not counted by t.
    """
    w, t, paid = np.zeros(rows.shape[1]), 1, []
    for x, y, weight in zip(rows, targets, weights, strict=True):
        error = w @ x - y
        paid.append(error**2 / 2)
        if weight > 0:
            w, t = w - eta / t**power * weight * error * x, t + 1
    return np.array(paid)


def slopes(rows, targets, weights, eta, power):
    """Central differences of the total loss by eta and by power."""
    total = lambda eta, power: losses(rows, targets, weights, eta, power).sum()
    h = 1e-5
    return np.array(
        [
            (total(eta + h * eta, power) - total(eta - h * eta, power)) / (2 * h * eta),
            (total(eta, power + h) - total(eta, power - h)) / (2 * h),
        ]
    )


def halving(cumulative, ends, sizes):
    """The indices of those that play each rung, and their losses so far.

    cumulative: [N, T], the cumulative losses of every configuration, each played whole.
    """
    alive, seen = np.arange(len(cumulative)), []
    for k, (end, size) in enumerate(zip(ends, sizes, strict=True)):
        if k:
            before = cumulative[alive, ends[k - 1] - 1]
            alive = alive[np.argsort(before, kind="stable")[:size]]
        seen += [(i, end, cumulative[i, end - 1]) for i in alive]
    return seen
