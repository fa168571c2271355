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
relevant, or if $x_t = 0$, nothing changes. `olx.repeated_game` with `olx.games.labels` ranks labels
with any other potential, by numerical searches for the best update.

The theorems hold against any weights $u$. The losses count in all rounds, for `conservative` in
rounds with a mistake only. $M$ are the mistakes, $h_s$ the weights of rounds, $f - \min f$ is
written as $f$. The subgradient of a loss is $-x_s$ for one label and $x_s$ for another, so its
squared dual norm is $2 \|x_s\|_*^2$.

- `label_duality`, lemma 1: the dual $D_t = -c f^*(acc / c) + \gamma \sum_s \sum_{r \in Y_s}
  \alpha_{s,r}$ lies between both sides,
  $$\sum_{s \le t} h_s g_s(w_s) - \sum_{s \le t} c B_s \le D_t \le c f(u) +
    \sum_{s \le t} h_s g_s(u),$$
  with $B_s$ the divergence $B_{f^*}$ of a subgradient step.
- `label_regret`, (3.17) and lemma 18:
  $$\sum_{s \le t} h_s (g_s(w_s) - g_s(u)) \le c f(u) + \sum_{s \le t} c B_s \le
    c f(u) + \frac1c \sum_{s \le t} h_s^2 \|x_s\|_*^2.$$
- `label_rate`, corollary 1: the right side with the largest norm in place of each, for every fixed
  $c$.
- `label_mistakes`: $\gamma \sum_{s \in M} h_s \le c f(u) + \sum_s c B_s + \sum_s h_s g_s(u)$,
  since a mistake has a loss of at least $\gamma$.

With a schedule the first factor is the $c_t$ of the last round and $B_s$ belongs to $c_s$. The sum
of $c_s B_s$ then also has the changes $c_s f^*(acc_s / c_s) - c_{s-1} f^*(acc_s / c_{s-1})$, which
are never positive if $c$ does not decrease: lemma 2.

The norm is $\|\cdot\|_2$ in Euclidean space and $\|\cdot\|_\infty$ for the entropy, where $f(u) \le
k \log d$.

`label_schedule` is for step sizes that shrink with the root of time: `root_rounds`, $c_t = \sqrt{t
L / U}$ for a known $L \ge L_s = h_s^2 \|x_s\|_*^2$, and `root_norms`, $c_t = \sqrt{t / U} \max_{s
\le t} \|x_s\|_*$. With $V_t = \max_{s \le t} s L_s / c_s^2$,

$$\sum_{s \le t} h_s (g_s(w_s) - g_s(u)) \le c_t f(u) + \sum_{s \le t} \frac{L_s}{c_s}
  \le c_t (f(u) + 2 V_t).$$

If the schedule suits the rows, $V_t \le U$. `published` is then $2 c_t (f(u) + U)$, which is $4
\sqrt{\max_s L_s\, U t}$ for $f(u) \le U$; else it is infinite. The schedule `root_lipschitz` with
the constant $\sqrt2$ is `root_norms`; with $l$ it suits weights of at most $l / \sqrt2$. Proof:
$L_s \le c_s^2 V_t / s$, and $c_s / \sqrt s$ never decreases. So the last sum is at most $V_t \sum_s
c_s / s \le V_t (c_t / \sqrt t) \sum_s s^{-1/2} \le 2 V_t c_t$.

Crammer and Singer, A Family of Additive Online Algorithms for Category Ranking, 2003;
Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 3.3,
corollaries 1 to 3 and chapter 8.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx._refusal import RefusedType, RefusedValue, own_name, public
from olx.core import Feedback, Learner, Process, Scalar
from olx.facts import AddsContext, Facts, Rowwise
from olx.losses.ranks import masks, parted
from olx.mirrors.base import MirrorMap
from olx.mirrors.entropy import negative_entropy
from olx.needs import Need
from olx.ranking._round import Ranked, Update
from olx.ranking._rule import (
    LabelRankingHparams,
    begin,
    coefficients,
    dual_variables,
    geometry_of,
    is_fixed,
    keeps_dual,
    learn,
    rate,
    round_of,
    scaled,
    seen,
    weights_of,
)
from olx.schedules.fixed import as_schedule
from olx.schedules.roots import root_norms_at, root_rounds_at
from olx.theorem import DOMAIN, Certificate, Theorem


@public
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
    check.instance("mirror", mirror, MirrorMap)
    check.instance("update", update, Update)
    eta = as_schedule("eta", eta)
    margin = check.positive("margin", margin)
    entropic = _is_entropy(mirror)
    if not entropic and not mirror.identity:
        raise RefusedType(
            "`mirror` must be `olx.mirrors.euclidean()` without a domain, or "
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


@own_name("label_ranking")
def init(hp: LabelRankingHparams, params: PyTree) -> PyTree:
    shape = np.shape(params) if hasattr(params, "shape") else None
    if shape is None or len(shape) != 2 or shape[0] < 2:
        raise RefusedType(
            f"`params` has {'no shape' if shape is None else f'shape {shape}'}; it "
            "must have one row of weights per label, for 2 labels or more: jnp.zeros((k, d))."
        )
    return begin(hp, params)


@own_name("label_ranking")
def predict(hp: LabelRankingHparams, state: PyTree, context: PyTree) -> Array:
    shape = np.shape(weights_of(state))[1:]
    if np.shape(context) != shape:
        raise RefusedType(
            f"the context has shape {np.shape(context)}, the weights of a label "
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
        raise RefusedValue(
            f"`margin` must be below 1 for the entropy, whose scores lie in [0, 1], got {margin}."
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


class Account(NamedTuple):
    complexity: Float[Array, ""]  # f(u)
    c: Float[Array, ""]  # of the last round
    inside: Bool[Array, ""]  # whether u lies in the domain
    own: Float[Array, ""]  # the sum of the learner's losses
    other: Float[Array, ""]  # the sum of the losses of u
    drift: Float[Array, ""]  # the sum of c B, and of the changes of c
    norms: Float[Array, ""]  # the sum of squared norms, over c, and of the changes above 0
    rounds: Float[Array, ""]  # rounds that count and have a loss
    largest: Float[Array, ""]  # the largest squared norm, over c
    wrong: Float[Array, ""]  # the weight of the mistakes
    size: Float[Array, ""]  # the sum of absolute values, for the rounding error

    @property
    def price(self) -> Array:
        return self.c * self.complexity


def open_account(hp: LabelRankingHparams, state: PyTree, u: PyTree) -> Account:
    u = check.comparator(u, weights_of(state))
    geometry, zero = geometry_of(hp), jnp.zeros((), weights_of(state).dtype)
    c = zero + (rate(hp, state, None) if is_fixed(hp) else 0.0)
    complexity, size = zero + geometry.price(u), c * geometry.offset(u)
    return Account(complexity, c, geometry.inside(u), *(zero,) * 7, size=size)


def add_round(
    hp: LabelRankingHparams, account: Account, state: PyTree, feedback: Feedback, u: PyTree
) -> Account:
    geometry, now = geometry_of(hp), round_of(hp, state, feedback)
    counts = hp.update.counts_fn(now)
    only = lambda value: jnp.where(counts & (now.gap > 0), value, 0.0)
    own = only(now.weight * now.gap)
    _, low, high = parted(u @ now.x, feedback.outcome)
    other = jnp.where(counts, now.weight * jnp.maximum(now.margin - low + high, 0.0), 0.0)
    drift, square = only(geometry.drift(now)), only(now.weight**2 * geometry.square(now.x) / now.c)
    change, constants = _change(hp, account, state, now)
    return Account(
        account.complexity,
        now.c * jnp.ones_like(account.c),
        account.inside,
        account.own + own,
        account.other + other,
        account.drift + (drift + change),
        account.norms + (square + jnp.maximum(change, 0.0)),
        account.rounds + only(jnp.ones_like(own)),
        jnp.maximum(account.largest, square),
        account.wrong + jnp.where(now.mistaken, now.weight, 0.0),
        account.size + own + other + drift + square + jnp.abs(change) + constants,
    )


def _change(hp: LabelRankingHparams, account: Account, state: PyTree, now: Ranked):
    """How c f*(acc / c) changes because c does, and the size of the constants in it."""
    if is_fixed(hp):
        return jnp.zeros_like(account.own), jnp.zeros_like(account.own)
    geometry, past = geometry_of(hp), jnp.where(account.c > 0, account.c, now.c)
    here, before = (c * geometry.conjugate(geometry.at(c, state.acc)) for c in (now.c, past))
    return here - before, jnp.abs(here) + now.c * geometry.offset(state.acc)


class DualAccount(NamedTuple):
    regret: Account
    gain: Float[Array, ""]  # minus the conjugates of the losses
    dual: Float[Array, ""]  # D
    size: Float[Array, ""]


def open_dual(hp: LabelRankingHparams, state: PyTree, u: PyTree) -> DualAccount:
    regret = open_account(hp, state, u)
    return DualAccount(regret, *(jnp.zeros_like(regret.own),) * 3)


def add_dual(
    hp: LabelRankingHparams, account: DualAccount, state: PyTree, feedback: Feedback, u: PyTree
) -> DualAccount:
    geometry, now = geometry_of(hp), round_of(hp, state, feedback)
    alpha, after = dual_variables(hp, now), learn(hp, state, feedback)
    after = geometry.at(now.c, after.acc) if keeps_dual(hp) else after
    gained = now.margin * jnp.sum(jnp.where(now.relevant, alpha, 0.0))
    gain, spent = account.gain + gained, now.c * geometry.conjugate(after)
    return DualAccount(
        add_round(hp, account.regret, state, feedback, u),
        gain,
        gain - spent,
        account.size + gained + jnp.abs(spent),
    )


def duality_sides(hp: LabelRankingHparams, account: DualAccount, u: PyTree) -> Certificate:
    seen = account.regret
    left, primal = seen.own - seen.drift, seen.price + seen.other
    size = _size(seen) + account.size
    return _given(seen, Certificate(left, account.dual, size, primal))


def regret_sides(hp: LabelRankingHparams, account: Account, u: PyTree) -> Certificate:
    left, price = account.own - account.other, account.price
    return _given(
        account,
        Certificate(left, price + account.drift, _size(account), price + account.norms),
    )


def rate_sides(hp: LabelRankingHparams, account: Account, u: PyTree) -> Certificate:
    left, price = account.own - account.other, account.price
    most = price + account.rounds * account.largest
    return _given(account, Certificate(left, price + account.norms, _size(account) + most, most))


def mistakes_sides(hp: LabelRankingHparams, account: Account, u: PyTree) -> Certificate:
    left, fixed = hp.margin * account.wrong, account.price + account.other
    return _given(
        account,
        Certificate(left, fixed + account.drift, _size(account), fixed + account.norms),
    )


def _given(account: Account, proof: Certificate) -> Certificate:
    return proof.given(DOMAIN, account.inside)


def _size(account: Account) -> Array:
    return account.size + account.price


SOURCE = "Shalev-Shwartz 2007"
_fold = lambda name, source, sides: Theorem(name, source, open_account, add_round, sides)
label_duality = Theorem("label_duality", f"{SOURCE}, lemma 1", open_dual, add_dual, duality_sides)
label_regret = _fold("label_regret", f"{SOURCE}, (3.17) and lemma 18", regret_sides)
label_rate = _fold("label_rate", f"{SOURCE}, corollary 1 and lemma 18", rate_sides)
label_mistakes = _fold("label_mistakes", f"{SOURCE}, section 8.2", mistakes_sides)


class ScheduleAccount(NamedTuple):
    regret: Account
    rounds: Float[Array, ""]
    most: Float[Array, ""]  # V


def is_root(hp: LabelRankingHparams) -> bool:
    """Whether the schedule is one of those that the theorem is about."""
    return hp.eta.at_fn in (root_norms_at, root_rounds_at)


def open_schedule(hp: LabelRankingHparams, state: PyTree, u: PyTree) -> ScheduleAccount:
    own = open_account(hp, state, u)
    return ScheduleAccount(own, jnp.zeros_like(own.c), jnp.zeros_like(own.c))


def add_scheduled_round(
    hp: LabelRankingHparams, account: ScheduleAccount, state: PyTree, feedback: Feedback, u: PyTree
) -> ScheduleAccount:
    own, rounds = add_round(hp, account.regret, state, feedback, u), account.rounds + 1
    c, x = rate(hp, state, feedback.context), feedback.context
    energy = feedback.weight**2 * geometry_of(hp).square(x)
    return ScheduleAccount(own, rounds, jnp.maximum(account.most, rounds * energy / c**2))


def schedule_sides(hp: LabelRankingHparams, account: ScheduleAccount, u: PyTree) -> Certificate:
    assert hp.mirror.modulus is not None  # both potentials state it
    own, known = account.regret, hp.eta.hparams.complexity / hp.mirror.modulus**2
    right = own.c * (own.complexity + 2 * account.most)
    suits = account.most <= known * (1 + 64 * jnp.finfo(own.c.dtype).eps)
    published = jnp.where(suits, 2 * own.c * (own.complexity + known), jnp.inf)
    proof = Certificate(own.own - own.other, right, own.size + own.price + right, published)
    return proof.given(DOMAIN, own.inside)


SCHEDULE_SOURCE = "Shalev-Shwartz 2007, corollaries 2 and 3 and lemma 18"
label_schedule = Theorem(
    "label_schedule", SCHEDULE_SOURCE, open_schedule, add_scheduled_round, schedule_sides
)
