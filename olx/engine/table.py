"""The state of a learner as a table, one row a coordinate, for rounds that touch a few of them.

What is not per coordinate, such as a clock, goes along as it is.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from olx.core import Learner
from olx.engine import contexts
from olx.learners.lift import LiftHparams, dot
from olx.streams.sparse_rows import SparseRows


class Layout(NamedTuple):
    """Which leaves of a state are per coordinate."""

    structure: Any
    coordinate: tuple[bool, ...]


class Packed(NamedTuple):
    table: Float[Array, "d_plus_1 k"]  # a row a coordinate; the last is for nothing
    rest: tuple  # the other leaves


def layout_of(owner: str, learner: Learner, params: PyTree, rows: SparseRows) -> Layout:
    """How the state of `learner` is laid out; refuses learners that need dense rows."""
    width = rows.shape[1]
    if any(np.ndim(leaf) for leaf in jax.tree.leaves(learner)):
        raise TypeError(
            f"{owner}: a learner with a number for each coordinate, such as a prior, needs dense "
            "rows: pass `rows.toarray()`."
        )
    if np.shape(params) != (width,):
        raise TypeError(
            f"{owner}: `params` has shape {np.shape(params)}, the sparse rows have {width} columns."
        )
    seen = jax.dtypes.canonicalize_dtype(contexts.dtypes(rows, params, 1)[0])
    if seen != jnp.result_type(params):
        raise TypeError(
            f"{owner}: the sparse rows hold {rows.dtype}, `params` is {params.dtype}; start from "
            "the wider dtype, or cast the rows."
        )
    leaves, structure = jax.tree.flatten(learner)
    layout = _layout(structure, tuple(map(jnp.result_type, leaves)), width, params.dtype)
    if layout is None:
        raise TypeError(
            f"{owner}: sparse rows need a learner whose coordinates meet only in the score, such "
            "as `olx.linear` of `omd` with a separable map, or `perceptron`; this one needs dense "
            "rows: pass `rows.toarray()`."
        )
    return layout


def is_linear(learner: Learner) -> bool:
    """Whether it is `linear` of a separable learner, which can be played block by block."""
    hp = learner.hparams
    return isinstance(hp, LiftHparams) and hp.apply.func is dot and hp.inner.separable


@functools.partial(jax.jit, static_argnums=0)
def pack(layout: Layout, state: PyTree) -> Packed:
    lanes, rest = pack_lanes(layout, state)
    return Packed(jnp.concatenate([lanes, lanes[:1]]), rest)


@functools.partial(jax.jit, static_argnums=0)
def unpack(layout: Layout, packed: Packed) -> PyTree:
    return state_of(layout, packed.table[:-1], packed.rest)


def state_of(layout: Layout, table: Array, rest: tuple) -> PyTree:
    """Some rows of the table as the state of a learner of so many coordinates."""
    columns, others = iter(table.T), iter(rest)
    leaves = [next(columns) if is_own else next(others) for is_own in layout.coordinate]
    return jax.tree.unflatten(layout.structure, leaves)


def pack_lanes(layout: Layout, state: PyTree) -> Packed:
    """The rows of the table that such a state makes."""
    leaves = list(zip(jax.tree.leaves(state), layout.coordinate, strict=True))
    columns = [leaf for leaf, is_own in leaves if is_own]
    return Packed(jnp.stack(columns, axis=1), tuple(leaf for leaf, is_own in leaves if not is_own))


@functools.lru_cache(maxsize=256)
def _layout(structure: Any, dtypes: tuple, width: int, dtype: Any) -> Layout | None:
    """None for a learner that is not separable, or does not score rows. Traces, so it is cached."""
    leaves = [jax.ShapeDtypeStruct((), dtype) for dtype in dtypes]
    learner = jax.tree.unflatten(structure, leaves)
    if not is_linear(learner) and not learner.separable:
        return None

    def grow(size: int) -> tuple[PyTree, PyTree]:
        both = lambda learner, x: (learner.init(x), learner.predict(learner.init(x), x))
        return jax.eval_shape(both, learner, jax.ShapeDtypeStruct((size,), dtype))

    (small, action), (large, _) = grow(width), grow(width + 1)
    if [leaf.shape for leaf in jax.tree.leaves(action)] != [()]:
        return None
    differ = lambda a, b: a.shape != b.shape
    coordinate = tuple(map(differ, jax.tree.leaves(small), jax.tree.leaves(large)))
    return Layout(jax.tree.structure(small), coordinate)
