"""What a run is judged by besides its loss; a config names these functions.

Actions and losses have the configurations first, then the rounds; a metric is a number per
configuration. A score that is not a number counts as a mistake.
"""

from collections.abc import Callable

import numpy as np

TASKS = {
    "error": ("binary",),
    "absolute_error": ("binary", "regression"),
    "squared_error": ("binary", "regression"),
    "wealth": ("portfolio",),
}


def error(actions: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    r"""The share of mistakes, $y s \le 0$."""
    return _mean(lambda s, y: ~(s * y > 0), actions, outcome)


def absolute_error(actions: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """The mean distance of prediction and outcome."""
    return _mean(lambda s, y: np.abs(s - y), actions, outcome)


def squared_error(actions: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """The mean squared distance of prediction and outcome."""
    return _mean(lambda s, y: (s - y) ** 2, actions, outcome)


def wealth(losses: np.ndarray) -> np.ndarray:
    """What one unit of money became, where the loss is the log loss."""
    return np.exp(-np.sum(losses, axis=1, dtype=float))


def _mean(of: Callable, actions: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """The mean over rounds, some of them at a time: all at once would take as much memory again."""
    count, length = actions.shape
    step = max(1, (1 << 20) // count)
    total = np.zeros(count)
    for low in range(0, length, step):
        here = slice(low, low + step)
        total += of(actions[:, here], outcome[here]).sum(1, dtype=float)
    return total / length
