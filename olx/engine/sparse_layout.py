"""The state of a learner as a table with one row per coordinate, for sparse rows.

A leaf is per coordinate if one of its axes grows with the number of columns: a vector of weights, a
matrix with one row of weights per class, the weights of many copies of a learner. Other leaves,
such as a clock, are kept beside the table.
"""

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from olx import _numeric
from olx._cache import cached
from olx._compiled import compiled, result_shapes
from olx._numeric import Sum
from olx._refusal import RefusedType
from olx.core import Learner, Rounds
from olx.engine import round, tuning
from olx.facts import HasAggregate, Linear, Refreshed, Rowwise
from olx.streams.sparse_rows import SparseRows


class Layout(NamedTuple):
    """How the leaves of a state are laid out in a table."""

    structure: PyTree
    axes: tuple[int | None, ...]  # the axis of coordinates of each leaf; None if it has none
    others: tuple[tuple[int, ...], ...]  # the shape of each leaf without that axis
    aggregates: bool  # whether an `AggregateState` is kept beside the table


class AggregateState(NamedTuple):
    """Numbers about all coordinates, for a learner that states `HasAggregate`."""

    scale: Any  # the state is the table times `scale`, minus `shift`
    shift: Any  # 0, except if the aggregate is additive; then `scale` is 1
    total: Sum  # the sum of the terms of the table, in units of exp(level)
    level: Any
    peak: Any  # the largest `total` since it was last computed from the table


class Packed(NamedTuple):
    """A state, or the axes of one for `jax.vmap`."""

    table: Any  # [d + 1, k], in a sweep [d + 1, k, N]; the last row is for padding
    rest: Any  # the leaves that are not per coordinate, in a tuple
    whole: Any = ()  # an `AggregateState`, if the learner states `HasAggregate`


AXES = Packed(2, 0, 0)  # the axis of configurations in a sweep


def layout_of(learner: Learner, params: PyTree, rows: SparseRows, batched: bool) -> Layout:
    """How the state of `learner` is laid out; refuses learners that need dense rows.

    batched: whether the numbers of `learner` have a leading axis of configurations.
    """
    width = rows.shape[1]
    if any(width in np.shape(leaf)[batched:] for leaf in jax.tree.leaves(learner)):
        raise RefusedType(
            "a learner with a number for each coordinate, such as a prior, needs dense "
            "rows: pass `rows.toarray()`."
        )
    if not hasattr(params, "shape") or params.shape[-1:] != (width,):
        seen = np.shape(params) if hasattr(params, "shape") else jax.tree.structure(params)
        raise RefusedType(f"`params` has shape {seen}, the sparse rows have {width} columns.")
    seen = jax.dtypes.canonicalize_dtype(round.context_dtypes(rows, params, 1)[0])
    if seen != jnp.result_type(params):
        raise RefusedType(
            f"the sparse rows hold {rows.dtype}, `params` is {params.dtype}; start from "
            "the wider dtype, or cast the rows."
        )
    leaves, structure = jax.tree.flatten(learner)
    weak = lambda leaf: isinstance(leaf, int | float)
    kinds = tuple((np.shape(leaf)[batched:], jnp.result_type(leaf), weak(leaf)) for leaf in leaves)
    layout = _layout(structure, kinds, params.shape[:-1], width, params.dtype)
    if layout is None:
        raise RefusedType(
            "sparse rows need a learner that states how its coordinates interact (see "
            "`olx.Facts`), such as `olx.linear` of `omd` with a separable map, or `perceptron`; "
            "this one needs dense rows: pass `rows.toarray()`."
        )
    return layout


def takes_sparse(learner: Learner, *scores: int) -> bool:
    """Whether a learner plays sparse rows; `scores` are the axes of its weights before the last."""
    nothing, start = np.zeros(0, np.float32), np.zeros((*scores, _WIDTH), np.float32)
    rows = SparseRows(np.zeros(2, np.int32), nothing.astype(np.int32), nothing, _WIDTH)
    try:
        layout_of(learner, start, rows, batched=False)
    except Exception:  # it refuses sparse rows, or weights of this width, which its numbers have
        return False
    return True


_WIDTH = 1009  # a number that is hardly the size of something else


def pack(layout: Layout, state: PyTree) -> Packed:
    """The table of a state, with one more row for padding."""
    table, rest, _ = rows_of(layout, state)
    if not layout.aggregates:
        return Packed(jnp.concatenate([table, table[:1]]), rest)
    zero = jnp.zeros((), table.dtype)  # the first round computes the sum, since the peak is higher
    whole = AggregateState(zero + 1, zero, _numeric.start(zero), zero, zero + jnp.inf)
    return Packed(jnp.concatenate([table, jnp.zeros_like(table[:1])]), rest, whole)


@cached
def packer(layout: Layout) -> Callable[[PyTree], Packed]:
    """`pack` for a layout; the same object per layout, so that JAX compiles it once."""
    return functools.partial(pack, layout)


@functools.partial(compiled, static=(0, 1))
def unpack(layout: Layout, batched: bool, packed: Packed) -> PyTree:
    one = lambda table, rest, whole: state_of(layout, table[:-1], rest, whole)
    return (jax.vmap(one, in_axes=tuple(AXES)) if batched else one)(*packed)


def state_of(
    layout: Layout, table: Array, rest: tuple, whole: AggregateState | tuple = ()
) -> PyTree:
    """Some rows of the table as the state of a learner that has only these coordinates."""
    table = table * whole.scale - whole.shift if isinstance(whole, AggregateState) else table
    others, column, leaves = iter(rest), 0, []
    for axis, shape in zip(layout.axes, layout.others, strict=True):
        if axis is None:
            leaves.append(next(others))
            continue
        size = math.prod(shape)
        part = table[:, column] if shape == () else table[:, column : column + size]
        leaves.append(jnp.moveaxis(part.reshape(-1, *shape), 0, axis))
        column += size
    return jax.tree.unflatten(layout.structure, leaves)


def rows_of(layout: Layout, state: PyTree) -> Packed:
    """The state of a learner with some of the coordinates, as rows of the table."""
    columns, rest, _ = columns_of(layout, state)
    return Packed(jnp.concatenate(columns, axis=1), rest)


def columns_of(layout: Layout, state: PyTree) -> Packed:
    """The same rows as a list, with the columns of one leaf in each entry."""
    leaves = list(zip(jax.tree.leaves(state), layout.axes, strict=True))
    own = [(leaf, axis) for leaf, axis in leaves if axis is not None]
    columns = [jnp.moveaxis(leaf, axis, 0).reshape(leaf.shape[axis], -1) for leaf, axis in own]
    rest = tuple(leaf for leaf, axis in leaves if axis is None)
    return Packed(columns, rest)


@cached
def _layout(
    structure: object, kinds: tuple, above: tuple, width: int, dtype: object
) -> Layout | None:
    """The layout; None if the learner cannot play sparse rows. It traces, so it is cached.

    above: the shape of `params` before its last axis, the coordinates.
    """
    leaves = [jax.ShapeDtypeStruct(*kind, weak_type=weak) for *kind, weak in kinds]
    learner = jax.tree.unflatten(structure, leaves)
    if not isinstance(learner.facts.coordinates, Linear | Rowwise | HasAggregate | Refreshed):
        return None

    def grow(size: int) -> tuple[PyTree, PyTree]:
        params, x = (jax.ShapeDtypeStruct((*head, size), dtype) for head in (above, ()))
        both = lambda learner, params, x: (s := learner.init(params), learner.predict(s, x))
        return result_shapes(both, learner, params, x)

    shapes_of = lambda tree: [leaf.shape for leaf in jax.tree.leaves(tree)]
    (small, score), (large, other) = grow(width), grow(width + 1)
    if shapes_of(score) != shapes_of(other):
        return None
    shapes = shapes_of(small)
    axes = tuple(map(_grown_axis, shapes, shapes_of(large)))
    others = tuple(
        shape if axis is None else shape[:axis] + shape[axis + 1 :]
        for shape, axis in zip(shapes, axes, strict=True)
    )
    own = [shape for axis, shape in zip(axes, others, strict=True) if axis is not None]
    aggregates = isinstance(learner.facts.coordinates, HasAggregate)
    if aggregates and len(own) != 1:
        return None
    return Layout(jax.tree.structure(small), axes, others, aggregates)


def _grown_axis(small: tuple[int, ...], large: tuple[int, ...]) -> int | None:
    grown = [axis for axis, (a, b) in enumerate(zip(small, large, strict=True)) if a != b]
    return grown[0] if grown else None


def dense(rounds: Rounds | Iterable[Rounds]) -> Iterator[Rounds]:
    """Sparse rows as dense rows, in small pieces."""
    for piece in [rounds] if isinstance(rounds, Rounds) else rounds:
        rows = piece.context
        step = max(1, tuning.DENSE_PIECE_BYTES // (rows.shape[1] * rows.values.dtype.itemsize))
        for begin in range(0, rows.shape[0], step):
            part = slice(begin, begin + step)
            rest = jax.tree.map(lambda leaf, part=part: np.asarray(leaf)[part], piece[1:])
            yield Rounds(rows[part].toarray(), *rest)
