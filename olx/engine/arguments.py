"""Refusals of the arguments of the drivers, before anything is traced or compiled."""

import dataclasses
import functools

import jax
import numpy as np
from jax.core import Tracer
from jaxtyping import PyTree

from olx import _check as check
from olx._refusal import RefusedType
from olx.core import Batch, Learner, Loss, Rounds, Run, Scalar


def check_game(learner: Learner, loss: Loss) -> None:
    """Refuse all but a single learner and a loss of an action and an outcome."""
    if isinstance(learner, Batch):
        raise RefusedType(
            "`learner` is a batch; `olx.sweep` plays all of its learners, and batch[0] "
            "is the first of them."
        )
    _refuse_swapped(learner, loss)
    check.instance("learner", learner, Learner)
    check_loss(loss)
    if stacked := _stacked(learner):
        raise RefusedType(
            f"`learner` is a stack of learners, its `{stacked}` is an array; `olx.sweep` "
            "plays all of them."
        )


def check_learners(learners: object) -> None:
    """Refuse all but learners that are stacked, as the leaves of one learner."""
    if not isinstance(learners, Learner):
        seen = (
            f"the function `{learners.__name__}`" if callable(learners) else type(learners).__name__
        )
        raise RefusedType(
            f"`learners` must be a batch or a Learner, got {seen}; make a batch, as "
            "`olx.batch(make, eta=etas)`, with a function `make` of the numbers that vary."
        )


def check_loss(loss: object) -> None:
    """Refuse all but a function of an action and an outcome."""
    remedy = "take one of `olx.losses`, as `olx.losses.squared`"
    remedy = "" if callable(loss) or isinstance(loss, Rounds) else remedy
    check.takes("loss", loss, "action", "outcome", remedy=remedy)


def _refuse_swapped(learner: object, loss: object) -> None:
    if isinstance(loss, Learner):
        raise RefusedType(
            f"`loss` is a Learner and `learner` is a {type(learner).__name__}; the "
            "learner comes first."
        )


def _stacked(node: object) -> str:
    """The name of the first number, in a learner or in its inner learner, that is an array."""
    numbers, parts = _numbers_and_parts(type(node))
    for name in numbers:
        if np.ndim(getattr(node, name)):
            return name
    return next(filter(None, (_stacked(getattr(node, name)) for name in parts)), "")


@functools.cache
def _numbers_and_parts(kind: type) -> tuple[list[str], list[str]]:
    """The names of the fields that hold one number, and of the fields to look into."""
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    numbers = [field.name for field in fields if field.type in (Scalar, Scalar | None)]
    parts = ("hparams", "inner", "mirror")
    return numbers, [field.name for field in fields if field.name in parts]


def check_state(state: PyTree, like: PyTree) -> None:
    """Refuse a state that differs from `like`, a state of the learner, in structure or shape."""
    if isinstance(state, Run):
        raise RefusedType("`state` is a Run; give its state, as `run.state`.")
    if state is None and like is not None:
        raise RefusedType(
            "`state` is None; give `run.state` of a run of this learner, or "
            "`learner.init(params)` to begin."
        )
    if jax.tree.structure(state) != jax.tree.structure(like):
        seen, wanted = type(state).__name__, type(like).__name__
        seen = f"{seen} with other parts" if seen == wanted else seen
        shape = getattr(state, "shape", None)
        seen = seen if shape is None else f"array of shape {shape}"
        raise RefusedType(
            f"`state` must be a {wanted}, the state of this learner, got {seen}; give "
            "`run.state` of a run of this learner, or `learner.init(params)` to begin."
        )
    check.same_shape("`state`", state, "the state of this learner", like)


def check_batch(learners: Learner, loss: Loss) -> None:
    """Refuse all but a stack of learners and a loss of an action and an outcome."""
    check_learners(learners)
    check_loss(loss)
    _check_stack(learners)


def _check_stack(learners: Learner) -> None:
    leaves = jax.tree.leaves(learners)
    if any(isinstance(leaf, Tracer) for leaf in leaves):
        raise RefusedType(
            "compiles for itself, so it cannot be called inside jit, vmap or grad; "
            "there, use jax.vmap of olx.rollout over the learners."
        )
    lengths = {np.shape(leaf)[:1] for leaf in leaves}
    if len(lengths) != 1 or lengths == {()}:
        raise RefusedType(
            "the leaves of `learners` share no leading axis; stack a factory with "
            "`olx.batch(make, eta=etas)`, or play a single learner with `olx.run`."
        )
