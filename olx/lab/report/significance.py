r"""Is a difference between learners real? The tests that say so, and what is too little for them.

Ranks of learners on several data sets, the best one first, are compared by the test of Friedman. If
it finds a difference, two learners differ if their mean ranks are further apart than the critical
difference of Nemenyi, for $k$ learners on $N$ data sets

$$ CD = \frac{q_\alpha}{\sqrt 2} \sqrt{\frac{k (k + 1)}{6 N}}, $$

where $q_\alpha$ is the quantile of the studentized range. Two learners alone are compared by the
signed ranks of Wilcoxon. Both need data sets that are independent of each other. The runs of one
data set are not: seeds are other orders of the same rows. They are compared by the paired test of
Student, which speaks of orders of these rows and of nothing else.

A test is refused in words where no data could make it significant.

Demsar, Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 7, 2006.
Holm, A Simple Sequentially Rejective Multiple Test Procedure, 1979.
"""

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from olx._refusal import RefusedValue, public

LEVEL = 0.05
SEEDS = 3  # a test of Student on fewer has no power to speak of
EXACT = 12  # up to so many pairs, all signs are tried


def mean_ranks(losses: np.ndarray) -> np.ndarray:
    """The mean rank of each column; equal losses, such as those of two that diverged, share one.

    >>> mean_ranks(np.array([[0.1, 0.2, 0.2], [0.3, 0.5, 0.4]]))
    array([1.  , 2.75, 2.25])
    """
    return stats.rankdata(losses, axis=1).mean(axis=0)


@public
def critical_difference(learners: int, datasets: int, level: float = LEVEL) -> float:
    """The difference of mean ranks from which on two of several learners differ (Nemenyi).

    >>> round(critical_difference(4, 14), 2), round(critical_difference(5, 30), 2)
    (1.25, 1.11)
    """
    if learners < 3:
        raise RefusedValue(
            f"ranks are of 3 learners or more, got {learners}: compare two by pairs."
        )
    quantile = float(stats.studentized_range.ppf(1 - level, learners, np.inf))
    found = quantile / math.sqrt(2) * math.sqrt(learners * (learners + 1) / (6 * datasets))
    if found >= learners - 1:
        raise RefusedValue(
            f"{_count(datasets, 'data set')}: too few to rank {learners} learners. Even the same "
            "order on all of them would be no significant difference."
        )
    return found


@public
def friedman(losses: np.ndarray) -> float:
    """The p-value of the test that all columns (learners) have the same mean rank over rows."""
    critical_difference(losses.shape[1], losses.shape[0])  # refuses too few
    _refuse_nan("losses", losses)
    if np.all(losses == losses[:, :1]):
        return 1.0
    return float(stats.friedmanchisquare(*stats.rankdata(losses, axis=1).T).pvalue)


@public
def wilcoxon(differences: ArrayLike) -> float:
    """The p-value of the test that independent differences are symmetric around 0, by their ranks.

    A difference of 0 counts half for each side. An infinite one is the largest.
    """
    _refuse_nan("differences", differences)
    ranks = stats.rankdata(np.abs(differences)) * np.sign(differences)
    least = 0.5 ** (ranks.size - 1)
    if least > LEVEL:
        raise RefusedValue(
            f"{_count(ranks.size, 'pair')}: too few. The least possible p is {least:.2g}; the test "
            "of Wilcoxon needs 6."
        )
    if not ranks.any():
        return 1.0
    tries: Any = "auto"
    if ranks.size <= EXACT:
        tries = stats.PermutationMethod(n_resamples=2**ranks.size)
    found: Any = stats.wilcoxon(ranks, zero_method="zsplit", method=tries)
    return float(found.pvalue)


@public
def paired_t(differences: ArrayLike) -> float:
    """The p-value of the paired test of Student that differences have the mean 0."""
    values = np.asarray(differences, float)
    if values.size < SEEDS:
        raise RefusedValue(
            f"{_count(values.size, 'seed')}: too few for a test; {SEEDS} are needed."
        )
    if not np.isfinite(values).all():
        raise RefusedValue("a run diverged: the difference is no number.")
    if np.ptp(values) == 0:  # as of learners without any chance in them
        return float(values[0] == 0)
    found: Any = stats.ttest_1samp(values / np.abs(values).max(), 0.0)  # no square is infinite
    return float(found.pvalue)


def holm(ps: ArrayLike) -> np.ndarray:
    """The p-values of several tests, so that one of them errs with the probability of the level.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    ps = np.asarray(ps, float)
    order = np.argsort(ps)
    steps = np.maximum.accumulate(ps[order] * np.arange(ps.size, 0, -1))
    return np.minimum(steps, 1.0)[np.argsort(order)]


def groups(ranks: np.ndarray, difference: float) -> list[tuple[int, int]]:
    """The longest runs of ranks, in rising order, that do not differ: first and last number.

    >>> groups(np.array([1.0, 1.5, 2.5, 3.0]), 1.1)
    [(0, 1), (1, 2), (2, 3)]
    """
    last = [int(np.searchsorted(ranks, rank + difference, "right")) - 1 for rank in ranks]
    ends = [(first, end) for first, end in enumerate(last) if end > first]
    return [next(own) for _, own in itertools.groupby(ends, key=lambda pair: pair[1])]


def p_text(p: float) -> str:
    """A p-value in a table.

    >>> p_text(0.0312), p_text(0.7261), p_text(3e-7)
    ('0.031', '0.73', '< 0.0001')
    """
    return "< 0.0001" if p < 1e-4 else f"{p:.2g}"


def _refuse_nan(name: str, values: ArrayLike) -> None:
    if np.isnan(values).any():
        raise RefusedValue(
            f"`{name}` holds NaN, which has no rank; give a run that diverged the loss infinity, "
            "and two that did the difference 0."
        )


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
