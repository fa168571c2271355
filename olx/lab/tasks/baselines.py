"""Trivial baselines, which see no features: the best constant so far.

A learner that does not beat its baseline has learned nothing from the features. Each task names
one. Counts start at one half for each label (Krichevsky and Trofimov, 1981), so that no first guess
is certain.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PyTree

from olx._refusal import public
from olx.core import Feedback, Learner, Scalar
from olx.structured import Parts, Sequences, chain

SCORES = np.array(sorted(np.linspace(-8, 8, 129), key=abs))  # ties go to the score next to 0


class Baseline(NamedTuple):
    """A baseline of a task, as tables call it, and the name of its factory here."""

    label: str
    factory: str

    @property
    def name(self) -> str:
        """The name as in a config."""
        return f"{__name__}:{self.factory}"


class Counts(NamedTuple):
    total: Array  # one per label, or a sum of outcomes
    rounds: Float[Array, ""]


@public
def leading_score() -> Learner:
    """The constant score with the smallest loss so far; of the class seen more often."""
    return Learner(None, _start_scores, _leading, _add_losses)


def _start_scores(_: None, params: PyTree) -> Array:
    return jnp.asarray(SCORES**2 / 10, params.dtype)  # fades away as losses add up


def _leading(_: None, totals: Array, context: PyTree) -> Array:
    return jnp.asarray(SCORES, totals.dtype)[jnp.argmin(totals)]


def _add_losses(_: None, totals: Array, feedback: Feedback) -> Array:
    each = jax.vmap(feedback.loss)(jnp.asarray(SCORES, totals.dtype))
    return totals + feedback.weight * each


@public
def running_mean() -> Learner:
    """The mean of all outcomes so far; 0 in the first round."""
    return Learner(None, _start_sum, _mean, _add_outcome)


def _start_sum(_: None, params: PyTree) -> Counts:
    return Counts(jnp.zeros((), params.dtype), jnp.zeros((), params.dtype))


def _mean(_: None, state: Counts, context: PyTree) -> Array:
    return state.total / jnp.maximum(state.rounds, 1)


def _add_outcome(_: None, state: Counts, feedback: Feedback) -> Counts:
    return _added(state, feedback.outcome, feedback.weight)


@public
def class_frequencies() -> Learner:
    """The logarithm of the share of each class so far."""
    return Learner(None, _start_rows, _log_shares, _add_class)


def _start_rows(_: None, params: PyTree) -> Counts:
    return _half(params.shape[0], params.dtype)


def _log_shares(_: None, state: Counts, context: PyTree) -> Array:
    return jnp.log(state.total / jnp.sum(state.total))


def _add_class(_: None, state: Counts, feedback: Feedback) -> Counts:
    new = jax.nn.one_hot(feedback.outcome, state.total.size, dtype=state.total.dtype)
    return _added(state, new, feedback.weight)


@public
def label_frequencies() -> Learner:
    """How often each label was relevant so far."""
    return Learner(None, _start_rows, _shares, _add_outcome)


def _shares(_: None, state: Counts, context: PyTree) -> Array:
    return state.total / (1 + state.rounds)


@public
def equal_scores() -> Learner:
    """The same score for all rows of a group."""
    return Learner(None, _nothing, _zeros, _same)


def _zeros(_: None, state: Array, context: Array) -> Array:
    return jnp.zeros(context.shape[:1], state.dtype)


@public
def part_frequencies() -> Learner:
    """The logarithm of the share of each label so far, at every position."""
    return Learner(None, _start_parts, _parts, _add_labels)


def _start_parts(_: None, params: PyTree) -> Counts:
    return _half(params.start.size, params.start.dtype)


def _parts(_: None, state: Counts, context: Sequences) -> Parts:
    width = jax.tree.leaves(context)[0].shape[-1]
    structure = chain(state.total.size, width)
    parts = structure.parts(structure.zeros(), context)
    return parts._replace(emission=parts.emission + _log_shares(None, state, None))


def _add_labels(_: None, state: Counts, feedback: Feedback) -> Counts:
    new = jax.nn.one_hot(feedback.outcome, state.total.size, dtype=state.total.dtype)
    return _added(state, jnp.sum(new, axis=0), feedback.weight)  # padding is -1, in no class


@public
def first_weights() -> Learner:
    """The first decision in all rounds: uniform weights."""
    return Learner(None, _itself, _itself_again, _same)


def _itself(_: None, params: PyTree) -> PyTree:
    return params


def _itself_again(_: None, state: PyTree, context: PyTree) -> PyTree:
    return state


def _nothing(_: None, params: PyTree) -> Array:
    return jnp.zeros((), params.dtype)


def _same(_: None, state: PyTree, feedback: Feedback) -> PyTree:
    return state


def _half(count: int, dtype: DTypeLike) -> Counts:
    return Counts(jnp.full(count, 0.5, dtype), jnp.zeros((), dtype))


def _added(state: Counts, new: Array, weight: Scalar) -> Counts:
    return Counts(state.total + weight * new, state.rounds + weight)


MAJORITY = Baseline("baseline: majority class", leading_score.__name__)
MEAN = Baseline("baseline: mean", running_mean.__name__)
CLASSES = Baseline("baseline: majority class", class_frequencies.__name__)
LABELS = Baseline("baseline: frequent labels", label_frequencies.__name__)
ROWS = Baseline("baseline: equal scores", equal_scores.__name__)
PARTS = Baseline("baseline: frequent labels", part_frequencies.__name__)
UNIFORM = Baseline("baseline: uniform weights", first_weights.__name__)
