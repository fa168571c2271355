"""Primitives that compute, on padded arrays: what is elementwise, and the legal form of the others.

A primitive that is in no table has no legal form: it is refused by name. Keys of the generator
threefry are two arrays of integers, and the draws have the bits of `jax.random`.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Int

from olx.engine import tuning
from olx.engine.implementations.gpu_moves import Rule, Unfit, scatter
from olx.engine.implementations.gpu_padding import (
    entry,
    extreme,
    fill,
    is_float,
    largest,
    largest_over,
    padded_shape,
    places,
    quotient,
    remainder,
    spread,
    stack,
    sum_over,
    turn,
    unstack,
    where,
)

ELEMENTWISE = {  # those that Triton has for padded arrays, as they are
    "abs", "acos", "acosh", "add", "and", "asin", "asinh", "atan", "atan2", "atanh",
    "bitcast_convert_type", "cbrt", "ceil", "convert_element_type", "cos", "cosh", "div", "eq",
    "erf_inv", "exp", "exp2", "expm1", "floor", "ge", "gt", "integer_pow", "is_finite", "le", "log",
    "log1p", "logistic", "lt", "mul", "ne", "neg", "nextafter", "not", "or", "population_count",
    "pow", "rem", "rsqrt", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign",
    "sin", "sinh", "sqrt", "sub", "tan", "tanh", "xor",
}  # fmt: skip


def _reduction(sign: int, given, kinds, outs, axes, **_):
    """A sum for `sign` 0, else a maximum or a minimum; booleans are integers."""
    x, shape = given[0], kinds[0].shape
    if x.dtype == bool:
        x = fill(x, shape, axes, sign < 0).astype(jnp.int32)
        return largest_over(x, axes, sign) > 0
    neutral = extreme(x.dtype, -sign) if sign else 0
    x = fill(x, shape, axes, neutral)
    return largest_over(x, axes, sign) if sign else sum_over(x, axes)


def _arg(sign: int, given, kinds, outs, axes, index_dtype, **_):
    """The first place of the largest number, or of NaN if there is one."""
    (axis,), n = axes, kinds[0].shape[axes[0]]
    x = given[0].astype(jnp.int32) if given[0].dtype == bool else given[0]
    x = fill(x, kinds[0].shape, axes, extreme(x.dtype, -sign))
    best = lax.expand_dims(largest_over(x, axes, sign), [axis])
    hit = x == best
    if is_float(x):
        hit = hit | (x != x)  # if there is one, `best` is NaN and equals nothing
    here = places(x.shape, axis)
    return largest_over(where(hit & (here < n), here, n - 1), (axis,), -1).astype(index_dtype)


def _product(given, kinds, outs, dimension_numbers, **_):
    """A contraction: Triton's `dot` for two matrices, else all products and their sum."""
    ((ca, cb), (ba, bb)), (a, b) = dimension_numbers, given
    fa = [k for k in range(a.ndim) if k not in (*ca, *ba)]
    fb = [k for k in range(b.ndim) if k not in (*cb, *bb)]
    dtype, least = outs[0].dtype, tuning.GPU_DOT_LEAST
    sizes = [
        math.prod(x.shape[k] for k in axes) for x, axes in ((a, fa), (b, fb), (a, ca), (a, ba))
    ]
    floats = a.dtype == b.dtype and jnp.issubdtype(a.dtype, jnp.floating)
    if floats and sizes[3] == 1 and len(ca) == 1 and min(sizes[:3]) >= least:
        a = lax.reshape(turn(fill(a, kinds[0].shape, ca, 0), [*ba, *fa, *ca]), sizes[0::2])
        b = lax.reshape(turn(fill(b, kinds[1].shape, cb, 0), [*bb, *cb, *fb]), sizes[2:0:-1])
        out = lax.dot(a, b, precision=lax.Precision.HIGHEST, preferred_element_type=dtype)
        return lax.reshape(out, padded_shape(outs[0].shape))
    batch = len(ba)
    a = lax.expand_dims(turn(a, [*ba, *fa, *ca]), [batch + len(fa) + k for k in range(len(fb))])
    b = lax.expand_dims(turn(b, [*bb, *fb, *cb]), [batch + k for k in range(len(fa))])
    one, other = (kind.shape for kind in kinds)
    shape = [*(one[k] for k in (*ba, *fa)), *(other[k] for k in fb), *(one[k] for k in ca)]
    axes = range(len(shape) - len(ca), len(shape))
    # The product is filled, not the factors: 0 times infinity is NaN.
    return sum_over(fill((a * b).astype(dtype), shape, axes, 0), axes)


def _cumsum(given, kinds, outs, axis, reverse):
    x = given[0]
    if not reverse:
        return lax.cumsum(x, axis)
    x = lax.expand_dims(fill(x, kinds[0].shape, [axis], 0), [axis])
    shape = (*x.shape[:axis], x.shape[axis + 1], *x.shape[axis + 1 :])
    return sum_over(where(places(shape, axis + 1) >= places(shape, axis), x, 0), (axis + 1,))


def _sort(given, kinds, outs, dimension, num_keys, **_):
    n = kinds[0].shape[dimension]
    rank = _ranks(given[:num_keys], dimension, n)
    return [_in_order(x, rank, dimension, n) for x in given]


def _ranks(keys: Sequence[Array], axis: int, n: int) -> Int[Array, "..."]:
    """The place of each element in a stable sort, NaN last, by n**2 comparisons."""
    less, same = jnp.asarray(False), jnp.asarray(True)
    for key in keys:
        p, q = lax.expand_dims(key, [axis + 1]), lax.expand_dims(key, [axis])  # one, the others
        before, alike = q < p, q == p
        if is_float(key):
            before, alike = before | ((p != p) & (q == q)), alike | ((p != p) & (q != q))
        less, same = less | (same & before), same & alike
    p, q = places(less.shape, axis), places(less.shape, axis + 1)
    before = (less | (same & (q < p))) & (q < n)
    return sum_over(before.astype(jnp.int32), (axis + 1,))


def _in_order(x: Array, rank: Array, axis: int, n: int) -> Array:
    """The elements of an axis of true length `n` by their ranks."""
    rank = lax.expand_dims(where(places(rank.shape, axis) < n, rank, -1), [axis])
    shape = (*rank.shape[:axis], x.shape[axis], *rank.shape[axis + 1 :])
    return sum_over(where(rank == places(shape, axis), lax.expand_dims(x, [axis]), 0), (axis + 1,))


def _eigh(given, kinds, outs, **_):
    """Cyclic Jacobi rotations of a small matrix; Golub and van Loan, 2013, section 8.5."""
    n, rank = kinds[0].shape[-1], given[0].ndim
    if n > tuning.GPU_EIGH_MOST or outs[0].shape != kinds[0].shape:
        raise Unfit(f"eigh of more than {tuning.GPU_EIGH_MOST} rows has no legal form")
    row, column = rank - 2, rank - 1
    matrix = fill(given[0], kinds[0].shape, (row, column), 0)
    diagonal = places(matrix.shape, row) == places(matrix.shape, column)

    def turned(x: Array, axis: int, pair: tuple, angle: tuple) -> Array:
        """`x` with two of its rows or columns rotated."""
        (p, q), (c, s) = pair, (lax.expand_dims(part, [row]) for part in angle)
        one, other, here = entry(x, axis, p), entry(x, axis, q), places(x.shape, axis)
        there = lax.expand_dims(s * one + c * other, [axis])
        new = where(here == q, there, x)
        return where(here == p, lax.expand_dims(c * one - s * other, [axis]), new)

    def rotate(k: Array, carry: tuple) -> tuple:
        matrix, vectors = carry
        k = remainder(k, n * n)
        p, q = quotient(k, n), remainder(k, n)
        at = lambda i, j: entry(entry(matrix, column, j), row, i)
        off, gap = at(p, q), at(q, q) - at(p, p)
        used = (off != 0) & (p < q)
        z = gap / (2 * where(used, off, 1))
        sign = where(z < 0, lax.full_like(z, -1), 1)
        t = where(used, sign / (jnp.abs(z) + jnp.sqrt(1 + z * z)), 0)
        c = 1 / jnp.sqrt(1 + t * t)
        angle = c, t * c
        matrix = turned(turned(matrix, column, (p, q), angle), row, (p, q), angle)
        return matrix, turned(vectors, column, (p, q), angle)

    rotations = tuning.GPU_EIGH_SWEEPS * n * n
    start = matrix, diagonal.astype(matrix.dtype)
    matrix, vectors = lax.fori_loop(0, rotations, rotate, start)
    values = sum_over(where(diagonal, matrix, 0), (column,))
    order = _ranks([values], row, n)
    wide = spread(order, vectors.shape, [*range(row), column])
    return [_in_order(vectors, wide, column, n), _in_order(values, order, row, n)]


RULES: dict[str, Rule] = {
    "add_any": lambda given, kinds, outs: given[0] + given[1],
    "argmax": functools.partial(_arg, 1),
    "argmin": functools.partial(_arg, -1),
    "clamp": lambda given, kinds, outs: largest(largest(given[0], given[1]), given[2], -1),
    "cumsum": _cumsum,
    "dot_general": _product,
    "eigh": _eigh,
    "iota": lambda given, kinds, outs, shape, dimension, dtype, **_: lax.broadcasted_iota(
        dtype, padded_shape(shape), dimension
    ),
    "max": lambda given, kinds, outs: largest(*given),
    "min": lambda given, kinds, outs: largest(*given, sign=-1),
    "reduce_and": functools.partial(_reduction, -1),
    "reduce_max": functools.partial(_reduction, 1),
    "reduce_min": functools.partial(_reduction, -1),
    "reduce_or": functools.partial(_reduction, 1),
    "reduce_sum": functools.partial(_reduction, 0),
    "scatter-add": functools.partial(scatter, add=True),
    "sort": _sort,
    "square": lambda given, kinds, outs: given[0] * given[0],
}

Key = tuple[Array, Array]  # the two words of each key


def wrap(words: Array) -> Key:
    """Keys of an array whose last axis holds their words."""
    high, low = unstack(words, words.ndim - 1, 2)
    return high, low


def unwrap(key: Key) -> Array:
    """The inverse of `wrap`."""
    return stack(key, key[0].ndim)


def _fold_in(given, kinds, outs, **_):
    key, data = given
    data = jnp.asarray(data).astype(jnp.uint32)
    data = spread(data, key[0].shape, range(data.ndim))
    return _threefry(key, (lax.full_like(data, 0), data))


def _bits(given, kinds, outs, bit_width, shape):
    high, low = _hashes(given[0], kinds[0].shape, shape)
    if bit_width == 32:
        return high ^ low
    if bit_width != 64:
        raise Unfit(f"random_bits of {bit_width} bits has no legal form")
    wide = high.astype(jnp.uint64)
    return lax.shift_left(wide, lax.full_like(wide, 32)) | low.astype(jnp.uint64)


def _hashes(key: Key, before: tuple[int, ...], shape: tuple[int, ...]) -> Key:
    """One hash per true place of `shape`, for each key of the shape `before`."""
    full, lead = padded_shape((*before, *shape)), len(before)
    count = lax.full(full, 0, jnp.uint32)
    for k in range(len(shape)):
        here = lax.broadcasted_iota(jnp.uint32, full, lead + k)
        count = count + here * np.uint32(math.prod(shape[k + 1 :]))
    words: Any = tuple(spread(word, full, range(lead)) for word in key)
    return _threefry(words, (lax.full_like(count, 0), count))


def _threefry(key: Key, block: Key) -> Key:
    """Threefry-2x32 with 20 rounds; Salmon et al., Parallel Random Numbers, 2011."""
    words = [*key, key[0] ^ key[1] ^ np.uint32(0x1BD11BDA)]
    x, y = block[0] + words[0], block[1] + words[1]
    for i in range(5):
        for r in ((13, 15, 26, 6), (17, 29, 16, 24))[i % 2]:
            turned = lax.shift_left(y, lax.full_like(y, r))
            turned = turned | lax.shift_right_logical(y, lax.full_like(y, 32 - r))
            x = x + y
            y = x ^ turned
        x, y = x + words[(i + 1) % 3], y + words[(i + 2) % 3] + np.uint32(i + 1)
    return x, y


KEYS: dict[str, Rule] = {
    "random_bits": _bits,
    "random_fold_in": _fold_in,
    "random_split": lambda given, kinds, outs, shape: _hashes(given[0], kinds[0].shape, shape),
    "random_unwrap": lambda given, kinds, outs: unwrap(given[0]),
    "random_wrap": lambda given, kinds, outs, impl: wrap(given[0]),
}


def check_generator(kind: Any) -> None:
    """Refuse keys whose draws have other bits here."""
    known = getattr(jax.config, "jax_threefry_partitionable", True)
    if "fry" not in str(kind.dtype) or not known:
        raise Unfit(f"{kind.dtype} has no legal form: keys must be of threefry, partitionable")
