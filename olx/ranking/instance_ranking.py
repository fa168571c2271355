r"""Instance ranking: score the rows of a group so that relevant rows come first.

A round is a group of $m$ rows $X_t$ with degrees of relevance $y_t$. The learner plays the scores
$X_t w_t$. Its loss $g_t(w)$ is a convex, non-negative function of the scores, such as the mean or
the maximum of $((y_i - y_j) - \langle w, x_i - x_j\rangle)_+$ over the pairs with $y_i > y_j$. With
$v_t \in \partial g_t(w_t)$ and $c = 1 / \eta$ the learner takes the best step along it,

$$w_{t+1} = w_t - \frac{\tau_t}c v_t, \qquad
  \tau_t = \min\Big\{1, \frac{c\,g_t(w_t)}{\|v_t\|^2}\Big\}.$$

$\tau_t v_t$ is a dual vector: by convexity $g_t^*(\tau v_t) \le \tau (\langle v_t, w_t\rangle -
g_t(w_t))$ for $\tau \in [0, 1]$, and $\tau_t$ maximizes the dual with this bound. So no step is
worse than the subgradient step, and for every $u$

$$\sum_{s \le t} g_s(w_s) - g_s(u) \le \frac c2 \|u\|^2 + \frac1{2c} \sum_{s \le t} \|v_s\|^2 \le
  \frac c2 \|u\|^2 + \frac1{2c} \sum_{s \le t} \max_{i, j} \|x_i - x_j\|^2,$$

where the maximum is over the pairs of the round. A round of weight $h$ has the loss $h g_t$ and
$\tau_t \le h$.

Any point learner can rank rows as well: `rank_rows` plays $X_t w_t$ with its decisions.
`group_rows` makes rounds of groups of unequal size, padded to the largest group.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 5.3.4 and
corollary 1.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree
from olx._refusal import RefusedType, RefusedValue, public
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Rounds, Scalar
from olx.frameworks.lift import model, score_rows
from olx.losses.ranks import PADDING, average_pairs, max_pairs, pairs
from olx.losses.score import ScoreLoss
from olx.theorem import ZERO, latest, summed
from olx.wrapper import LOSS, lift_needs


@pytree
class InstanceRankingHparams:
    eta: Scalar
    loss: ScoreLoss


class InstanceRankingState(NamedTuple):
    w: Float[Array, " d"]


@public
def instance_ranking(eta: Scalar, loss: ScoreLoss = average_pairs) -> Learner:
    r"""Rank rows of a group, aggressively in Euclidean space.

    eta: $1 / c$, positive; it bounds the steps.
    loss: `olx.losses.average_pairs` or `olx.losses.max_pairs`, the learner's own loss.

    A context is an array of rows (m, d), an outcome their relevance (m,): degrees of at least 0, or
    -1 for a row that does not count. `olx.ranking.group_rows` makes both. `params` has the shape
    (d,); only its shape is used.

    >>> import jax.numpy as jnp, olx
    >>> rows = jnp.array([[[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]] * 2)
    >>> play = olx.Rounds(rows, jnp.array([[1.0, 0.0, -1.0]] * 2))
    >>> learner = instance_ranking(1.0)
    >>> olx.rollout(learner, olx.losses.average_pairs, play, jnp.zeros(2)).losses.tolist()
    [1.0, 0.0]
    """
    eta = check.positive("eta", eta)
    check.instance("loss", loss, ScoreLoss)
    if loss.value_fn not in (average_pairs.value_fn, max_pairs.value_fn):
        raise RefusedType(
            "`loss` must be `olx.losses.average_pairs` or "
            "`olx.losses.max_pairs`; for others play `olx.ranking.rank_rows` of a point learner."
        )
    hparams, needs = InstanceRankingHparams(eta, loss), lift_needs(LOSS, loss)
    theorems = (instance_regret, instance_duality)
    return Learner(hparams, init, predict, update, needs=needs, theorems=theorems)


@public
def rank_rows(inner: Learner) -> Learner:
    """Score the rows of a group by the decisions of a point learner, for any loss of the scores.

    >>> import jax.numpy as jnp, olx
    >>> play = olx.Rounds(jnp.eye(2)[None], jnp.array([[1.0, 0.0]]))
    >>> run = olx.rollout(rank_rows(olx.ogd(0.5)), olx.losses.max_pairs, play, jnp.zeros(2))
    >>> run.state.theta.tolist()
    [0.5, -0.5]
    """
    return model(inner, row_scores)


@public
def row_scores(w: Array, rows: Array) -> Array:
    r"""The scores $X w$ of the rows $X$ of a group."""
    return score_rows(w, rows)


def init(hp: InstanceRankingHparams, params: PyTree) -> InstanceRankingState:
    return InstanceRankingState(jnp.zeros_like(params))


def predict(hp: InstanceRankingHparams, state: InstanceRankingState, context: PyTree) -> Array:
    return row_scores(state.w, context)


def update(
    hp: InstanceRankingHparams, state: InstanceRankingState, feedback: Feedback
) -> InstanceRankingState:
    _, v, tau = step_of(hp, feedback)
    return InstanceRankingState(state.w - tau * hp.eta * v)


def step_of(hp: InstanceRankingHparams, feedback: Feedback) -> tuple[Array, Array, Array]:
    r"""The loss of the round, its subgradient $v$ in the weights, and $\tau$."""
    value, slope = hp.loss.value_and_slope(feedback.action, feedback.outcome)
    v = slope @ feedback.context
    best = safe.divide(value, hp.eta * jnp.sum(v * v), jnp.inf)  # v = 0: the whole step is free
    return value, v, jnp.minimum(best, feedback.weight)


class Account(NamedTuple):
    price: Float[Array, ""]  # c |u|^2 / 2
    own: Float[Array, ""]  # the sum of the learner's losses
    other: Float[Array, ""]  # the sum of the losses of u
    moved: Float[Array, ""]  # the sum of |v|^2 / (2 c)
    norms: Float[Array, ""]  # the same with the longest difference of a pair
    gain: Float[Array, ""]  # the sum of tau (g - <v, w>)
    spent: Float[Array, ""]  # c |w|^2 / 2 after the last round
    size: Float[Array, ""]  # for the rounding error


def start(hp: InstanceRankingHparams, state: InstanceRankingState, u: PyTree) -> Account:
    u = check.comparator(u, state.w)
    return Account(jnp.sum(u * u) / (2 * hp.eta), *[ZERO] * 7)


def terms(
    hp: InstanceRankingHparams, state: InstanceRankingState, feedback: Feedback, u: PyTree
) -> Account:
    weight = jnp.asarray(feedback.weight, state.w.dtype)
    value, v, tau = step_of(hp, feedback)
    own, other = weight * value, weight * hp.loss(feedback.context @ u, feedback.outcome)
    moved = hp.eta * weight**2 * jnp.sum(v * v) / 2
    longest = jnp.where(value > 0, _longest(feedback), 0.0)
    gained, after = tau * (value - v @ state.w), update(hp, state, feedback).w
    spent = jnp.sum(after * after) / (2 * hp.eta)
    size = own + other + moved + jnp.abs(gained) + spent
    norms = hp.eta * weight**2 * longest / 2
    return Account(ZERO, own, other, moved, norms, gained, latest(spent), size)


def regret_sides(hp: InstanceRankingHparams, account: Account, u: PyTree) -> Certificate:
    left, right = account.own - account.other, account.price + account.moved
    return Certificate(left, right, account.size + account.price, account.price + account.norms)


def duality_sides(hp: InstanceRankingHparams, account: Account, u: PyTree) -> Certificate:
    left, primal = account.own - account.moved, account.price + account.other
    dual = account.gain - account.spent
    return Certificate(left, dual, account.size + account.price, primal)


def _longest(feedback: Feedback) -> Array:
    """The largest squared distance of the two rows of a pair."""
    rows = feedback.context
    gram, square = rows @ rows.T, jnp.sum(rows * rows, axis=1)
    apart = square[:, None] + square[None, :] - 2 * gram
    relevance = jnp.asarray(feedback.outcome).astype(rows.dtype)
    return jnp.max(jnp.where(pairs(relevance), apart, 0.0))


SOURCE = "Shalev-Shwartz 2007, section 5.3.4"
instance_regret = summed("instance_regret", f"{SOURCE} and corollary 1", terms, regret_sides, start)
instance_duality = summed("instance_duality", f"{SOURCE} and lemma 1", terms, duality_sides, start)


@public
def group_rows(rows: ArrayLike, relevance: ArrayLike, sizes: ArrayLike) -> Rounds:
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
