r"""How well a vector of scores ranks: measures of one round, as functions of scores and relevance.

Relevance is 1 or 0 for labels, or a degree; an entry is relevant if it is positive. $-1$ marks a
row of padding, which does not count. Each measure can be played as a loss or given to `measure`.
Entries with equal scores count against the ranking, as in scikit-learn; `ndcg` takes the mean over
the orders of equal scores. `group_rows` makes rounds of
groups of unequal size, padded to the largest group.

| measure | value | nothing, or everything, relevant |
|---|---|---|
| `mistake` | 1 if a relevant entry is not strictly above all others | 0 |
| `one_error` | 1 if the highest score is not that of a relevant entry alone | 0; 0 |
| `coverage` | how many entries the list needs to hold all relevant ones | 0; all |
| `ranking_loss` | the share of pairs in the wrong order | 0 |
| `average_precision` | the mean over relevant entries of the precision at their rank | 1 |
| `ndcg` | discounted gain, as a share of the best possible | 0; by degrees |
| `reciprocal_rank` | one over the rank of the first relevant entry | 0; 1 |

Schapire and Singer, BoosTexter: A Boosting-based System for Text Categorization, 2000; Järvelin and
Kekäläinen, Cumulated Gain-based Evaluation of IR Techniques, 2002.
"""

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import RefusedType, RefusedValue, public
from olx.core import Rounds
from olx.losses.margin import short
from olx.losses.ranks import PADDING, check_length, is_degree


@public
def mistake(scores: Array, relevance: Array) -> Array:
    """Whether a relevant entry is not strictly above all others.

    >>> import jax.numpy as jnp
    >>> float(mistake(jnp.array([2.0, 1.0, 1.0]), jnp.array([1.0, 1.0, 0.0])))
    1.0
    """
    relevant, other, sure = _sides(scores, relevance)
    low = jnp.min(jnp.where(relevant, scores, _most(scores)))
    high = jnp.max(jnp.where(other, scores, -_most(scores)))
    return sure * _number(short(low, high) & jnp.any(relevant) & jnp.any(other), scores)


@public
def one_error(scores: Array, relevance: Array) -> Array:
    """Whether the best score is not strictly that of a relevant entry."""
    relevant, other, sure = _sides(scores, relevance)
    best = jnp.max(jnp.where(relevant, scores, -_most(scores)))
    high = jnp.max(jnp.where(other, scores, -_most(scores)))
    return sure * _number(~(best > high) & jnp.any(relevant) & jnp.any(other), scores)


@public
def coverage(scores: Array, relevance: Array) -> Array:
    """How many entries of the ranked list are needed to hold all relevant ones."""
    relevant, other, sure = _sides(scores, relevance)
    low = jnp.min(jnp.where(relevant, scores, _most(scores)))
    needed = _count((relevant | other) & ~(scores < low), scores)
    return sure * jnp.where(jnp.any(relevant), needed, 0.0)


@public
def ranking_loss(scores: Array, relevance: Array) -> Array:
    """The share of pairs of a relevant and another entry that are not in the right order."""
    relevant, other, sure = _sides(scores, relevance)
    wrong = ~(scores[:, None] > scores[None, :]) & relevant[:, None] & other[None, :]
    pairs = _count(relevant, scores) * _count(other, scores)
    return sure * safe.divide(_count(wrong, scores), pairs)


@public
def average_precision(scores: Array, relevance: Array) -> Array:
    """The mean over relevant entries of the share of relevant ones among those not below.

    >>> import jax.numpy as jnp
    >>> relevance = jnp.array([1.0, 0.0, 1.0, 0.0])
    >>> round(float(average_precision(jnp.array([4.0, 3.0, 2.0, 1.0]), relevance)), 4)
    0.8333
    """
    relevant, other, sure = _sides(scores, relevance)
    above = ~(scores[None, :] < scores[:, None])  # row i: the entries that are not below i
    hits = jnp.sum(_number(above & relevant[None, :], scores), axis=1)
    rank = jnp.sum(_number(above & (relevant | other)[None, :], scores), axis=1)
    total = jnp.sum(jnp.where(relevant, hits / jnp.maximum(rank, 1.0), 0.0))
    return sure * safe.divide(total, _count(relevant, scores), 1.0)


@public
def reciprocal_rank(scores: Array, relevance: Array) -> Array:
    """One over the rank of the first relevant entry; its mean over rounds is known as MRR."""
    relevant, other, sure = _sides(scores, relevance)
    best = jnp.max(jnp.where(relevant, scores, -_most(scores)))
    rank = 1 + _count(other & ~(scores < best), scores)
    return sure * jnp.where(jnp.any(relevant), 1 / rank, 0.0)


def log_discount(rank: Array) -> Array:
    r"""The usual discount, $1 / \log_2(1 + \text{rank})$."""
    return math.log(2) / jnp.log1p(rank)


@public
def ndcg(
    scores: Array,
    relevance: Array,
    top: int | None = None,
    discount: Callable[[Array], Array] = log_discount,
) -> Array:
    r"""The discounted sum of the gains, divided by that of the best order.

    relevance: the gain of each entry; for the gain $2^y - 1$ of a degree $y$, give that.
    top: how many ranks count; all if None.
    discount: from ranks 1, 2, ... to their weights.

    >>> import jax.numpy as jnp
    >>> round(float(ndcg(jnp.array([3.0, 2.0, 1.0]), jnp.array([0.0, 1.0, 1.0]))), 4)
    0.6934
    """
    relevant, other, sure = _sides(scores, relevance)
    if top is not None:
        check.count("top", top)
    check.takes("discount", discount, "rank")
    counted, gains = relevant | other, jnp.where(relevant, relevance, 0).astype(scores.dtype)
    ranks = jnp.arange(1, scores.size + 1, dtype=scores.dtype)
    weights = discount(ranks) if top is None else jnp.where(ranks <= top, discount(ranks), 0.0)
    sums = jnp.concatenate([jnp.zeros(1, scores.dtype), jnp.cumsum(weights)])
    best = _discounted(gains, gains, counted, sums)
    return sure * safe.divide(_discounted(scores, gains, counted, sums), best)


def _discounted(keys: Array, gains: Array, counted: Array, sums: Array) -> Array:
    """The gains in the order of falling `keys`; equal keys share the discounts of their ranks."""
    among = lambda where: jnp.sum(jnp.where(where & counted[None, :], 1, 0), axis=1)
    before = among(keys[None, :] > keys[:, None])
    equal = jnp.maximum(among(keys[None, :] == keys[:, None]), 1)
    after = jnp.minimum(before + equal, sums.size - 1)
    share = (sums[after] - sums[before]) / equal.astype(sums.dtype)
    return jnp.sum(jnp.where(counted, gains * share, 0.0))


def _sides(scores: Any, relevance: Any) -> tuple[Array, Array, Array]:
    """The relevant entries, the others without padding, and 1; NaN if a traced number is illegal.

    The scores of padding do not count, but must be finite as well.
    """
    check_length(scores, relevance)
    check.finite("scores", scores, each=True)
    if not isinstance(relevance, Tracer) and not np.all(is_degree(np.asarray(relevance))):
        raise RefusedValue(
            f"`relevance` must be 1 or 0, or a degree from 0 on, or -1 for padding, got "
            f"{np.asarray(relevance).tolist()}."
        )
    relevance = jnp.asarray(relevance).astype(scores.dtype)
    legal = jnp.all(jnp.isfinite(scores) & is_degree(relevance))
    sure = jnp.where(legal, jnp.ones((), scores.dtype), jnp.nan)
    return relevance > 0, relevance == 0, sure


def _most(scores: Array) -> Any:
    return jnp.finfo(scores.dtype).max


def _number(where: Array, scores: Array) -> Array:
    return jnp.where(where, jnp.ones((), scores.dtype), 0.0)


def _count(where: Array, scores: Array) -> Array:
    return jnp.sum(_number(where, scores))


@public
def group_rows(rows: Any, relevance: Any, sizes: Any) -> Rounds:
    """One round per group: its rows, padded with rows of 0, and their relevance, padded with -1.

    rows: (n, d), the rows of all groups one after another.
    relevance: (n,), degrees of at least 0.
    sizes: the number of rows of each group; they sum to n.

    >>> import numpy as np
    >>> play = group_rows(np.eye(3), np.array([1.0, 0.0, 2.0]), [2, 1])
    >>> play.context.shape, play.outcome.tolist()
    ((2, 2, 3), [[1.0, 0.0], [2.0, -1.0]])
    """
    rows, relevance, sizes = np.asarray(rows), np.asarray(relevance), np.asarray(sizes)
    if rows.ndim != 2:
        raise RefusedType(f"`rows` must have the shape (n, d), got {rows.shape}.")
    if rows.dtype.kind not in "fiub":
        raise RefusedType(f"`rows` holds {rows.dtype}; give real numbers.")
    check.numbers("relevance", relevance)
    check.finite("rows", rows.astype(float), each=True)
    if relevance.shape != rows.shape[:1]:
        raise RefusedType(
            f"`relevance` has shape {relevance.shape} for {len(rows)} rows; give one "
            "degree per row."
        )
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or not np.all(sizes > 0):
        raise RefusedValue(
            "`sizes` must be integers of at least 1, one per group, got "
            f"{np.array2string(sizes, threshold=6)}; drop empty groups."
        )
    if sizes.sum() != len(rows):
        raise RefusedValue(
            f"`sizes` sums to {sizes.sum()}, there are {len(rows)} rows; rows of a "
            "group are adjacent, so np.unique(group, return_counts=True)[1] counts sorted groups."
        )
    legal = np.isfinite(relevance) & (relevance >= 0)
    if not np.all(legal):
        at = int(np.argmin(legal))
        raise RefusedValue(
            f"`relevance` must be finite and not negative, got {relevance[at]} in row "
            f"{at}; add a number to all degrees of a group: only differences count."
        )
    dtype = rows.dtype if rows.dtype.kind == "f" else np.dtype(np.float32)
    place = np.repeat(np.arange(len(sizes)), sizes)
    column = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    context = np.zeros((len(sizes), int(sizes.max()), rows.shape[1]), dtype)
    outcome = np.full(context.shape[:2], PADDING, dtype)
    context[place, column], outcome[place, column] = rows, relevance
    return Rounds(context, outcome)
