"""Checks of the learner, the loss and the start, before anything is traced or compiled.

A start that is traced cannot be refused; if it is not legal, the state is NaN.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx import _check as check
from olx._cache import compiled
from olx._memory import refuse_large_state
from olx.core import Batch, Learner, Loss, Rounds, Run, Scalar
from olx.engine.game import Known
from olx.needs import Need
from olx.streams.judge import check_params, is_traced, remedy_of


def check_game(owner: str, learner: Learner, loss: Loss) -> None:
    """Refuse all but a single learner and a loss of an action and an outcome."""
    if isinstance(learner, Batch):
        raise TypeError(
            f"{owner}: `learner` is a batch; `olx.sweep` plays all of its learners, and batch[0] "
            "is the first of them."
        )
    _refuse_swapped(owner, learner, loss)
    check.instance(owner, "learner", learner, Learner)
    check_loss(owner, loss)
    if stacked := _stacked(learner):
        raise TypeError(
            f"{owner}: `learner` is a stack of learners, its `{stacked}` is an array; `olx.sweep` "
            "plays all of them."
        )


def check_learners(owner: str, learners: Any) -> None:
    """Refuse all but learners that are stacked, as the leaves of one learner."""
    if not isinstance(learners, Learner):
        seen = (
            f"the function `{learners.__name__}`" if callable(learners) else type(learners).__name__
        )
        raise TypeError(
            f"{owner}: `learners` must be a batch or a Learner, got {seen}; make a batch, as "
            "`olx.batch(make, eta=etas)`, with a function `make` of the numbers that vary."
        )


def check_loss(owner: str, loss: Any) -> None:
    """Refuse all but a function of an action and an outcome."""
    remedy = "take one of `olx.losses`, as `olx.losses.squared`"
    remedy = "" if callable(loss) or isinstance(loss, Rounds) else remedy
    check.takes(owner, "loss", loss, "action", "outcome", remedy=remedy)


def _refuse_swapped(owner: str, learner: Any, loss: Any) -> None:
    if isinstance(loss, Learner):
        raise TypeError(
            f"{owner}: `loss` is a Learner and `learner` is a {type(learner).__name__}; the "
            "learner comes first."
        )


def _stacked(node: Any) -> str:
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


def start_of(owner: str, known: Known, params: PyTree) -> PyTree:
    """The first state of a game; refuses `params` that the learner cannot start from."""
    check_params(owner, params)
    start = _start_own(known.game.structure.learner, known.game.own, params)
    state = _started(owner, known.learner, params, *start)
    return _apart(state, (params, known.game))


def first_state(owner: str, learner: Learner, params: PyTree) -> PyTree:
    """The first state; refuses `params` that the learner cannot start from."""
    check_params(owner, params)
    start = _start if is_traced((learner, params)) else _start_in_one_call
    return _started(owner, learner, params, *start(learner, params))


def given_state(owner: str, learner: Learner, params: PyTree, state: PyTree) -> PyTree:
    """The state to continue from; refuses a state of another learner or of another shape."""
    like = jax.eval_shape(learner.init, params)
    check_state(owner, state, like)
    return state


def check_state(owner: str, state: PyTree, like: PyTree) -> None:
    """Refuse a state that differs from `like`, a state of the learner, in structure or shape."""
    if isinstance(state, Run):
        raise TypeError(f"{owner}: `state` is a Run; give its state, as `run.state`.")
    if state is None and like is not None:
        raise TypeError(
            f"{owner}: `state` is None; give `run.state` of a run of this learner, or "
            "`learner.init(params)` to begin."
        )
    if jax.tree.structure(state) != jax.tree.structure(like):
        seen, wanted = type(state).__name__, type(like).__name__
        seen = f"{seen} with other parts" if seen == wanted else seen
        shape = getattr(state, "shape", None)
        seen = seen if shape is None else f"array of shape {shape}"
        raise TypeError(
            f"{owner}: `state` must be a {wanted}, the state of this learner, got {seen}; give "
            "`run.state` of a run of this learner, or `learner.init(params)` to begin."
        )
    check.same_shape(owner, "`state`", state, "the state of this learner", like)


def first_states(
    owner: str,
    known: Known,
    params: PyTree,
    arrange: Callable[[PyTree], PyTree] | None = None,
    axes: PyTree = 0,
) -> PyTree:
    """The first states of a batch; refuses `params` that none of its learners can start from.

    arrange: a function of one state, applied to the state of every configuration.
    axes: where the result has the axis of configurations.
    """
    check_params(owner, params)
    structure, own = known.game.structure.learner, known.game.own
    start = _start_each(arrange, axes, structure, own, params)
    return _apart(_started(owner, known.learner, params, *start), (params, known.game))


def _start(learner: Learner, params: PyTree) -> tuple[list, PyTree]:
    """Whether each need is met, and the first state, which is NaN if a need is not met."""
    own = learner.hparams
    legal = [jnp.asarray(need.legal_fn(own, params, None)) for need in _about_params(learner)]
    if legal:
        fine = jnp.all(jnp.stack(legal))
        params = jax.tree.map(lambda leaf: jnp.where(fine, leaf, jnp.nan), params)
    return legal, learner.init(params)


_start_in_one_call = compiled(_start)


@functools.partial(compiled, static=(0,))
def _start_own(structure: Any, own: list, params: PyTree) -> tuple[list, PyTree]:
    """The same for the numbers of a learner of this structure."""
    return _start(jax.tree.unflatten(structure, own), params)


@functools.partial(compiled, static=(0, 1, 2))
def _start_each(
    arrange: Callable | None, axes: PyTree, structure: Any, own: list, params: PyTree
) -> tuple[list, PyTree]:
    def one(learner: Learner) -> tuple[list, PyTree]:
        legal, state = _start(learner, params)
        return legal, state if arrange is None else arrange(state)

    legal, state = jax.vmap(one, out_axes=(0, axes))(jax.tree.unflatten(structure, own))
    refuse_large_state("sweep", state)
    return legal, state


def _started(owner: str, learner: Learner, params: PyTree, legal: list, state: PyTree) -> PyTree:
    for need, fine in zip(_about_params(learner), legal, strict=True):
        if not is_traced(fine) and not np.asarray(fine).any():  # np.any would call the device
            first = np.asarray(jax.tree.leaves(params)[0])
            seen = np.array2string(first, threshold=6, precision=4)
            raise ValueError(f"{owner}: {need.owner}: {need.demand}, got {seen}{remedy_of(need)}.")
    return state


def _apart(state: PyTree, given: PyTree) -> PyTree:
    """The state without arrays of the caller: a program overwrites its state."""
    others = {id(leaf) for leaf in jax.tree.leaves(given)}
    return jax.tree.map(lambda leaf: jnp.array(leaf) if id(leaf) in others else leaf, state)


def _about_params(learner: Learner) -> list[Need]:
    return [need for need in learner.needs if need.where == "params"]
