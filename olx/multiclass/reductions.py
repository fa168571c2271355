r"""Reductions: many copies of a binary predictor vote for the classes.

A code is a matrix $C$ with one row per class, one column per copy and entries $-1$, $0$ and $+1$.
After label $y$ copy $l$ learns the label $C_{y,l}$; if that is 0 it does not learn from the round.
With the scores $f_l$ of the copies, the score of class $r$ is

$$s_r = \sum_l D_{r,l} f_l, \qquad D = C \text{, or the identity for one against the rest.}$$

- `one_vs_rest`: one copy per class, which learns whether the label is that class. The score of a
  class is that of its copy.
- `one_vs_one`: one copy per pair of classes, which learns from these two classes.
- `output_codes`: any code. Rows that differ in many columns correct errors of some of the copies.

All copies see every row. They share the numbers of the binary predictor, and their states are
stacked, so all of them are played at once.

One against the rest makes a mistake only if one of its copies does: if the copy of the label is
above 0 and all others are below 0, the label leads. So with $M_l$ the mistakes of copy $l$,

$$|M| \le \sum_l |M_l|.$$

Dietterich, Bakiri, Solving Multiclass Learning Problems via Error-Correcting Output Codes, 1995;
Allwein, Schapire, Singer, Reducing Multiclass to Binary, 2000.
"""

import dataclasses
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import RefusedType, RefusedValue, own_name, public
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Rounds
from olx.facts import AddsContext, Facts, of_wrapper
from olx.frameworks import copies
from olx.losses.classes import REMEDY, below
from olx.losses.hinges import hinge
from olx.losses.margin import hot, mistaken
from olx.losses.score import ScoreLoss, of_score
from olx.needs import Need
from olx.theorem import summed
from olx.wrapper import WrapperView, lift_needs


class Code(NamedTuple):
    """A matrix of -1, 0 and 1, as bytes: it is part of the program, and compared often."""

    entries: bytes
    classes: int

    @property
    def matrix(self) -> np.ndarray:
        return np.frombuffer(self.entries, np.int8).reshape(self.classes, -1).astype(np.float32)


@pytree
class ReductionHparams:
    inner: Learner
    loss: ScoreLoss  # by which the copies learn
    code: Code = static()
    owner: str = static()
    linked: bool = static()  # whether the code is also how scores are read; else copy r is class r


class ReductionState(NamedTuple):
    copies: PyTree  # every leaf has a leading axis of copies


@public
def one_vs_rest(inner: Learner, k: int, *, loss: ScoreLoss = hinge) -> Learner:
    """One copy of a binary predictor per class, which learns whether the label is that class.

    inner: any predictor of labels +1 and -1, such as `olx.classification.perceptron()` or
        `olx.linear(olx.ogd(0.1))`.
    k: the number of classes, at least 2.
    loss: the binary loss by which the copies learn; learners with a loss of their own ignore it.

    `params` is that of the binary predictor, such as `jnp.zeros(d)`.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(jnp.eye(3)[jnp.array([0, 1, 2, 0, 1, 2])], jnp.array([0, 1, 2] * 2))
    >>> learner = one_vs_rest(olx.classification.perceptron(), 3)
    >>> loss = olx.losses.multiclass_zero_one
    >>> olx.rollout(learner, loss, rounds, jnp.zeros(3)).losses.tolist()
    [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    """
    _check_classes(k)
    check.size("k", k, k)
    made = _reduction("one_vs_rest", inner, 2 * np.eye(k) - 1, loss, linked=False)
    return made.carrying(copies_mistakes)


@public
def one_vs_one(inner: Learner, k: int, *, loss: ScoreLoss = hinge) -> Learner:
    """One copy of a binary predictor per pair of classes; k (k - 1) / 2 copies in all.

    inner, k, loss: as in `one_vs_rest`.
    """
    _check_classes(k)
    check.size("k", k, k * (k - 1) // 2)
    pairs = list(itertools.combinations(range(k), 2))
    code = np.zeros((k, len(pairs)))
    for copy, (first, second) in enumerate(pairs):
        code[first, copy], code[second, copy] = 1.0, -1.0
    return _reduction("one_vs_one", inner, code, loss)


@public
def output_codes(
    inner: Learner, code: Float[Array, "k copies"], *, loss: ScoreLoss = hinge
) -> Learner:
    """One copy of a binary predictor per column of `code`.

    code: one row per class, entries -1, 0 and 1. No two rows are equal.
    inner, loss: as in `one_vs_rest`.

    >>> import jax.numpy as jnp, olx
    >>> code = jnp.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    >>> learner = output_codes(olx.classification.perceptron(), code)
    >>> learner.predict(learner.init(jnp.zeros(5)), jnp.ones(5)).shape
    (4,)
    """
    check.numbers("code", code)
    seen = np.asarray(code, float)
    if seen.ndim != 2 or not np.all(np.isin(seen, (-1, 0, 1))):
        raise RefusedValue(
            "`code` must be a matrix of -1, 0 and 1 with one row per class, got "
            f"shape {seen.shape} and the entries {np.unique(seen)[:5].tolist()}."
        )
    _check_classes(seen.shape[0], "the number of rows of `code`")
    if len(np.unique(seen, axis=0)) < len(seen):
        raise RefusedValue("two rows of `code` are equal; no copy could tell them.")
    if not ((seen == -1).any() and (seen == 1).any()):
        raise RefusedValue(
            f"`code` holds {np.unique(seen).tolist()}; it must hold 1 and -1, or no "
            "copy learns two labels. A code of 0 and 1 is 2 * code - 1 here: 0 leaves out a class."
        )
    for copy in np.flatnonzero(~seen.any(0)):
        raise RefusedValue(f"column {copy} of `code` is 0; its copy would never learn.")
    return _reduction("output_codes", inner, seen, loss)


def init(hp: ReductionHparams, params: PyTree) -> ReductionState:
    return ReductionState(copies.start(hp.inner, hp.code.matrix.shape[1], params))


def predict(hp: ReductionHparams, state: ReductionState, context: PyTree) -> Float[Array, " k"]:
    votes = _votes_of(hp, state, context)
    if not hp.linked:
        return votes
    return jnp.sum(jnp.asarray(hp.code.matrix, votes.dtype) * votes, -1)


def update(hp: ReductionHparams, state: ReductionState, feedback: Feedback) -> ReductionState:
    signs, votes = _signs_of(hp, feedback), _votes_of(hp, state, feedback.context)

    def learn(own: Learner, state: PyTree, sign: Array, vote: Array) -> PyTree:
        return own.update(state, _heard(hp, feedback, sign, vote))

    return ReductionState(copies.each(hp.inner, len(signs), learn, state.copies, signs, votes))


def _votes_of(
    hp: ReductionHparams, state: ReductionState, context: PyTree
) -> Float[Array, " copies"]:
    """The scores of the copies."""
    votes = copies.act(hp.inner, state.copies, context)
    if hasattr(votes, "shape") and votes.ndim == 1:
        return votes
    shape = jax.tree.map(lambda leaf: leaf.shape[1:], votes)
    with own_name(hp.owner):
        raise RefusedType(
            f"`inner` must predict one score, it gives an action of shape {shape}; make a point "
            "learner a predictor with `olx.linear`, and start from the `params` of the binary "
            "predictor, such as jnp.zeros(d)."
        )


def _signs_of(hp: ReductionHparams, feedback: Feedback) -> Float[Array, " copies"]:
    """The row of the code of the label."""
    code = jnp.asarray(hp.code.matrix, jnp.result_type(feedback.action))
    own = hot(code[:, 0], jnp.asarray(feedback.outcome))
    if not hp.linked:  # one against the rest
        return jnp.where(own, jnp.ones_like(feedback.action), -1.0)
    return jnp.sum(jnp.where(own[:, None], code, 0.0), 0)


class Account(NamedTuple):
    wrong: Float[Array, ""]  # mistakes
    copies: Float[Array, ""]  # mistakes of all copies


def start(hp: ReductionHparams, state: ReductionState, u: PyTree) -> Account:
    return Account(jnp.zeros(()), jnp.zeros(()))


def terms(hp: ReductionHparams, state: ReductionState, feedback: Feedback, u: PyTree) -> Account:
    wrong = mistaken(feedback.action, feedback.outcome)
    below = mistaken(_votes_of(hp, state, feedback.context), _signs_of(hp, feedback))
    return Account(jnp.where(wrong, 1.0, 0.0), jnp.sum(jnp.where(below, 1.0, 0.0)))


def both_sides(hp: ReductionHparams, account: Account, u: PyTree) -> Certificate:
    return Certificate(account.wrong, account.copies, account.copies)


copies_mistakes = summed(
    "copies_mistakes", "Allwein, Schapire, Singer 2000", terms, both_sides, start
)


def _heard(hp: ReductionHparams, feedback: Feedback, sign: Array, vote: Array) -> Feedback:
    """The feedback of a copy."""
    known = Partial(of_score, hp.loss, sign)
    value, grad = hp.loss.value_and_slope(vote, sign)
    weight = jnp.where(sign == 0, jnp.zeros_like(vote), feedback.weight)
    return Feedback(feedback.context, vote, sign, known, value, grad, weight)


def _coefficient(hp: ReductionHparams, feedback: Feedback) -> Float[Array, " copies"]:
    """What each copy adds of the row, if that is all it does."""
    adds, signs = hp.inner.facts.adds, _signs_of(hp, feedback)
    assert isinstance(adds, AddsContext)  # `_facts` has checked

    def learn(own: Learner, sign: Array, vote: Array) -> Array:
        return adds.coefficient_fn(own.hparams, _heard(hp, feedback, sign, vote))

    return copies.each(hp.inner, len(signs), learn, signs, feedback.action)


def _facts(inner: Learner, linked: bool) -> Facts:
    adds = inner.facts.adds
    one = isinstance(adds, AddsContext) and adds.score_fn is None and not linked
    return dataclasses.replace(of_wrapper(inner), adds=AddsContext(_coefficient) if one else None)


def _reduction(
    owner: str, inner: Learner, code: np.ndarray, loss: ScoreLoss, linked: bool = True
) -> Learner:
    check.instance("inner", inner, Learner)
    check.instance("loss", loss, ScoreLoss)
    if loss.of_classes:
        raise RefusedType(
            "`loss` must be a binary loss, by which each copy learns; give the loss of "
            "classes to the driver."
        )
    small = Code(code.astype(np.int8).tobytes(), code.shape[0])
    demand = "labels must be integers from 0 to k - 1"
    return Learner(
        ReductionHparams(inner, loss, small, owner, linked),
        init,
        predict,
        update,
        facts=_facts(inner, linked),
        needs=(
            Need("outcome", _are_labels, demand, owner, REMEDY),
            *lift_needs(_VIEW, inner),
        ),
    )


_VIEW = WrapperView(parts=("params", "context", "weight"))  # each copy has outcomes of its own


def _are_labels(hp: ReductionHparams, params: PyTree, rounds: Rounds) -> PyTree:
    return jax.tree.map(lambda label: below(label, hp.code.classes), rounds.outcome)


def _check_classes(k: int, name: str = "`k`") -> None:
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 2:
        raise RefusedValue(
            f"{name} must be an integer of at least 2, got {check.quote(k)}; for one "
            "class there is nothing to predict."
        )
