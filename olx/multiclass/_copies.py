"""Copies of a binary predictor that learn the columns of a code, for `reductions`."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import RefusedType, RefusedValue, own_name
from olx.core import Feedback, Learner
from olx.facts import AddsContext, Facts, of_wrapper
from olx.frameworks import copies
from olx.losses.classes import REMEDY, below
from olx.losses.margin import hot
from olx.losses.score import ScoreLoss, of_score
from olx.needs import Need
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


def init(hp: ReductionHparams, params: PyTree) -> ReductionState:
    return ReductionState(copies.start(hp.inner, hp.code.matrix.shape[1], params))


def predict(hp: ReductionHparams, state: ReductionState, context: PyTree) -> Float[Array, " k"]:
    votes = votes_of(hp, state, context)
    if not hp.linked:
        return votes
    return jnp.sum(jnp.asarray(hp.code.matrix, votes.dtype) * votes, -1)


def update(hp: ReductionHparams, state: ReductionState, feedback: Feedback) -> ReductionState:
    signs, votes = signs_of(hp, feedback), votes_of(hp, state, feedback.context)

    def learn(own: Learner, state: PyTree, sign: Array, vote: Array) -> PyTree:
        return own.update(state, _heard(hp, feedback, sign, vote))

    return ReductionState(copies.each(hp.inner, len(signs), learn, state.copies, signs, votes))


def votes_of(
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


def signs_of(hp: ReductionHparams, feedback: Feedback) -> Float[Array, " copies"]:
    """The row of the code of the label."""
    code = jnp.asarray(hp.code.matrix, jnp.result_type(feedback.action))
    own = hot(code[:, 0], jnp.asarray(feedback.outcome))
    if not hp.linked:  # one against the rest
        return jnp.where(own, jnp.ones_like(feedback.action), -1.0)
    return jnp.sum(jnp.where(own[:, None], code, 0.0), 0)


def _heard(hp: ReductionHparams, feedback: Feedback, sign: Array, vote: Array) -> Feedback:
    """The feedback of a copy."""
    known = Partial(of_score, hp.loss, sign)
    value, grad = hp.loss.value_and_slope(vote, sign)
    weight = jnp.where(sign == 0, jnp.zeros_like(vote), feedback.weight)
    return Feedback(feedback.context, vote, sign, known, value, grad, weight)


def _coefficient(hp: ReductionHparams, feedback: Feedback) -> Float[Array, " copies"]:
    """What each copy adds of the row, if that is all it does."""
    adds, signs = hp.inner.facts.adds, signs_of(hp, feedback)
    assert isinstance(adds, AddsContext)  # `_facts` has checked

    def learn(own: Learner, sign: Array, vote: Array) -> Array:
        return adds.coefficient_fn(own.hparams, _heard(hp, feedback, sign, vote))

    return copies.each(hp.inner, len(signs), learn, signs, feedback.action)


def _facts(inner: Learner, linked: bool) -> Facts:
    adds = inner.facts.adds
    one = isinstance(adds, AddsContext) and adds.score_fn is None and not linked
    return dataclasses.replace(of_wrapper(inner), adds=AddsContext(_coefficient) if one else None)


def reduced(
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


def _are_labels(hp: ReductionHparams, params: PyTree, rounds: Any) -> Any:
    return jax.tree.map(lambda label: below(label, hp.code.classes), rounds.outcome)


def check_classes(k: int, name: str = "`k`") -> None:
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 2:
        raise RefusedValue(
            f"{name} must be an integer of at least 2, got {check.quote(k)}; for one "
            "class there is nothing to predict."
        )
