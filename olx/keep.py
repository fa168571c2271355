"""Rules that say which rounds of a run to keep.

A rule takes `(start, stop)` and gives the numbers of the rounds to keep, after `start` and up to
`stop`. The last round of a run is always kept.
"""

import functools
from collections.abc import Callable

import numpy as np

from olx import _check as check
from olx._refusal import RefusedType, RefusedValue, own_name, public

Keep = Callable[[int, int], np.ndarray]


@public
def every(rounds: int) -> Keep:
    """Keep the cumulative loss once per `rounds` rounds.

    >>> every(10)(5, 32).tolist()
    [10, 20, 30]
    """
    check.count("rounds", rounds)
    return functools.partial(_every, rounds)


@public
def log_spaced(per_decade: int = 20) -> Keep:
    """Keep the cumulative loss at rounds spaced evenly on a logarithmic axis.

    >>> log_spaced(3)(0, 100).tolist()
    [1, 2, 5, 10, 22, 46, 100]
    """
    check.count("per_decade", per_decade)
    return functools.partial(_log_spaced, per_decade)


@own_name("keep")
def rounds_kept(keep: Keep, start: int, stop: int) -> np.ndarray:
    """The rounds that `keep` chooses after `start` and up to `stop`; refuses other numbers."""
    kept = np.asarray(keep(start, stop))
    if kept.ndim != 1 or (kept.size and kept.dtype.kind not in "iu"):
        raise RefusedType(
            f"a rule must give the numbers of rounds as a vector of integers, got "
            f"{kept.dtype} of shape {kept.shape}."
        )
    wrong = (kept <= start) | (kept > stop)
    if np.any(wrong):
        raise RefusedValue(
            f"a rule must give rounds after {start} and up to {stop} here, got {kept[wrong][0]}."
        )
    return kept.astype(int)


def totals(start: int, stop: int) -> np.ndarray:
    """Keep only the total loss."""
    return np.zeros(0, int)


def _every(rounds: int, start: int, stop: int) -> np.ndarray:
    return np.arange(start // rounds + 1, stop // rounds + 1) * rounds


def _log_spaced(per_decade: int, start: int, stop: int) -> np.ndarray:
    low = int(np.floor(per_decade * np.log10(max(start, 1)))) - 1
    high = int(np.ceil(per_decade * np.log10(stop))) + 1
    marks = np.round(10 ** (np.arange(max(low, 0), high + 1) / per_decade)).astype(int)
    return np.unique(marks[(marks > start) & (marks <= stop)])
