"""Labelled rows for the races: dense Gaussians, and sparse rows with Zipf-like columns."""

from typing import Any, NamedTuple

import numpy as np

FLIPPED = 0.1  # the share of wrong labels


class Examples(NamedTuple):
    rows: Any  # a float32 array or SciPy CSR matrix, (T, d)
    labels: np.ndarray  # float32, -1 and 1

    def first(self, count: int) -> "Examples":
        return Examples(self.rows[:count], self.labels[:count])

    @property
    def count(self) -> int:
        return self.rows.shape[0]

    @property
    def width(self) -> int:
        return self.rows.shape[1]


def dense(count: int, width: int, seed: int = 0) -> Examples:
    """Gaussian rows of norm about 1, labelled by a Gaussian vector."""
    random = np.random.default_rng(seed)
    rows = random.standard_normal((count, width), np.float32) / np.float32(np.sqrt(width))
    return Examples(rows, _labels(random, rows))


def sparse(count: int, width: int, nonzeros: int = 73, seed: int = 0) -> Examples:
    """Rows of norm 1 with about `nonzeros` non-zeros; column k has frequency 1 / (k + 20).

    Columns are shuffled. Two draws of the same column in a row give one non-zero, so a few more
    columns are drawn than asked for.
    """
    import scipy.sparse

    random = np.random.default_rng(seed)
    popularity = np.cumsum(1 / (np.arange(width) + 20.0))
    drawn = np.maximum(random.poisson(1.03 * nonzeros, count), 4)
    rank = np.searchsorted(popularity, random.random(drawn.sum()) * popularity[-1])
    columns = random.permutation(width)[np.minimum(rank, width - 1)]
    values = 0.1 + np.abs(random.standard_normal(drawn.sum(), np.float32))
    start = np.r_[0, np.cumsum(drawn)]
    rows = scipy.sparse.csr_matrix((values, columns, start), shape=(count, width))
    rows.sum_duplicates()
    sizes = np.diff(rows.indptr)
    norms = np.sqrt(np.add.reduceat(rows.data**2, rows.indptr[:-1]))
    rows.data /= np.repeat(norms, sizes).astype(np.float32)
    return Examples(rows, _labels(random, rows))


def _labels(random: np.random.Generator, rows: Any) -> np.ndarray:
    truth = random.standard_normal(rows.shape[1], np.float32)
    flips = np.where(random.random(rows.shape[0]) < FLIPPED, -1, 1)
    return np.where(rows @ truth >= 0, flips, -flips).astype(np.float32)
