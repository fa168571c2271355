r"""Label ranking: score $k$ labels so that the relevant ones come first.

Each label has weights $w_r$ and the score $\langle w_r, x_t\rangle$. The outcome is a set $Y_t$ of
relevant labels; a single label is a set of one. The loss is the largest violation of the margin,

$$g_t(w) = \max_{r \in Y_t, s \notin Y_t} (\gamma - \langle w_r - w_s, x_t\rangle)_+,$$

and a mistake is a round in which a relevant label is not strictly above all others. The learner is
a dual ascent on $c_t f(w) + \sum_t g_t(w)$, $c_t = 1 / \eta_t$, with $f(w) = \sum_r f_1(w_r)$:

$$w_r = \nabla f_1^*(acc_r / c_t), \qquad acc_r \leftarrow acc_r \pm \alpha_r x_t, \qquad
  \alpha \ge 0, \quad \sum_{r \in Y_t} \alpha_r = \sum_{s \notin Y_t} \alpha_s \le 1,$$

with plus for relevant labels. Two potentials (the Euclidean norm, the entropy with one simplex per
label) and three updates, `conservative`, `aggressive` and `optimal`, make six algorithms. The best
update has levels: relevant labels are raised to at least $q + \gamma$, others are lowered to at
most $q$, unless the bound 1 is reached before (`olx.convex.balanced`, `balanced_logits`).

A round of weight $h$ has the loss $h g_t$ and the bound $h$. If no label or every label is
relevant, or if $x_t = 0$, nothing changes. Its theorems are in `olx.ranking.label_ranking_regret`
and, for step sizes that shrink with time, `olx.ranking.label_ranking_schedules`.

`olx.repeated_game` with `olx.games.labels` ranks labels with any other potential, by numerical
searches for the best update.

Crammer and Singer, A Family of Additive Online Algorithms for Category Ranking, 2003;
Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, chapter 8.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, PyTree

from olx import _check as check
from olx.core import Learner, Process, Scalar
from olx.facts import AddsContext, Facts, Rowwise
from olx.losses.ranks import masks
from olx.mirrors.base import MirrorMap
from olx.mirrors.entropy import negative_entropy
from olx.needs import Need
from olx.ranking._round import Update
from olx.ranking._rule import (
    LabelRankingHparams,
    begin,
    coefficients,
    geometry_of,
    is_fixed,
    learn,
    scaled,
    seen,
    weights_of,
)
from olx.ranking.label_ranking_regret import (
    label_duality,
    label_mistakes,
    label_rate,
    label_regret,
)
from olx.ranking.label_ranking_schedules import is_root, label_schedule
from olx.schedules.decay import as_schedule


def label_ranking(
    eta: Scalar | Process, mirror: MirrorMap, update: Update, margin: Scalar = 1.0
) -> Learner:
    r"""Rank labels, with outcomes of 1 for relevant labels and 0 for others.

    eta: $1 / c_t$, a positive number or one of `olx.schedules`. In Euclidean space it bounds the
        step; `conservative` there does not depend on a fixed one. With a schedule the entropy needs
        dense rows: all weights change in every round.
    mirror: `olx.mirrors.euclidean()`, or `olx.mirrors.negative_entropy()`, which is used for the
        weights of each label and needs rows of 0 and 1 and a `margin` below 1.
    update: `olx.ranking.conservative()`, `aggressive()` or `optimal()`.
    margin: $\gamma$, positive.

    Only the shape of `params` is used: one row of weights per label, as jnp.zeros((k, d)).

    >>> import jax.numpy as jnp, olx
    >>> learner = label_ranking(1.0, olx.mirrors.euclidean(), olx.ranking.optimal())
    >>> rows = jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> relevant = jnp.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    >>> play = olx.Rounds(rows, relevant)
    >>> run = olx.rollout(learner, olx.losses.label_hinge(), play, jnp.zeros((3, 2)))
    >>> [round(float(loss), 4) for loss in run.losses]
    [1.0, 1.0, 0.0]
    """
    check.instance("label_ranking", "mirror", mirror, MirrorMap)
    check.instance("label_ranking", "update", update, Update)
    eta = as_schedule("label_ranking", "eta", eta)
    margin = check.positive("label_ranking", "margin", margin)
    entropic = _is_entropy(mirror)
    if not entropic and not mirror.identity:
        raise TypeError(
            "label_ranking: `mirror` must be `olx.mirrors.euclidean()` without a domain, or "
            "`olx.mirrors.negative_entropy()` without a prior; for other maps play "
            "`olx.linear(olx.omd(eta, olx.mirrors.rowwise(mirror)))` on `olx.losses.label_hinge()`."
        )
    if entropic:
        margin = _below_one(margin)
    hparams = LabelRankingHparams(eta, mirror, update, margin)
    fixed = is_fixed(hparams)
    own = (label_rate,) if fixed else (label_schedule,) * is_root(hparams)
    return Learner(
        hparams,
        init,
        predict,
        learn,
        facts=Facts(
            adds=AddsContext(coefficients, scaled) if fixed and not entropic else None,
            coordinates=Rowwise() if fixed or not entropic else None,
        ),
        needs=(masks("label_ranking"), *((_WORDS,) if entropic else ())),
        theorems=(label_duality, label_regret, *own, label_mistakes),
    )


def init(hp: LabelRankingHparams, params: PyTree) -> PyTree:
    shape = np.shape(params) if hasattr(params, "shape") else None
    if shape is None or len(shape) != 2 or shape[0] < 2:
        raise TypeError(
            f"label_ranking: `params` has {'no shape' if shape is None else f'shape {shape}'}; it "
            "must have one row of weights per label, for 2 labels or more: jnp.zeros((k, d))."
        )
    return begin(hp, params)


def predict(hp: LabelRankingHparams, state: PyTree, context: PyTree) -> Array:
    shape = np.shape(weights_of(state))[1:]
    if np.shape(context) != shape:
        raise TypeError(
            f"label_ranking: the context has shape {np.shape(context)}, the weights of a label "
            f"have shape {shape}; they must agree."
        )
    return geometry_of(hp).scores(seen(hp, state, context), context)


def _is_entropy(mirror: MirrorMap) -> bool:
    own = mirror.conjugate.func is negative_entropy().conjugate.func
    return own and mirror.lump is not None  # a prior has no lump


def _below_one(margin: Scalar) -> Scalar:
    if isinstance(margin, Tracer):
        return jnp.where(margin < 1, margin, jnp.nan)
    if not margin < 1:
        raise ValueError(
            "label_ranking: `margin` must be below 1 for the entropy, whose scores lie in [0, 1], "
            f"got {margin}."
        )
    return margin


def _are_words(hparams: Any, params: Any, rounds: Any) -> Any:
    rows = rounds.context
    values = rows.values if hasattr(rows, "values") else rows
    legal = (values == 0) | (values == 1)
    if values is rows or np.all(legal):
        return legal if values is rows else True
    whole = rows.toarray()
    return (whole == 0) | (whole == 1)


_WORDS = Need(
    "context",
    _are_words,
    "rows must hold 0 and 1 only for the entropy",
    "label_ranking",
    "use (x > 0), or the mirror map `olx.mirrors.euclidean()`",
)
