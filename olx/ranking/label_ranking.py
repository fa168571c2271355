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
most $q$, unless the bound 1 is reached before: see `olx.ranking.geometries`.

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

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import RefusedType, own_name, public
from olx.certificate import DOMAIN, Certificate
from olx.core import Feedback, Learner, Process, Scalar
from olx.facts import AddsContext, Facts, Rowwise
from olx.losses.ranks import masks, parted
from olx.mirrors.base import MirrorMap
from olx.ranking import geometries
from olx.ranking.geometries import EntropicState, EuclideanState, Geometry, Ranked, Update
from olx.schedules.fixed import as_schedule, no_stats
from olx.schedules.roots import root_norms_at, root_rounds_at
from olx.theorem import Theorem


@pytree
class LabelRankingHparams:
    eta: Process
    mirror: MirrorMap
    update: Update
    margin: Scalar


class DualState(NamedTuple):
    """The state in Euclidean space, and if $c$ changes with time; else it is `EntropicState`."""

    acc: Float[Array, "k d"]  # minus the sum of all dual vectors, not divided by c
    stats: PyTree  # of the schedule


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
    entropic = geometries.is_entropy(mirror)
    if not entropic and not mirror.identity:
        raise RefusedType(
            "`mirror` must be `olx.mirrors.euclidean()` without a domain, or "
            "`olx.mirrors.negative_entropy()` without a prior; for other maps play "
            "`olx.linear(olx.omd(eta, olx.mirrors.rowwise(mirror)))` on `olx.losses.label_hinge()`."
        )
    if entropic:
        margin = geometries.below_one(margin)
    hparams = LabelRankingHparams(eta, mirror, update, margin)
    fixed = _is_fixed(hparams)
    is_root = eta.at_fn in (root_norms_at, root_rounds_at)
    own = (label_rate,) if fixed else (label_schedule,) * is_root
    return Learner(
        hparams,
        init,
        predict,
        learn,
        facts=Facts(
            adds=AddsContext(_coefficients, _scaled) if fixed and not entropic else None,
            coordinates=Rowwise() if fixed or not entropic else None,
        ),
        needs=(masks("label_ranking"), *((geometries.ENTROPIC_ROWS,) if entropic else ())),
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
    if _keeps_dual(hp):
        return DualState(jnp.zeros_like(params), hp.eta.init(params))
    return geometries.entropic_init(params)


@own_name("label_ranking")
def predict(hp: LabelRankingHparams, state: PyTree, context: PyTree) -> Array:
    shape = np.shape(_weights_of(state))[1:]
    if np.shape(context) != shape:
        raise RefusedType(
            f"the context has shape {np.shape(context)}, the weights of a label "
            f"have shape {shape}; they must agree."
        )
    c, now = _rate(hp, state, context), state
    if _keeps_dual(hp):
        now = _geometry_of(hp).at(c, state.acc)
    return now.scores(context)


def learn(hp: LabelRankingHparams, state: PyTree, feedback: Feedback) -> PyTree:
    now = _round(hp, state, feedback)
    steps = _signed(now, _dual_variables(hp, now))
    if not _keeps_dual(hp):
        return geometries.entropic_move(now.c, state, now.x, now.scores, steps)
    stats = hp.eta.update(state.stats, _heard(hp, now, feedback))
    return DualState(state.acc + steps[:, None] * now.x, stats)


def _coefficients(hp: LabelRankingHparams, feedback: Feedback) -> Array:
    """The factors of the row in the update, in Euclidean space with a fixed c."""
    now = _round(hp, None, feedback)
    return _signed(now, _dual_variables(hp, now))


def _scaled(hp: LabelRankingHparams, products: Array) -> Array:
    """The scores of a row from its products with `acc`, for a fixed c."""
    return products / _rate(hp, None, None)


def _geometry_of(hp: LabelRankingHparams) -> Geometry:
    return EuclideanState if hp.mirror.identity else EntropicState


def _is_fixed(hp: LabelRankingHparams) -> bool:
    return hp.eta.init_fn is no_stats


def _keeps_dual(hp: LabelRankingHparams) -> bool:
    """Whether the state is a `DualState`."""
    return hp.mirror.identity or not _is_fixed(hp)


def _weights_of(state: PyTree) -> Array:
    """The array of a state that is shaped like the weights."""
    return state.acc if isinstance(state, DualState) else state.theta


def _round(hp: LabelRankingHparams, state: PyTree, feedback: Feedback) -> Ranked:
    x, y = feedback.context, feedback.outcome
    return geometries.ranked(feedback.action, y, x, hp.margin, _rate(hp, state, x), feedback.weight)


def _rate(hp: LabelRankingHparams, state: PyTree, x: PyTree) -> Scalar:
    r"""$c_t = 1 / \eta_t$, times the modulus of the potential."""
    assert hp.mirror.modulus is not None  # both potentials state it
    return hp.mirror.modulus / hp.eta.at(None if _is_fixed(hp) else state.stats, x)


def _dual_variables(hp: LabelRankingHparams, now: Ranked) -> Array:
    """The dual variable of each label, 0 in a round that does not count or has no loss.

    If x is 0 no step changes the weights, and the whole one gains most.
    """
    counts = hp.update.counts_fn(now) & (now.gap > 0) & (now.weight > 0)
    best = jnp.where(now.moves, hp.update.pick_fn(_geometry_of(hp), now), now.weight * now.worst)
    alpha = jnp.where(counts, best, 0.0)
    return jnp.where(jnp.isnan(now.gap), now.gap, alpha)  # a margin that is not legal shows


def _signed(now: Ranked, alpha: Array) -> Array:
    return jnp.where(now.relevant, alpha, -alpha)


def _heard(hp: LabelRankingHparams, now: Ranked, feedback: Feedback) -> Feedback:
    """What a schedule sees: the lead of the relevant labels, as the score of a label +1."""
    ahead = hp.margin - now.gap
    loss = Partial(_short, hp.margin)
    value, grad = jax.value_and_grad(loss)(ahead)
    weight = jnp.where(hp.update.counts_fn(now) & now.moves, now.weight, 0.0)
    return feedback._replace(
        action=ahead, outcome=jnp.ones_like(ahead), loss=loss, value=value, grad=grad, weight=weight
    )


def _short(margin: Scalar, ahead: Array) -> Array:
    return jnp.maximum(margin - ahead, 0.0)


class Account(NamedTuple):
    complexity: Float[Array, ""]  # f(u)
    c: Float[Array, ""]  # of the last round
    inside: Bool[Array, ""]  # whether u lies in the domain
    own: Float[Array, ""]  # the sum of the learner's losses
    other: Float[Array, ""]  # the sum of the losses of u
    drift: Float[Array, ""]  # the sum of c B, and of the changes of c
    norms: Float[Array, ""]  # the sum of squared norms, over c, and of the changes above 0
    lossy: Float[Array, ""]  # rounds that count and have a loss
    largest: Float[Array, ""]  # the largest squared norm, over c
    wrong: Float[Array, ""]  # the weight of the mistakes
    gain: Float[Array, ""]  # minus the conjugates of the losses
    dual: Float[Array, ""]  # D
    dual_size: Float[Array, ""]  # the sum of absolute values of its terms
    rounds: Float[Array, ""]
    most: Float[Array, ""]  # V
    size: Float[Array, ""]  # the sum of absolute values, for the rounding error

    @property
    def price(self) -> Array:
        return self.c * self.complexity


def open_account(hp: LabelRankingHparams, state: PyTree, u: PyTree) -> Account:
    u = check.comparator(u, _weights_of(state))
    geometry, zero = _geometry_of(hp), jnp.zeros((), _weights_of(state).dtype)
    c = zero + (_rate(hp, state, None) if _is_fixed(hp) else 0.0)
    complexity, size = zero + geometry.price(u), c * geometry.offset(u)
    return Account(complexity, c, geometry.inside(u), *(zero,) * 12, size=size)


def add_round(
    hp: LabelRankingHparams, account: Account, state: PyTree, feedback: Feedback, u: PyTree
) -> Account:
    geometry, now = _geometry_of(hp), _round(hp, state, feedback)
    counts = hp.update.counts_fn(now)
    only = lambda value: jnp.where(counts & (now.gap > 0), value, 0.0)
    own = only(now.weight * now.gap)
    _, low, high = parted(u @ now.x, feedback.outcome)
    other = jnp.where(counts, now.weight * jnp.maximum(now.margin - low + high, 0.0), 0.0)
    energy = now.weight**2 * geometry.square(now.x)
    drift, square = only(geometry.drift(now)), only(energy / now.c)
    change, constants = _change(hp, account, state, now)
    after = learn(hp, state, feedback)
    after = geometry.at(now.c, after.acc) if _keeps_dual(hp) else after
    gained = now.margin * jnp.sum(jnp.where(now.relevant, _dual_variables(hp, now), 0.0))
    gain, spent = account.gain + gained, now.c * after.conjugate()
    rounds = account.rounds + 1
    return Account(
        account.complexity,
        now.c * jnp.ones_like(account.c),
        account.inside,
        account.own + own,
        account.other + other,
        account.drift + (drift + change),
        account.norms + (square + jnp.maximum(change, 0.0)),
        account.lossy + only(jnp.ones_like(own)),
        jnp.maximum(account.largest, square),
        account.wrong + jnp.where(now.mistaken, now.weight, 0.0),
        gain,
        gain - spent,
        account.dual_size + gained + jnp.abs(spent),
        rounds,
        jnp.maximum(account.most, rounds * energy / now.c**2),
        account.size + own + other + drift + square + jnp.abs(change) + constants,
    )


def _change(
    hp: LabelRankingHparams, account: Account, state: PyTree, now: Ranked
) -> tuple[Array, Array]:
    """How c f*(acc / c) changes because c does, and the size of the constants in it."""
    if _is_fixed(hp):
        return jnp.zeros_like(account.own), jnp.zeros_like(account.own)
    geometry, past = _geometry_of(hp), jnp.where(account.c > 0, account.c, now.c)
    here, before = (c * geometry.at(c, state.acc).conjugate() for c in (now.c, past))
    return here - before, jnp.abs(here) + now.c * geometry.offset(state.acc)


def duality_sides(hp: LabelRankingHparams, account: Account, u: PyTree) -> Certificate:
    left, primal = account.own - account.drift, account.price + account.other
    return _proof(account, left, account.dual, primal, account.dual_size)


def regret_sides(hp: LabelRankingHparams, account: Account, u: PyTree) -> Certificate:
    left, price = account.own - account.other, account.price
    return _proof(account, left, price + account.drift, price + account.norms)


def rate_sides(hp: LabelRankingHparams, account: Account, u: PyTree) -> Certificate:
    left, price = account.own - account.other, account.price
    most = price + account.lossy * account.largest
    return _proof(account, left, price + account.norms, most, most)


def mistakes_sides(hp: LabelRankingHparams, account: Account, u: PyTree) -> Certificate:
    left, fixed = hp.margin * account.wrong, account.price + account.other
    return _proof(account, left, fixed + account.drift, fixed + account.norms)


def schedule_sides(hp: LabelRankingHparams, account: Account, u: PyTree) -> Certificate:
    assert hp.mirror.modulus is not None  # both potentials state it
    known = hp.eta.hparams.complexity / hp.mirror.modulus**2
    right = account.c * (account.complexity + 2 * account.most)
    suits = account.most <= known * (1 + 64 * jnp.finfo(account.c.dtype).eps)
    published = jnp.where(suits, 2 * account.c * (account.complexity + known), jnp.inf)
    return _proof(account, account.own - account.other, right, published, right)


def _proof(
    account: Account, left: Array, right: Array, published: Array, more: Scalar = 0.0
) -> Certificate:
    """The certificate; `more` adds to the size of its numbers."""
    size = account.size + account.price + more
    return Certificate(left, right, size, published).given(DOMAIN, account.inside)


SOURCE = "Shalev-Shwartz 2007"
_fold = lambda name, part, sides: Theorem(name, f"{SOURCE}, {part}", open_account, add_round, sides)
label_duality = _fold("label_duality", "lemma 1", duality_sides)
label_regret = _fold("label_regret", "(3.17) and lemma 18", regret_sides)
label_rate = _fold("label_rate", "corollary 1 and lemma 18", rate_sides)
label_mistakes = _fold("label_mistakes", "section 8.2", mistakes_sides)
label_schedule = _fold("label_schedule", "corollaries 2 and 3 and lemma 18", schedule_sides)
