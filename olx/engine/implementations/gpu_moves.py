"""Primitives that move elements, on padded arrays: a table from the name to the legal form.

A rule takes the padded operands, their true shapes and dtypes, those of the results, and the
parameters of the primitive. It gives the padded result, or all results of a primitive that has
several. The rules of this table also move random keys: each half of a key is an array of its own.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Int

from olx._refusal import RefusedValue
from olx.engine.implementations.gpu_padding import (
    entry,
    extreme,
    fill,
    join,
    largest_over,
    move,
    padded_shape,
    part,
    places,
    power_of_two,
    quotient,
    remainder,
    reshape,
    spread,
    stack,
    sum_over,
    turn,
    unstack,
    where,
)

Rule = Callable[..., Any]


class Unfit(RefusedValue):
    """What a kernel has no legal form for, in words that name the primitive."""


def _select(given, kinds, outs):
    which, out, *cases = given
    for k, case in enumerate(cases, 1):
        out = where(which if which.dtype == bool else which == k, case, out)
    return out


def _slice(given, kinds, outs, start_indices, limit_indices, strides):
    x = given[0]
    for axis, (n, start) in enumerate(zip(kinds[0].shape, start_indices, strict=True)):
        x = part(x, axis, n, int(start), outs[0].shape[axis], strides[axis] if strides else 1)
    return x


def _dynamic_slice(given, kinds, outs, slice_sizes, **_):
    x, *starts = given
    for axis, (n, start, size) in enumerate(zip(kinds[0].shape, starts, slice_sizes, strict=True)):
        if size < n:
            x = part(x, axis, n, _legal_start(start, n - size), size)
    return x


def _concatenate(given, kinds, outs, dimension):
    there = [k for k, kind in enumerate(kinds) if kind.size]  # the others are None
    sizes = [kinds[k].shape[dimension] for k in there]
    return join([given[k] for k in there], sizes, dimension)


def _split(given, kinds, outs, sizes, axis):
    n, starts = kinds[0].shape[axis], np.cumsum([0, *sizes])
    return [part(given[0], axis, n, int(i), size) for i, size in zip(starts, sizes, strict=False)]


def _reverse(given, kinds, outs, dimensions):
    x = given[0]
    for axis in dimensions:
        last = kinds[0].shape[axis] - 1
        x = move(x, axis, lambda p, last=last: last - p, x.shape[axis])
    return x


def _tile(given, kinds, outs, reps):
    x = given[0]
    for axis, (n, size) in enumerate(zip(kinds[0].shape, outs[0].shape, strict=True)):
        if size > n:
            x = move(x, axis, lambda p, n=n: remainder(p, n), power_of_two(size))
    return x


def _pad(given, kinds, outs, padding_config):
    x, value = given
    for axis, (low, _, gap) in enumerate(padding_config):
        n, size, step = kinds[0].shape[axis], outs[0].shape[axis], int(gap) + 1
        low = int(low)
        if size == n and not low and not gap:
            continue
        if low or gap or x.shape[axis] != power_of_two(size):
            index = lambda p, low=low, step=step: quotient(p - low, step)
            x = move(x, axis, index, power_of_two(size))
        here = places(x.shape, axis) - low
        x = where((here >= 0) & (here < n * step) & (remainder(here, step) == 0), x, value)
    return x


def _gather(given, kinds, outs, dimension_numbers, slice_sizes, mode, fill_value=None, **_):
    """The batch axes of the indices first, then the axes of the operand, each at its own start."""
    (x, index), numbers = given, dimension_numbers
    count, shape, hidden = index.ndim - 1, kinds[0].shape, numbers.collapsed_slice_dims
    starts = dict(zip(numbers.start_index_map, _columns(index, kinds[1]), strict=True))
    own, theirs = numbers.operand_batching_dims, numbers.start_indices_batching_dims
    rest = [k for k in range(x.ndim) if k not in own]
    x = turn(x, [*[own[k] for k in np.argsort(theirs)], *rest])
    x = lax.expand_dims(x, [k for k in range(count) if k not in theirs])
    x = spread(x, (*index.shape[:-1], *x.shape[count:]), range(x.ndim))
    legal, axis = jnp.asarray(True), count
    for k in rest:
        size, top, collapsed = slice_sizes[k], shape[k] - slice_sizes[k], k in hidden
        if k in starts:
            start = starts[k]
            legal = legal & (start >= 0) & (start <= top)
            start = _legal_start(start, top)
            if size == 1:
                x = entry(x, axis, spread(start, x.shape, range(count)))
                x = x if collapsed else lax.expand_dims(x, [axis])
            elif top:
                index_of = lambda p, start=start: p + spread(start, p.shape, range(count))
                x = move(x, axis, index_of, power_of_two(size), count)
        elif collapsed:
            x = entry(x, axis, 0)
        axis += not collapsed
    if mode == lax.GatherScatterMode.FILL_OR_DROP and starts:
        x = where(spread(legal, x.shape, range(count)), x, _fill_value(x.dtype, fill_value))
    batch, window = iter(range(count)), iter(range(count, x.ndim))
    return turn(x, [next(window if k in numbers.offset_dims else batch) for k in range(x.ndim)])


def scatter(given, kinds, outs, dimension_numbers, mode, add=False, **_):
    """Each update at its place in an array of (batch axes of the indices, axes of the operand)."""
    (x, index, new), numbers = given, dimension_numbers
    count, batch = index.ndim - 1, list(numbers.scatter_indices_batching_dims)
    if batch != sorted(batch):
        raise Unfit("scatter with batch axes in another order has no legal form")
    own = list(numbers.operand_batching_dims)
    rest = [k for k in range(x.ndim) if k not in own]
    starts = dict(zip(numbers.scatter_dims_to_operand_dims, _columns(index, kinds[1]), strict=True))
    kept = [k for k in rest if k not in numbers.inserted_window_dims]
    window = numbers.update_window_dims
    sizes = dict(zip(kept, [kinds[2].shape[k] for k in window], strict=True))
    new = turn(new, [*[k for k in range(new.ndim) if k not in window], *window])
    new = lax.expand_dims(new, [count + i for i, k in enumerate(rest) if k not in sizes])
    shape = (*index.shape[:-1], *(x.shape[k] for k in rest))
    mask = fill(lax.full(shape[:count], True), kinds[1].shape[:-1], range(count), False)
    mask = spread(mask, shape, range(count))
    for axis, k in enumerate(rest, count):
        if k not in starts:
            continue
        start, size = starts[k], sizes.get(k, 1)
        top, here = kinds[0].shape[k] - size, places(shape, axis)
        if mode == lax.GatherScatterMode.CLIP:
            start = _legal_start(start, top)
        legal = spread((start >= 0) & (start <= top), shape, range(count))
        low = spread(start, shape, range(count))
        mask = mask & legal & (here >= low) & (here < low + size)
        if size > 1:
            index_of = lambda p, start=start: p - spread(start, p.shape, range(count))
            new = move(new, axis, index_of, x.shape[k], count)
    new = spread(new, shape, range(len(shape)))
    free = [k for k in range(count) if k not in batch]
    back = np.argsort([*own, *rest])
    if add:
        return x + turn(sum_over(where(mask, new, 0), free), back)
    for axis in free:  # of several updates of a place the last one stays
        last = largest_over(where(mask, places(shape, axis), -1), (axis,))
        mask = mask & (places(shape, axis) == lax.expand_dims(last, [axis]))
    changed = turn(sum_over(where(mask, new, 0), free), back)
    return where(turn(sum_over(mask, free), back), changed, x)


def _legal_start(start: Array, top: int) -> Int[Array, "..."]:
    """The start of a slice, moved inside of the operand."""
    return jnp.clip(jnp.asarray(start).astype(jnp.int32), 0, top)


def _columns(index: Array, kind: Any) -> list[Array]:
    return [x.astype(jnp.int32) for x in unstack(index, index.ndim - 1, kind.shape[-1])]


def _fill_value(dtype: jnp.dtype, given: Any) -> Any:
    """What a gather gives for an index that is not legal."""
    if given is not None:
        return given
    if jnp.issubdtype(dtype, jnp.floating):
        return np.nan
    if jnp.issubdtype(dtype, jnp.bool_):
        return True
    return extreme(dtype, -1 if jnp.issubdtype(dtype, jnp.signedinteger) else 1)


def _shape(given, kinds, outs, **_):
    return reshape(given[0], kinds[0].shape, outs[0].shape)


MOVES: dict[str, Rule] = {
    "broadcast_in_dim": lambda given, kinds, outs, shape, broadcast_dimensions, **_: spread(
        given[0], padded_shape(shape), broadcast_dimensions
    ),
    "concatenate": _concatenate,
    "dynamic_slice": _dynamic_slice,
    "gather": _gather,
    "pad": _pad,
    "reshape": _shape,
    "rev": _reverse,
    "scatter": scatter,
    "select_n": _select,
    "slice": _slice,
    "split": _split,
    "squeeze": _shape,
    "stack": lambda given, kinds, outs, axis: stack(given, axis),
    "tile": _tile,
    "transpose": lambda given, kinds, outs, permutation: turn(given[0], permutation),
    "unstack": lambda given, kinds, outs, axis: unstack(given[0], axis, kinds[0].shape[axis]),
}
