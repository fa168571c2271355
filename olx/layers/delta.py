r"""Chunks of tokens by matrix products, for learners that add a multiple of the key.

Let $W_t = \kappa_t W_{t-1} + a_t k_t^\top$ with $a_t = c_t - b_t \kappa_t W_{t-1} k_t$. Over a
chunk with first state $W_0$, rows $k_t$ of $K$ and so on, $\gamma_t = \kappa_1 \cdots \kappa_t$ and
$\Gamma_{ts} = \kappa_{s+1} \cdots \kappa_t$ for $s \le t$, the rows $a_t$ of $A$ solve a triangular
system, and everything else is matrix products:

$$(I + L) A = C - \mathrm{diag}(b \gamma) K W_0^\top, \qquad
  L_{ts} = b_t \Gamma_{ts} \langle k_t, k_s\rangle \text{ for } s < t,$$
$$O = \mathrm{diag}(\gamma) Q W_0^\top + M A, \qquad
  M_{ts} = \Gamma_{ts} \langle q_t, k_s\rangle \text{ for } s \le t, \qquad
  W_n = \gamma_n W_0 + A^\top \mathrm{diag}(\Gamma_{n \cdot}) K.$$

The inverse of $I + L$ is computed by halves, which is as exact as forward substitution; the series
$\prod_i (I + (-L)^{2^i})$ is not, if keys repeat. The backward pass keeps one state per chunk,
computes the chunk again, and uses the transposed inverse.

Yang, Wang, Zhang, Shen, Kim, Parallelizing Linear Transformers with the Delta Rule over Sequence
Length, arXiv:2406.06484, 2024; Yang, Kautz, Hatamizadeh, arXiv:2412.06464, 2024, for $\kappa$.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

_BASE = 8  # rows that are solved one after the other


_CHUNK = 64


def chunk_of(tokens: int) -> int:
    """The length of a chunk for so many tokens."""
    size = _BASE
    while size < min(tokens, _CHUNK):
        size *= 2
    return size


class Tokens(NamedTuple):
    """What the tokens do to the state, each with a leading axis of chunks."""

    keys: Float[Array, "n C dk"]
    queries: Float[Array, "n C dk"]
    free: Float[Array, "n C dv"]  # c
    rate: Float[Array, "n C"]  # b
    keep: Float[Array, "n C"] | None  # kappa; None if it is 1


@jax.custom_vjp
def play_chunks(state: Float[Array, "dv dk"], tokens: Tokens) -> tuple[Array, Array]:
    """The last state, and the outputs with an axis of chunks; C is a power of two times `_BASE`."""
    return lax.scan(_play, state, tokens)


def _forward(state: Array, tokens: Tokens) -> tuple[tuple[Array, Array], tuple]:
    def step(state: Array, here: Tokens) -> tuple[Array, tuple[Array, Array]]:
        after, outputs = _play(state, here)
        return after, (outputs, state)

    last, (outputs, starts) = lax.scan(step, state, tokens)
    return (last, outputs), (starts, tokens)


def _backward(kept: tuple, given: tuple[Array, Array]) -> tuple[Array, Tokens]:
    step = lambda last, here: _play_back(last, *here)
    return lax.scan(step, given[0], (*kept, given[1]), reverse=True)


play_chunks.defvjp(_forward, _backward)


class _Chunk(NamedTuple):
    """What both directions need of a chunk."""

    gram: Array  # <k_t, k_s>, s < t
    mixed: Array  # <q_t, k_s>, s <= t
    gamma: Array | float
    ratio: Array | float  # Gamma
    left: Array | float  # the last row of Gamma
    inverse: Array
    seen: Array  # K W_0'
    added: Array  # A


def _solve(state: Array, here: Tokens) -> _Chunk:
    k, q = here.keys, here.queries
    gamma, ratio, left = (1.0, 1.0, 1.0) if here.keep is None else _decays(here.keep)
    gram, mixed = jnp.tril(product(k, k.T), -1), jnp.tril(product(q, k.T))
    inverse = inverse_of(here.rate[:, None] * ratio * gram)
    seen = product(k, state.T)
    added = product(inverse, here.free - _column(here.rate * gamma) * seen)
    return _Chunk(gram, mixed, gamma, ratio, left, inverse, seen, added)


def _play(state: Array, here: Tokens) -> tuple[Array, Array]:
    c = _solve(state, here)
    outputs = _column(c.gamma) * product(here.queries, state.T)
    outputs += product(c.ratio * c.mixed, c.added)
    return _last(c.gamma) * state + product((_column(c.left) * c.added).T, here.keys), outputs


def _play_back(last: Array, state: Array, here: Tokens, outputs: Array) -> tuple[Array, Tokens]:
    """The cotangents of the first state and of the tokens of a chunk, from those of its results."""
    c, k, q, rate = _solve(state, here), here.keys, here.queries, here.rate
    pulled = product(k, last.T)
    added = product((c.ratio * c.mixed).T, outputs) + _column(c.left) * pulled
    free = product(c.inverse.T, added)
    lower = -jnp.tril(product(free, c.added.T), -1)  # of L
    read = jnp.tril(product(outputs, c.added.T))  # of M
    weighed, far = _column(c.gamma) * outputs, _column(rate * c.gamma) * free
    gram, mixed = lower * rate[:, None] * c.ratio, read * c.ratio
    keys = product(gram, k) + product(gram.T, k) + product(mixed.T, q)
    keys += product(_column(c.left) * c.added, last) - product(far, state)
    queries = product(weighed, state) + product(mixed, k)
    along = jnp.sum(free * c.seen, 1)
    rates = jnp.sum(lower * c.ratio * c.gram, 1) - c.gamma * along
    before = _last(c.gamma) * last + product(weighed.T, q) - product(far.T, k)
    keep = None
    if here.keep is not None:
        gamma = jnp.sum(outputs * product(q, state.T), 1) - rate * along
        gamma = gamma.at[-1].add(jnp.sum(last * state))
        ratio = lower * rate[:, None] * c.gram + read * c.mixed
        own = jnp.sum(pulled * c.added, 1)
        _, pull = jax.vjp(_decays, here.keep)
        (keep,) = pull((gamma, ratio, own))
    return before, Tokens(keys, queries, free, rates, keep)


def _decays(keep: Float[Array, " C"]) -> tuple[Array, Array, Array]:
    """gamma, Gamma and its last row: products, not quotients, so that `keep` may be 0."""
    n = keep.shape[0]
    later = jnp.tril(jnp.ones((n, n), bool), -1)
    ratio = jnp.tril(jnp.cumprod(jnp.where(later, keep[:, None], 1.0), 0))
    return jnp.cumprod(keep), ratio, ratio[-1]


def inverse_of(lower: Float[Array, "... C C"]) -> Float[Array, "... C C"]:
    """The inverse of I + `lower`, which is zero on and above the diagonal."""
    n = lower.shape[-1]
    if n <= _BASE:
        return _substituted(lower)
    half = n // 2
    ends = jnp.stack([lower[..., :half, :half], lower[..., half:, half:]], -3)
    both = inverse_of(ends)
    first, second = both[..., 0, :, :], both[..., 1, :, :]
    corner = -product(second, product(lower[..., half:, :half], first))
    top = jnp.concatenate([first, jnp.zeros_like(first)], -1)
    return jnp.concatenate([top, jnp.concatenate([corner, second], -1)], -2)


def _substituted(lower: Array) -> Array:
    """The same, row after row."""
    eye = jnp.broadcast_to(jnp.eye(lower.shape[-1], dtype=lower.dtype), lower.shape)
    rows = [eye[..., 0, :]]
    for i in range(1, lower.shape[-1]):
        terms = [lower[..., i, j, None] * row for j, row in enumerate(rows)]
        rows.append(eye[..., i, :] - functools.reduce(jnp.add, terms))
    return jnp.stack(rows, -2)


def _column(numbers: Any) -> Any:
    return numbers if isinstance(numbers, float) else numbers[:, None]


def _last(numbers: Any) -> Any:
    return numbers if isinstance(numbers, float) else numbers[-1]


product = functools.partial(jnp.matmul, precision=lax.Precision.HIGHEST)
