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

import itertools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._refusal import RefusedValue, public
from olx.core import Feedback, Learner
from olx.losses.hinges import hinge
from olx.losses.margin import mistaken
from olx.losses.score import ScoreLoss
from olx.multiclass._copies import (
    ReductionHparams,
    ReductionState,
    check_classes,
    reduced,
    signs_of,
    votes_of,
)
from olx.theorem import Certificate, summed


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
    check_classes(k)
    check.size("k", k, k)
    made = reduced("one_vs_rest", inner, 2 * np.eye(k) - 1, loss, linked=False)
    return made.carrying(copies_mistakes)


@public
def one_vs_one(inner: Learner, k: int, *, loss: ScoreLoss = hinge) -> Learner:
    """One copy of a binary predictor per pair of classes; k (k - 1) / 2 copies in all.

    inner, k, loss: as in `one_vs_rest`.
    """
    check_classes(k)
    check.size("k", k, k * (k - 1) // 2)
    pairs = list(itertools.combinations(range(k), 2))
    code = np.zeros((k, len(pairs)))
    for copy, (first, second) in enumerate(pairs):
        code[first, copy], code[second, copy] = 1.0, -1.0
    return reduced("one_vs_one", inner, code, loss)


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
    check_classes(seen.shape[0], "the number of rows of `code`")
    if len(np.unique(seen, axis=0)) < len(seen):
        raise RefusedValue("two rows of `code` are equal; no copy could tell them.")
    if not ((seen == -1).any() and (seen == 1).any()):
        raise RefusedValue(
            f"`code` holds {np.unique(seen).tolist()}; it must hold 1 and -1, or no "
            "copy learns two labels. A code of 0 and 1 is 2 * code - 1 here: 0 leaves out a class."
        )
    for copy in np.flatnonzero(~seen.any(0)):
        raise RefusedValue(f"column {copy} of `code` is 0; its copy would never learn.")
    return reduced("output_codes", inner, seen, loss)


class Account(NamedTuple):
    wrong: Float[Array, ""]  # mistakes
    copies: Float[Array, ""]  # mistakes of all copies


def start(hp: ReductionHparams, state: ReductionState, u: PyTree) -> Account:
    return Account(jnp.zeros(()), jnp.zeros(()))


def terms(hp: ReductionHparams, state: ReductionState, feedback: Feedback, u: PyTree) -> Account:
    wrong = mistaken(feedback.action, feedback.outcome)
    below = mistaken(votes_of(hp, state, feedback.context), signs_of(hp, feedback))
    return Account(jnp.where(wrong, 1.0, 0.0), jnp.sum(jnp.where(below, 1.0, 0.0)))


def both_sides(hp: ReductionHparams, account: Account, u: PyTree) -> Certificate:
    return Certificate(account.wrong, account.copies, account.copies)


copies_mistakes = summed(
    "copies_mistakes", "Allwein, Schapire, Singer 2000", terms, both_sides, start
)
