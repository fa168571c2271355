"""Arrays of any size inside arrays whose axes are powers of two, as Triton wants them.

An array has its true shape, which the trace of a round knows, and lives in an array in which every
axis is padded to a power of two. The padding may hold anything, also NaN. An elementwise operation
runs over it. A reduction first puts its neutral element there (`fill`). What moves elements selects
them by their index (`move`): a sum over `where(index == place, x, 0)`, which is exact, and costs
the product of both lengths. So a mean still divides by the true length, and norms or softmax need
no rule of their own: they are made of sums and maxima.
"""

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

Shape = Sequence[int]


def power_of_two(n: int) -> int:
    """The least power of two that is at least `n`, and at least 1."""
    return 1 << max(int(n) - 1, 0).bit_length()


def padded_shape(shape: Shape) -> tuple[int, ...]:
    return tuple(map(power_of_two, shape))


def pad(x: Any, lead: int = 0) -> Array:
    """An array of the host or the device with padding on all axes but the first `lead`."""
    short = [(0, 0)] * lead + [(0, power_of_two(n) - n) for n in x.shape[lead:]]
    return jnp.pad(x, short) if any(high for _, high in short) else x


def unpad(x: Array, shape: Shape) -> Array:
    """The part of true `shape` of a padded array, outside of a kernel."""
    return x if x.shape == tuple(shape) else x[tuple(map(slice, shape))]


def places(shape: Shape, axis: int) -> Array:
    """The index of each element along `axis`."""
    return lax.broadcasted_iota(jnp.int32, shape, axis)


def spread(x: Any, shape: Shape, axes: Sequence[int]) -> Array:
    """`x` in an array of this shape, where its axes become `axes`."""
    return lax.broadcast_in_dim(jnp.asarray(x), shape, tuple(axes))


def where(mask: Any, x: Any, y: Any) -> Array:
    """`jnp.where` without promotion: numbers take the dtype of the array beside them."""
    shape = jnp.broadcast_shapes(*map(jnp.shape, (mask, x, y)))
    dtype = x.dtype if hasattr(x, "dtype") else y.dtype

    def like(value: Any, dtype: jnp.dtype) -> Array:
        behind = range(len(shape) - jnp.ndim(value), len(shape))
        return spread(jnp.asarray(value, dtype), shape, behind)

    return lax.select(like(mask, jnp.dtype(bool)), like(x, dtype), like(y, dtype))


def fill(x: Array, shape: Shape, axes: Sequence[int], neutral: Any) -> Array:
    """`x`, of this true shape, with `neutral` in the padding along `axes`."""
    odd = [axis for axis in axes if power_of_two(shape[axis]) != shape[axis]]
    inside = [places(padded_shape(shape), axis) < shape[axis] for axis in odd]
    return where(functools.reduce(lax.bitwise_and, inside), x, neutral) if odd else x


def extreme(dtype: jnp.dtype, sign: int) -> Any:
    """The largest number of a dtype for `sign` 1, the smallest for -1."""
    if jnp.issubdtype(dtype, jnp.floating):
        return np.asarray(sign * np.inf, dtype)
    return jnp.iinfo(dtype).max if sign > 0 else jnp.iinfo(dtype).min


def sum_over(x: Array, axes: Sequence[int]) -> Array:
    """The sum in the dtype of `x`; of booleans, whether one is true."""
    if x.dtype == bool:
        return sum_over(x.astype(jnp.int32), axes) > 0
    return jnp.sum(x, axis=tuple(axes), dtype=x.dtype) if len(axes) else x


def turn(x: Array, order: Iterable[int]) -> Array:
    """`lax.transpose`, but nothing for axes in their order, which Triton refuses for numbers."""
    order = tuple(map(int, order))
    return x if order == tuple(range(len(order))) else lax.transpose(x, order)


Index = Callable[[Array], Any]  # the places of a result -> those of an operand


def move(x: Array, axis: int, index: Index, size: int, lead: int = 0) -> Array:
    """`out[.., p, ..] = x[.., index(p), ..]` for p < size; 0 where `index` is outside of `x`.

    lead: the number of first axes along which the index may differ. The arithmetic of an index is
        done for these and for `size` numbers, not for each pair of places.
    """
    pairs = lax.expand_dims(x, [axis])
    shape = (*pairs.shape[:axis], size, *pairs.shape[axis + 1 :])

    def thin(axis: int, lead: int) -> Array:
        return places([n if k < lead or k == axis else 1 for k, n in enumerate(shape)], axis)

    return sum_over(where(index(thin(axis, lead)) == thin(axis + 1, 0), pairs, 0), (axis + 1,))


def entry(x: Array, axis: int, i: Array | int) -> Array:
    """`x[.., i, ..]`, without that axis."""
    return sum_over(where(places(x.shape, axis) == i, x, 0), (axis,))


def part(x: Array, axis: int, n: int, start: Array | int, size: int, stride: int = 1) -> Array:
    """`size` entries of an axis of true length `n` from `start` on."""
    stays = isinstance(start, int) and start == 0 and stride == 1
    if stays and power_of_two(size) == power_of_two(n):
        return x
    return move(x, axis, lambda p: start + stride * p, power_of_two(size))


def join(parts: Sequence[Array], sizes: Sequence[int], axis: int) -> Array:
    """Arrays of these true lengths one after the other along `axis`."""
    first = parts[0].shape
    shape = padded_shape((*first[:axis], sum(sizes), *first[axis + 1 :]))
    out, start = None, 0
    for x, n in zip(parts, sizes, strict=True):
        if n == 1:
            x = spread(x, shape, range(x.ndim))
        elif start or x.shape != shape:
            x = move(x, axis, lambda p, start=start: p - start, shape[axis])
        out = x if out is None else where(places(shape, axis) >= start, x, out)
        start += n
    assert out is not None
    return out


def stack(parts: Sequence[Array], axis: int) -> Array:
    return join([lax.expand_dims(x, [axis]) for x in parts], [1] * len(parts), axis)


def unstack(x: Array, axis: int, n: int) -> list[Array]:
    return [entry(x, axis, k) for k in range(n)]


def reshape(x: Array, old: Shape, new: Shape) -> Array:
    """An array of true shape `old` with the true shape `new`.

    The axes are taken in groups of equal size. Inside a group nothing moves if all axes but the
    first are powers of two: padded places are then true places.
    """
    groups = _groups(list(old), list(new))
    if not all(_is_dense(a) and _is_dense(b) for a, b in groups):
        x = lax.reshape(x, [math.prod(padded_shape(a)) for a, _ in groups])
        for axis, (a, b) in enumerate(groups):
            count, padded = power_of_two(math.prod(a)), padded_shape(b)
            if not _is_dense(a):
                x = move(x, axis, _places_in(a, padded_shape(a), a), count)
            if not _is_dense(b):
                x = move(x, axis, _places_in(padded, b, padded), math.prod(padded))
    return x if x.shape == padded_shape(new) else lax.reshape(x, padded_shape(new))


def _groups(old: list[int], new: list[int]) -> list[tuple[list[int], list[int]]]:
    groups = []
    while old or new:
        a, b = old[:1], new[:1]
        del old[:1], new[:1]
        while math.prod(a) != math.prod(b):
            a.append(old.pop(0)) if math.prod(a) < math.prod(b) and old else b.append(new.pop(0))
        groups.append((a, b))
    return groups


def _is_dense(shape: Shape) -> bool:
    return all(power_of_two(n) == n for n in [n for n in shape if n > 1][1:])


def _places_in(given: Shape, seen: Shape, sizes: Shape) -> Index:
    """The flat place in an array of shape `seen` of the element at a place in one of `given`."""
    steps = lambda shape: [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    parts = list(zip(steps(given), steps(seen), sizes, strict=True))
    return lambda p: sum(remainder(quotient(p, g), n) * s for g, s, n in parts)


def quotient(p: Array, n: int) -> Array:
    """`p // n` of numbers that are not negative; `jnp` would make a test of signs of it."""
    return lax.div(p, lax.full_like(p, n))


def remainder(p: Array, n: int) -> Array:
    return lax.rem(p, lax.full_like(p, n))


def is_float(x: Array) -> bool:
    return jnp.issubdtype(x.dtype, jnp.floating)


def largest(x: Array, y: Array, sign: int = 1) -> Array:
    """The maximum, or the minimum for `sign` -1; NaN if one is NaN, which Triton would drop."""
    out = (lax.max if sign > 0 else lax.min)(x, y)
    return where((x != x) | (y != y), x + y, out) if is_float(out) else out


def largest_over(x: Array, axes: Sequence[int], sign: int = 1) -> Array:
    """The same over axes of an array without padding."""
    out = (jnp.max if sign > 0 else jnp.min)(x, axis=tuple(axes))
    return where(sum_over(x != x, axes), np.nan, out) if is_float(x) else out


def is_key(kind: Any) -> bool:
    return jnp.issubdtype(kind.dtype, jax.dtypes.prng_key)
