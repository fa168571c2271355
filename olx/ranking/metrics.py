r"""How well a vector of scores ranks: measures of one round, as functions of scores and relevance.

Relevance is 1 or 0 for labels, or a degree; an entry is relevant if it is positive. $-1$ marks a
row of padding, which does not count. Each measure can be played as a loss or given to `measure`.
Entries with equal scores count against the ranking, as in scikit-learn; `ndcg` takes the mean over
the orders of equal scores.

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

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Array

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import RefusedValue, public
from olx.losses.margin import short
from olx.losses.ranks import check_length, is_degree


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


def _sides(scores: Array, relevance: ArrayLike) -> tuple[Array, Array, Array]:
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


def _most(scores: Array) -> np.floating:
    return jnp.finfo(scores.dtype).max


def _number(where: Array, scores: Array) -> Array:
    return jnp.where(where, jnp.ones((), scores.dtype), 0.0)


def _count(where: Array, scores: Array) -> Array:
    return jnp.sum(_number(where, scores))
