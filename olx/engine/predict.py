"""`predict`: what a trained learner plays on many rows, without learning from them."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx import _check as check
from olx._cache import compiled
from olx.core import Batch, Learner, Rounds, Run
from olx.engine import contexts as cast_of
from olx.engine.affine import unfolded_rows
from olx.engine.boundary import check_state
from olx.engine.game import refuse_tracers
from olx.engine.rows import Blocks, Room, blocks, dense
from olx.engine.start_like import start_like
from olx.engine.table import Layout, layout_of, packer, state_of
from olx.streams.foreign import refuse_stranger
from olx.streams.numbers import check_finite, check_kind
from olx.streams.sparse_rows import SparseRows, sparse_rows

_BYTES = 1 << 24  # of contexts per call
_MOST = 1 << 14  # rows per call
_INSIDE = "reads its rows in pieces", "`jax.vmap(learner.predict, (None, 0))(state, rows)` can"


def predict(learner: Learner, state: PyTree, contexts: PyTree) -> PyTree:
    """The action of a learner in `state` for each of many contexts, as NumPy arrays.

    state: as a run returned it; it does not change.
    contexts: an array or a pytree of arrays with a leading axis of rows, a memory map, or sparse
        rows (`olx.streams.sparse_rows` or a SciPy matrix). Rows are read in pieces.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_regression(jax.random.key(0), rounds=500, features=3)
    >>> learner = olx.linear(olx.ogd(0.05))
    >>> run = olx.run(learner, olx.losses.squared, rounds, jnp.zeros(3))
    >>> olx.predict(learner, run.state, rounds.context[:2]).shape
    (2,)
    """
    owner = "predict"
    if isinstance(learner, Batch):
        raise TypeError(f"{owner}: `learner` is a batch; give one of its learners, as in batch[0].")
    check.instance(owner, "learner", learner, Learner)
    refuse_tracers(owner, jax.tree.leaves((state, contexts)), *_INSIDE)
    if hasattr(contexts, "tocsr"):
        contexts = sparse_rows(contexts)
    learner, contexts = unfolded_rows(owner, learner, contexts)
    length = _check_rows(owner, contexts)
    if isinstance(state, Run):
        check_state(owner, state, ())
    state = jax.tree.map(jnp.asarray, state)
    if isinstance(contexts, SparseRows):
        return _sparse(owner, learner, state, contexts)
    row = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), contexts)
    start = start_like(owner, learner, state, row)
    size = max(sum(leaf.nbytes for leaf in jax.tree.leaves(contexts)) // length, 1)
    step = max(1, min(_MOST, _BYTES // size, 1 << (length - 1).bit_length()))
    pieces = []
    for begin in range(0, length, step):
        part = jax.tree.map(lambda leaf: np.asarray(leaf[begin : begin + step]), contexts)  # noqa: B023
        _check_finite(owner, part, begin)
        pieces.append(_played(learner, state, start, part, step))
    return _joined(pieces)


def _sparse(owner: str, learner: Learner, state: PyTree, rows: SparseRows) -> PyTree:
    check_finite(owner, "contexts", rows, 0)
    row = jax.ShapeDtypeStruct(rows.shape[1:], rows.dtype)
    start = start_like(owner, learner, state, row)
    layout = None if start is None else _layout(learner, start, rows)
    if layout is None or layout.lumps:  # a sum over all coordinates needs the whole state
        parts = [one.context for one in dense(Rounds(rows, np.zeros(rows.shape[0])))]
        return _joined([predict(learner, state, part) for part in parts])
    packed = jax.jit(packer(layout))(state)
    room = Room().grown(rows, 0, _MOST)
    step = max(1, min(_MOST, _BYTES // (room.widest * 64), 1 << (rows.shape[0] - 1).bit_length()))
    pieces, room = [], Room().grown(rows, 0, step)
    for begin in range(0, rows.shape[0], step):
        part = blocks(rows, begin, step, room, packed.table.dtype)
        action = _gathered(layout, learner, packed.table, packed.rest, part)
        pieces.append(_first(action, min(step, rows.shape[0] - begin)))
    return _joined(pieces)


def _layout(learner: Learner, start: PyTree, rows: SparseRows) -> Layout | None:
    try:
        return layout_of("predict", learner, start, rows, batched=False)
    except TypeError:  # this learner plays dense rows only
        return None


@functools.partial(compiled, static=(0,))
def _gathered(layout: Layout, learner: Learner, table: Any, rest: tuple, rows: Blocks) -> PyTree:
    """Predictions from the coordinates of each row alone."""
    widest, nothing = rows.widest.size, table.shape[0] - 1

    def one(first: Any, last: Any) -> PyTree:
        here = lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, first, widest)
        own = (first + jnp.arange(widest, dtype=first.dtype) < last)[:, None]
        index = jnp.where(own, here(rows.indices), nothing).reshape(-1)
        x = jnp.where(own, here(rows.values), 0.0).reshape(-1)
        return learner.predict(state_of(layout, table[index], rest), x)

    return jax.vmap(one)(rows.first, rows.last)


@compiled
def _dense(learner: Learner, state: PyTree, start: PyTree, rows: PyTree) -> PyTree:
    fit = (lambda x: x) if start is None else (lambda x: cast_of.cast(x, start))
    return jax.vmap(lambda x: learner.predict(state, fit(x)))(rows)


def _played(learner: Learner, state: PyTree, start: PyTree, part: PyTree, size: int) -> PyTree:
    """The actions of one piece; it is padded to `size` rows, so that all pieces share a program."""
    count = jax.tree.leaves(part)[0].shape[0]
    fill = lambda leaf: np.concatenate([leaf, np.repeat(leaf[-1:], size - count, 0)])
    part = part if count == size else jax.tree.map(fill, part)
    return _first(_dense(learner, state, start, part), count)


def _first(action: PyTree, count: int) -> PyTree:
    """The actions of the first rows, on the host; those of a traced learner are traced."""
    refuse_tracers("predict", jax.tree.leaves(action), *_INSIDE)
    return jax.tree.map(lambda leaf: np.asarray(leaf)[:count], action)


def _joined(pieces: list[PyTree]) -> PyTree:
    return jax.tree.map(lambda *parts: np.concatenate(parts), *pieces)


def _check_rows(owner: str, contexts: PyTree) -> int:
    if isinstance(contexts, Rounds):
        raise TypeError(f"{owner}: `contexts` is a Rounds; give its rows, as `rounds.context`.")
    if isinstance(contexts, list):
        raise TypeError(f"{owner}: `contexts` is a list; give an array, as np.array(contexts).")
    leaves = jax.tree_util.tree_leaves_with_path(contexts)
    if not leaves:
        raise TypeError(f"{owner}: `contexts` holds no array; give one row per prediction.")
    for path, leaf in leaves:
        name = f"contexts{jax.tree_util.keystr(path)}"
        refuse_stranger(owner, name, leaf)
        check_kind(owner, name, leaf)
        if np.ndim(leaf) == 0:
            raise TypeError(f"{owner}: {name} is a scalar; give it a leading axis of rows.")
    lengths = {np.shape(leaf)[0] for _, leaf in leaves}
    if len(lengths) > 1:
        raise TypeError(f"{owner}: leaves of `contexts` differ in length ({sorted(lengths)}).")
    if lengths == {0}:
        raise ValueError(f"{owner}: `contexts` is empty.")
    return lengths.pop()


def _check_finite(owner: str, part: PyTree, begin: int) -> None:
    for path, leaf in jax.tree_util.tree_leaves_with_path(part):
        check_finite(owner, f"contexts{jax.tree_util.keystr(path)}", leaf, begin)
