r"""Losses of a vector of scores that say how well it ranks.

The outcome has one number per score: $1$ for a relevant label and $0$ for another one, or a degree
of relevance $y_i \ge 0$. With the pairs $E = \{(i, j) : y_i > y_j\}$ and
$\ell_{ij} = ((y_i - y_j) - (s_i - s_j))_+$:

- `label_hinge(margin)`: $\max_{r \in Y, s \notin Y} (\gamma - (s_r - s_s))_+$ for a set $Y$ of
  relevant labels; it costs $O(k)$;
- `max_pairs`: $\max_E \ell_{ij}$, which for labels is `label_hinge(1.0)`;
- `average_pairs`: the mean of $\ell_{ij}$ over $E$.

All are 0 if $E$ is empty, and all are $\sqrt2$-Lipschitz in the Euclidean norm of the scores. The
slope is 0 wherever the loss is 0. A group that has fewer rows than others is padded: a relevance of
$-1$ marks a row that does not count.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, (5.25), (5.26) and
(7.17).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._call import Call
from olx._check import seen_as
from olx._refusal import RefusedType, own_name, public
from olx.core import Rounds, Scalar
from olx.losses.margin import ROUNDING
from olx.losses.score import ScoreLoss
from olx.needs import Need

PADDING = -1.0  # the relevance of a row that does not count


@public
def label_hinge(margin: Scalar = 1.0) -> ScoreLoss:
    r"""The largest violation of the margin $\gamma$ = `margin` between two labels.

    >>> import jax.numpy as jnp
    >>> relevant = jnp.array([1.0, 0.0, 1.0, 0.0])
    >>> float(label_hinge()(jnp.array([2.0, 1.5, 1.0, 0.0]), relevant))
    1.5
    """
    margin = check.positive("margin", margin)
    return ScoreLoss(margin, value_fn=_label_hinge, needs=(masks("label_hinge"),))


def masks(owner: str) -> Need:
    """The need for outcomes of 0 and 1, one per label."""
    remedy = "a single label y of k is jax.nn.one_hot(y, k)"
    return Need("outcome", _are_masks, "relevant labels must be 1, others 0", owner, remedy)


def degrees(owner: str) -> Need:
    """The need for degrees of relevance that are not negative; -1 marks padding."""
    remedy = "add a number to all degrees of a group: only differences count"
    demand = "relevance must be finite and not negative, or -1 for a row of padding"
    return Need("outcome", _are_degrees, demand, owner, remedy)


def parted(
    scores: Array, relevant: ArrayLike
) -> tuple[Bool[Array, " k"], Float[Array, ""], Float[Array, ""]]:
    """The relevant labels, the lowest score among them and the highest among the others.

    The two scores are the largest and the lowest finite number if there is no such label.
    """
    check_length(scores, relevant)
    inside, top = jnp.asarray(relevant).astype(bool), jnp.finfo(scores.dtype).max
    return (
        inside,
        jnp.min(jnp.where(inside, scores, top)),
        jnp.max(jnp.where(inside, -top, scores)),
    )


def check_length(scores: ArrayLike, outcome: ArrayLike) -> None:
    """Refuse scores that are no floats, and an outcome that does not have one number per score."""
    for name, given, kinds in (("scores", scores, ""), ("outcome", outcome, "iub")):
        kind = getattr(given, "dtype", None)
        if kind is None or not (jnp.issubdtype(kind, jnp.floating) or kind.kind in kinds):
            raise RefusedType(
                f"the {name} must be an array of numbers, got {kind or seen_as(given)}; "
                f"give jnp.asarray({name}, float)."
            )
    if jnp.ndim(scores) != 1 or jnp.shape(scores) != jnp.shape(outcome):
        raise RefusedType(
            f"the outcome has shape {jnp.shape(outcome)}, the scores have shape "
            f"{jnp.shape(scores)}; give one number per label or row."
        )


def is_proper(inside: Bool[Array, " k"]) -> Bool[Array, ""]:
    """Whether there are relevant and other labels; else there is nothing to rank."""
    return jnp.any(inside) & ~jnp.all(inside)


def is_degree(relevance: Array | np.ndarray) -> Array | np.ndarray:
    return ((relevance >= 0) & (relevance < jnp.inf)) | (relevance == PADDING)


def pairs(relevance: Array) -> Bool[Array, "m m"]:
    """Whether row i must be above row j; padding is in no pair."""
    above = relevance[:, None] > relevance[None, :]
    return above & (relevance >= 0)[None, :]


@own_name("label_hinge")
def _label_hinge(margin: Scalar, scores: Array, relevant: Array) -> Array:
    inside, low, high = parted(scores, relevant)
    proper = is_proper(inside)
    gap = jnp.where(proper, margin - low + high, 0.0)
    return jnp.where(gap <= 0, 0.0, gap)


def _gaps(scores: Array, relevance: Array) -> tuple[Array, Array]:
    """The losses of all pairs, 0 where there is no pair, and the pairs.

    A gap that is only rounding error is 0: its sign means nothing, and its slope would count.
    """
    check_length(scores, relevance)
    relevance = jnp.asarray(relevance).astype(scores.dtype)
    counted = pairs(relevance)
    gap = (relevance[:, None] - relevance[None, :]) - (scores[:, None] - scores[None, :])
    size = jax.lax.stop_gradient(jnp.abs(relevance) + jnp.abs(scores))
    noise = ROUNDING * jnp.finfo(scores.dtype).eps * (size[:, None] + size[None, :])
    return jnp.where(counted & ~(gap <= noise), gap, 0.0), counted


@own_name("max_pairs")
def _max_pairs(_: PyTree, scores: Array, relevance: Array) -> Array:
    gap, _ = _gaps(scores, relevance)
    flat = gap.reshape(-1)
    worst = jax.lax.stop_gradient(jnp.argmax(flat))  # the slope of one pair, also if several tie
    return jnp.sum(jnp.where(jnp.arange(flat.size) == worst, flat, 0.0))


@own_name("average_pairs")
def _average_pairs(_: PyTree, scores: Array, relevance: Array) -> Array:
    gap, counted = _gaps(scores, relevance)
    return safe.divide(jnp.sum(gap), jnp.sum(jnp.where(counted, jnp.ones_like(gap), 0.0)))


def _are_masks(hparams: PyTree, params: PyTree, rounds: Rounds) -> PyTree:
    legal = lambda leaf: leaf == leaf if leaf.dtype == bool else (leaf == 0) | (leaf == 1)
    return jax.tree.map(legal, rounds.outcome)


def _are_degrees(hparams: PyTree, params: PyTree, rounds: Rounds) -> PyTree:
    return jax.tree.map(is_degree, rounds.outcome)


max_pairs = ScoreLoss(name=Call("max_pairs"), value_fn=_max_pairs, needs=(degrees("max_pairs"),))
average_pairs = ScoreLoss(
    name=Call("average_pairs"), value_fn=_average_pairs, needs=(degrees("average_pairs"),)
)
