r"""The primal-dual framework: play through the mirror map; each round increases the dual objective.

$$w_t = \nabla f^*\Big(-\frac1{c_t} \sum_{i < t} \lambda_i\Big), \qquad
  D_t(\lambda) = -c_t f^*\Big(-\frac1{c_t} \sum_i \lambda_i\Big) - \sum_i g_i^*(\lambda_i) \le
  \min_u\; c_t f(u) + \sum_i g_i(u).$$

The learner predicts linear scores: the loss of a round is $g_t(w) = h_t\,\ell(\langle w,
x_t\rangle, y_t)$ and $\lambda_t = h_t \tau_t x_t$. Four choices make an algorithm: the potential
$f$ (additive, multiplicative, p-norm), the loss (classification, regression), the ascent rule (from
the subgradient to follow the leader) and the step size $\eta_t = 1 / c_t$. With a loss of classes
$w$ is a matrix with a row per class, the score is the vector $w x_t$, and $\lambda_t = h_t \tau_t
x_t^\top$. The minimum of $f$ need not be 0: all bounds use $f - \min f$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, figures 3.1 and 3.2.
"""

import dataclasses
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx._refusal import public
from olx.certificate import DOMAIN, Certificate
from olx.core import Feedback, Learner, Process, Scalar
from olx.facts import Aggregate, Decision, Facts, HasAggregate, Rowwise
from olx.frameworks import primal_dual
from olx.frameworks.accounts import value_at
from olx.frameworks.ascents.base import Ascent, Problem, always
from olx.frameworks.lift import dot, size_of_dot
from olx.frameworks.mistakes import add_hinge, hinge_mistakes, on_hinge
from olx.frameworks.primal_dual import Account, DualAscentHparams, DualAscentState
from olx.losses.classes import class_rows
from olx.losses.margin import margin, mistaken, tie_if_rounding
from olx.losses.score import ScoreLoss, check_convex, of_score
from olx.mirrors.base import MirrorMap
from olx.schedules.fixed import as_schedule
from olx.theorem import Theorem
from olx.wrapper import LOSS, lift_needs


@public
def dual_ascent(
    eta: Scalar | Process, mirror: MirrorMap, loss: ScoreLoss, ascent: Ascent
) -> Learner:
    r"""Predict $\langle w_t, x_t\rangle$ and increase the dual objective after each round.

    eta: the step size $1 / c_t$: a positive number or one of `olx.schedules`, which may depend on
        $x_t$. The published bounds assume that it does not increase.
    loss: the learner's own loss; convex. The game may use another loss, such as `zero_one`.
    ascent: one of `olx.ascents`.

    Only the shape of `params` is used: the first decision is the minimizer of the potential. The
    context has the same shape; for a loss of classes `params` has one such row per class.

    >>> import jax, jax.numpy as jnp, olx
    >>> stream = olx.streams.linear_classification(jax.random.key(0), rounds=60, features=3)
    >>> learner = olx.dual_ascent(
    ...     0.5, olx.mirrors.pnorm(1.5), olx.losses.hinge, olx.ascents.aggressive()
    ... )
    >>> run = olx.rollout(
    ...     learner, olx.losses.hinge, stream.rounds, jnp.zeros(3), record=olx.record.trace
    ... )
    >>> bool(olx.certify(learner, run, stream.truth).holds)
    True
    """
    check.instance("mirror", mirror, MirrorMap)
    check.instance("loss", loss, ScoreLoss)
    check.instance("ascent", ascent, Ascent)
    if loss.conjugate_fn is None:
        check_convex(loss)
    hparams = DualAscentHparams(mirror, loss, ascent, as_schedule("eta", eta))
    aggregates = HasAggregate(_aggregate) if _has_aggregate(hparams) else None
    coordinates = (Rowwise() if mirror.separable else aggregates) if ascent.separable else None
    costly = ascent.counts_fn is not always and primal_dual.fixed(hparams) and not mirror.identity
    facts = Facts(coordinates=coordinates, decision=Decision(decision, score) if costly else None)
    needs = lift_needs(LOSS, loss)
    if loss.of_classes:
        needs += (class_rows("dual_ascent"),)
    corollaries = map(_beside_dual, primal_dual.regret_theorems(hparams))
    inequality = _beside_dual(primal_dual.primal_dual_inequality)
    theorems = (inequality, weak_duality, sandwich, *corollaries)
    theorems += (_beside_dual(hinge_mistakes),) if on_hinge(hparams) else ()
    theorems = theorems if ascent.rises else (weak_duality,)
    return Learner(hparams, init, predict, update, facts=facts, needs=needs, theorems=theorems)


def init(hp: DualAscentHparams, params: PyTree) -> DualAscentState:
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(params)))
    memory, stats = hp.ascent.init(params), hp.eta.init(params)
    return DualAscentState(tree.zeros_like(params), zero, stats, memory)


def predict(hp: DualAscentHparams, state: DualAscentState, context: PyTree) -> Array:
    c = primal_dual.rate(hp, state, context)
    if hp.mirror.identity:  # divided last, so that a tie does not depend on c
        return dot(state.acc, context) / c
    return score(hp, _decision(hp, state, c), context)


def decision(hp: DualAscentHparams, state: DualAscentState) -> PyTree:
    """The decision, if the step size is constant."""
    return _decision(hp, state, primal_dual.rate(hp, state, None))


def _decision(hp: DualAscentHparams, state: DualAscentState, c: Scalar) -> PyTree:
    return hp.mirror.to_primal(jax.tree.map(lambda acc: acc / c, state.acc))


def score(hp: DualAscentHparams, w: PyTree, context: PyTree) -> Array:
    found = dot(w, context)
    if hp.ascent.counts_fn is always:
        return found
    return tie_if_rounding(found, size_of_dot(w, context))


def update(hp: DualAscentHparams, state: DualAscentState, feedback: Feedback) -> DualAscentState:
    now = primal_dual.problem(hp, state, feedback)
    centred, rise = _centred(hp, now)
    acc, change, memory = hp.ascent.step(state.memory, now._replace(acc=centred))
    loss = Partial(of_score, hp.loss, feedback.outcome)
    value, grad = hp.loss.value_and_slope(now.score, feedback.outcome)
    own = feedback._replace(loss=loss, value=value, grad=grad, weight=now.weight)
    if hp.loss.of_classes:  # a schedule sees the margin, as the score of a label +1
        own = own._replace(action=margin(now.score, now.y), outcome=jnp.ones_like(value))
    stats = hp.eta.update(state.stats, own)
    return DualAscentState(acc, state.conjugates + (change + rise), stats, memory)


class DualAccount(NamedTuple):
    """The account of the theorems of a learner, which all use the lemma."""

    lemma: Account
    dual: Float[Array, ""]  # D_t
    size: Float[Array, ""]  # the sum of the absolute values of its terms
    count: Float[Array, ""]  # number of mistakes; 0 if the loss is no hinge
    unit: Bool[Array, ""]  # whether all weights were 1


def open_account(hp: DualAscentHparams, state: DualAscentState, u: PyTree) -> DualAccount:
    lemma = primal_dual.open_account(hp, state, u)
    zero = jnp.zeros_like(lemma.c)
    return DualAccount(lemma, zero, zero, zero, jnp.ones((), bool))


def add_round(
    hp: DualAscentHparams,
    account: DualAccount,
    state: DualAscentState,
    feedback: Feedback,
    u: PyTree,
) -> DualAccount:
    lemma = primal_dual.add_round(hp, account.lemma, state, feedback, u)
    new = update(hp, state, feedback)
    raised = partial(primal_dual.dual_of, hp, lemma.least)
    risen = -value_at(raised, (lemma.c, new.acc), lemma.risen, (lemma.c, lemma.acc))
    size, count = jnp.abs(risen) + jnp.abs(new.conjugates), account.count
    if on_hinge(hp):
        count = count + jnp.where(mistaken(feedback.action, feedback.outcome), 1.0, 0.0)
    unit = account.unit & (jnp.asarray(feedback.weight) == 1)
    return DualAccount(lemma, risen - new.conjugates, size, count, unit)


def duality_sides(hp: DualAscentHparams, account: DualAccount, u: PyTree) -> Certificate:
    r"""Weak duality: $D_t \le c_t f(u) + \sum_{s \le t} g_s(u)$, with $\lambda$ after round $t$."""
    lemma = account.lemma
    proof = Certificate(account.dual, lemma.paid + lemma.other, _size(account))
    return proof.given(DOMAIN, lemma.met[DOMAIN])


def sandwich_sides(hp: DualAscentHparams, account: DualAccount, u: PyTree) -> Certificate:
    r"""Lemmas 1 and 2: the dual lies between the learner's loss minus divergences, and the primal.

    $$\sum_{s \le t} g_s(w_s) - \sum_{s \le t} \frac{\|\lambda'_s\|_*^2}{2 c_s} \le D_t \le
      c_t f(u) + \sum_{s \le t} g_s(u).$$

    The left side uses the Bregman divergences of `primal_dual_inequality` in place of the norms.
    `right` is the dual, `published` the primal.
    """
    lemma = account.lemma
    left, primal = lemma.regret + lemma.other - lemma.moved, lemma.paid + lemma.other
    return Certificate(left, account.dual, _size(account), primal).under(lemma.met)


weak_duality = Theorem(
    "weak_duality", "Shalev-Shwartz 2007, weak duality", open_account, add_round, duality_sides
)
sandwich = Theorem(
    "sandwich", "Shalev-Shwartz 2007, lemma 1", open_account, add_round, sandwich_sides
)


def _beside_dual(one: Theorem) -> Theorem:
    """A theorem about the lemma, or what is counted beside it, with the account of the others."""
    if one.add_fn.func is add_hinge:  # which is the lemma, `count` and `unit`
        return Theorem(one.name, one.source, open_account, add_round, one.sides_fn)
    if one.add_fn.func is not primal_dual.add_round:
        return one
    sides = Partial(_lemma_sides, one.sides_fn)
    return Theorem(one.name, one.source, open_account, add_round, sides)


def _lemma_sides(
    sides_fn: Partial, hp: DualAscentHparams, account: DualAccount, u: PyTree
) -> Certificate:
    return sides_fn(hp, account.lemma, u)


def _has_aggregate(hp: DualAscentHparams) -> bool:
    return hp.mirror.aggregate is not None and primal_dual.fixed(hp)


def _aggregate(hp: DualAscentHparams) -> Aggregate:
    """The terms of `acc`, whose dual is `acc / c` with a fixed c."""
    aggregate, c = hp.mirror.aggregate, 1 / hp.eta.at(None, None)
    assert aggregate is not None  # `dual_ascent` has checked
    term, log_term = (Partial(_shrunk, c, f) for f in (aggregate.term, aggregate.log_term))
    entry = Partial(_grown, c, aggregate.entry)
    return dataclasses.replace(aggregate, term=term, log_term=log_term, entry=entry)


def _shrunk(c: Scalar, function: Partial, acc: Array, *others: Array) -> Array:
    return function(acc / c, *others)


def _grown(c: Scalar, entry: Partial, log: Array) -> Array:
    return c * entry(log)


def _size(account: DualAccount) -> Array:
    return account.size + primal_dual.finite(account.lemma.paid) + account.lemma.size


def _centred(hp: DualAscentHparams, now: Problem) -> tuple[PyTree, Array | float]:
    r"""`acc` centred, and the change of $c f^*$ by this; a round of weight 0 changes no bit."""
    center = (_aggregate(hp) if _has_aggregate(hp) else hp.mirror).center
    if center(now.acc) is now.acc:
        return now.acc, 0.0

    def change(acc: PyTree) -> tuple[PyTree, Array]:
        centred = center(acc)
        if hp.mirror.centering is None:
            return centred, jnp.zeros_like(now.score, shape=())
        raised = lambda acc: hp.mirror.conjugate(jax.tree.map(lambda leaf: leaf / now.c, acc))
        return centred, now.c * (raised(acc) - raised(centred))

    like = jax.eval_shape(change, now.acc)
    same = lambda acc: jax.tree.map(lambda a, b: jnp.asarray(a, b.dtype), (acc, 0.0), like)
    return lax.cond(now.weight == 0, same, change, now.acc)
