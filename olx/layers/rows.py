r"""A learner as one that keeps a matrix $W$ and predicts $W k$, one score per row.

The squared loss of $W k$ is a sum over the rows of $W$, so a learner of a vector is played once per
row. A learner of least squares needs one matrix for all rows: the keys alone decide about it.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx._pytree import pytree
from olx._refusal import RefusedType
from olx.core import Feedback, Learner, Loss, without_refresh
from olx.facts import Facts
from olx.frameworks import copies
from olx.frameworks.lift import linear
from olx.losses.score import ScoreLoss, of_score


@pytree
class RowsHparams:
    inner: Learner
    loss: ScoreLoss


class RowsState(NamedTuple):
    inner: PyTree  # stacked, one state per row


def matrix_predictor(learner: Learner, loss: Loss, params: Float[Array, "dv dk"]) -> Learner:
    """The learner as a predictor whose `params` is a matrix and whose action is one score per row.

    params: the first matrix; only its shape and dtype are used.
    """
    if learner.facts.squares is not None:
        return dataclasses.replace(learner, init_fn=learner.facts.squares.rows_fn, theorems=())
    matrix, row = _action(learner, params, params[0]), _action(learner, params[0], params[0])
    if matrix == params.shape:
        return linear(learner)
    if matrix == params.shape[:1]:
        return learner
    if row not in ((), params.shape[1:]):
        raise RefusedType(
            f"{learner!r} plays neither matrices of shape {params.shape} nor vectors of shape "
            f"{params.shape[1:]}; a layer needs a point learner, or a predictor for keys."
        )
    if not isinstance(loss, ScoreLoss):
        raise RefusedType(
            f"{learner!r} learns one vector, so it is played once per row of the matrix, and the "
            "loss must be a sum over the rows; give one of `olx.losses`, as `olx.losses.squared`."
        )
    return rows(learner if row == () else linear(learner), loss)


def rows(inner: Learner, loss: ScoreLoss) -> Learner:
    """Copies of a predictor of one score, one per row of `params`, that see the same contexts."""
    return Learner(
        RowsHparams(inner, loss),
        init,
        predict,
        update,
        facts=Facts(refresh=copies.refresh_of(inner)),
        needs=tuple(
            need._replace(legal_fn=_OfRows(need.legal_fn))
            for need in inner.needs
            if need.where == "params"
        ),
    )


class _OfRows(NamedTuple):
    """Whether every row is a legal start, as a function of the hparams of `rows`."""

    legal_fn: Callable[..., PyTree]

    def __call__(self, hparams: RowsHparams, params: Array, rounds: None) -> Array:
        inner = hparams.inner.hparams
        return jnp.all(jax.vmap(lambda row: self.legal_fn(inner, row, None))(jnp.asarray(params)))


def init(hp: RowsHparams, params: Float[Array, "dv dk"]) -> RowsState:
    begin = lambda own, row: jax.tree.map(jnp.asarray, own.init_fn(own.hparams, row))
    return RowsState(copies.each(hp.inner, len(params), begin, params))


def predict(hp: RowsHparams, state: RowsState, context: PyTree) -> Float[Array, " dv"]:
    return copies.act(hp.inner, state.inner, context)


def update(hp: RowsHparams, state: RowsState, feedback: Feedback) -> RowsState:
    losses = jax.vmap(lambda outcome: Partial(of_score, hp.loss, outcome))(feedback.outcome)
    weights = jnp.full(feedback.action.shape, feedback.weight, feedback.action.dtype)
    inner = without_refresh(hp.inner)
    return RowsState(copies.teach(inner, state.inner, feedback.action, losses, feedback, weights))


def _action(learner: Learner, params: Any, key: Any) -> tuple[int, ...] | None:
    """The shape of the action on a key; None if the learner cannot start there, or act."""

    def act(learner: Learner, params: Array, key: Array) -> PyTree:
        return learner.predict_fn(learner.hparams, learner.init_fn(learner.hparams, params), key)

    try:
        action = jax.eval_shape(act, learner, params, key)
    except Exception:  # of any kind, for another kind of `params`
        return None
    return getattr(action, "shape", None)
