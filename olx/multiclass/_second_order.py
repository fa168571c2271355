r"""Second-order rules for the difference of the label and its best rival.

The weights have one row per class and share the matrix $P$ of `olx.second_order.rank_one`. With $i$
the rival, a rule that adds $a P x_t$ to binary weights adds $\frac a2 P x_t$ to $w_{y_t}$ and takes
it from $w_i$: so $w_{y_t} - w_i$ moves as the binary weights would. In other words, the Gaussian
over each row of weights has the covariance $\frac12 P$, so that a difference of two rows has $P$.
For two classes it is the binary learner on the difference of their weights.
"""

import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx.core import Feedback, Learner
from olx.losses.classes import class_rows, labels
from olx.losses.margin import hot, pick, rival
from olx.second_order.rank_one import Row, Rule, Step, rank_one
from olx.theorem import Theorem


def versus(owner: str, rule: Rule) -> Learner:
    """The binary `rule` as a predictor of classes."""
    return by_classes(owner, Rule(rule, score, step))


def by_classes(owner: str, rule: Rule, theorems: tuple[Theorem, ...] = ()) -> Learner:
    """A rule that takes and gives one number per class as a predictor of classes."""
    needs = (labels(owner), class_rows(owner))
    return rank_one(rule, classes=True, needs=needs, theorems=theorems)


def score(rule: Rule, margin: Array, spread: Array) -> Array:
    return rule.score(margin, spread)


def step(rule: Rule, row: Row, feedback: Feedback) -> Step:
    between, sides = difference(row, feedback)
    binary = rule.step(between, duel(feedback))
    return binary._replace(move=sides * binary.move / 2)


def difference(row: Row, feedback: Feedback) -> tuple[Row, Array]:
    """The row as the binary rule sees it, and +1 at the label and -1 at its best rival."""
    own = hot(feedback.action, feedback.outcome)
    other = rival(feedback.action, own)
    ahead = pick(own, row.margin) - pick(other, row.margin)
    sides = jnp.where(own, 1.0, jnp.where(other, -1.0, jnp.zeros_like(row.margin)))
    return row._replace(margin=ahead), sides


def duel(feedback: Feedback) -> Feedback:
    """The feedback of a binary learner whose label is +1."""
    own = hot(feedback.action, feedback.outcome)
    other = rival(feedback.action, own)
    ahead = pick(own, feedback.action) - pick(other, feedback.action)
    return feedback._replace(action=ahead, outcome=jnp.ones_like(ahead))


def comparator(u: PyTree, w: Array) -> Array:
    """The comparator as a matrix with a row per class."""
    return jnp.asarray(u, w.dtype).reshape(w.shape)
