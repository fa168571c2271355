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
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

_BASE = 8  # rows that are solved one after the other
_CHUNK = 64


def chunk_of(tokens: int) -> int:
    """The length of a chunk for so many tokens."""
    return min(max(_BASE, 1 << (tokens - 1).bit_length()), _CHUNK)


class Tokens(NamedTuple):
    """What the tokens of a chunk do to the state."""

    keys: Float[Array, "C dk"]
    queries: Float[Array, "C dk"]
    free: Float[Array, "C dv"]  # c
    rate: Float[Array, " C"]  # b
    keep: Float[Array, " C"] | None  # kappa; None if it is 1


def play_chunk(state: Float[Array, "dv dk"], here: Tokens) -> tuple[Array, Array]:
    """The state after a chunk of C tokens and the outputs; C is a power of two times `_BASE`."""
    k, q = here.keys, here.queries
    gamma, ratio, left = _decays(here)
    lower = here.rate[:, None] * ratio * jnp.tril(product(k, k.T), -1)
    added = _solution(lower, here.free - here.rate[:, None] * gamma * product(k, state.T))
    outputs = gamma * product(q, state.T) + product(ratio * jnp.tril(product(q, k.T)), added)
    return gamma[-1] * state + product((left * added).T, k), outputs


@jax.custom_vjp
def _solution(lower: Float[Array, "C C"], right: Float[Array, "C dv"]) -> Float[Array, "C dv"]:
    """The A with (I + `lower`) A = `right`; its backward pass uses the same inverse."""
    return _forward(lower, right)[0]


def _forward(lower: Array, right: Array) -> tuple[Array, tuple[Array, Array]]:
    inverse = inverse_of(lower)
    added = product(inverse, right)
    return added, (inverse, added)


def _backward(kept: tuple[Array, Array], given: Array) -> tuple[Array, Array]:
    inverse, added = kept
    right = product(inverse.T, given)
    return -product(right, added.T), right


_solution.defvjp(_forward, _backward)


def _decays(here: Tokens) -> tuple[Array, Array, Array]:
    """gamma, Gamma and its last row: products, not quotients, so that `keep` may be 0."""
    if here.keep is None:
        one = jnp.ones((1, 1), here.rate.dtype)
        return one, one, one
    keep, n = here.keep, len(here.keep)
    later = jnp.tril(jnp.ones((n, n), bool), -1)
    ratio = jnp.tril(jnp.cumprod(jnp.where(later, keep[:, None], 1.0), 0))
    return jnp.cumprod(keep)[:, None], ratio, ratio[-1][:, None]


def inverse_of(lower: Float[Array, "... C C"]) -> Float[Array, "... C C"]:
    """The inverse of I + `lower`, which is zero on and above the diagonal."""
    n = lower.shape[-1]
    if n <= _BASE:
        one = jnp.broadcast_to(jnp.eye(n, dtype=lower.dtype), lower.shape)
        return lax.linalg.triangular_solve(
            lower, one, left_side=True, lower=True, unit_diagonal=True
        )
    half = n // 2
    ends = jnp.stack([lower[..., :half, :half], lower[..., half:, half:]], -3)
    both = inverse_of(ends)
    first, second = both[..., 0, :, :], both[..., 1, :, :]
    corner = -product(second, product(lower[..., half:, :half], first))
    top = jnp.concatenate([first, jnp.zeros_like(first)], -1)
    return jnp.concatenate([top, jnp.concatenate([corner, second], -1)], -2)


product = functools.partial(jnp.matmul, precision=lax.Precision.HIGHEST)
