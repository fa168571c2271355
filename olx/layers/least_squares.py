r"""Chunks of tokens by matrix products, for learners that keep a least squares solution.

The learner keeps $W$ and a root of $P = A^{-1} = s S S^\top$ (`olx.second_order.rank_one`). After
token $t$, with $\lambda_t$ its forgetting factor, $h_t$ its weight and $\gamma_t = \lambda_1 \cdots
\lambda_t$, $A_t = \gamma_t (A_0 + \sum_{s \le t} \frac{h_s}{\gamma_s} k_s k_s^\top)$. Let
$D = \mathrm{diag}(h / \gamma)$, $\Phi = D^{1/2} K s^{1/2} S$ and $L L^\top = I + \Phi \Phi^\top$
with $L$ lower triangular. Its first $t$ rows and columns are the root for the first $t$ tokens, so
one root serves all of them: with

$$Y = L^{-1} D^{1/2} (V - K W_0^\top), \qquad Z = L^{-1} \Phi\, s^{1/2} S^\top Q^\top,$$

the formula of Woodbury says, for a query $q_t$ after token $t$,

$$W_t q_t = W_0 q_t + \sum_{s \le t} Z_{st} Y_s, \qquad
  q_t^\top P_t q_t = \frac1{\gamma_t} \Big( q_t^\top P_0 q_t - \sum_{s \le t} Z_{st}^2 \Big).$$

The root after the chunk is $S (I - \Phi^\top L^{-\top} (I + L)^{-1} \Phi) / \gamma_n^{1/2}$. With
one token this is the update of the learner itself. $L$ comes from an orthogonal factorization of
$(\Phi, I)^\top$, so it is as exact as a root can be. The rows of $L$ grow with
$1 / \gamma^{1/2}$, so digits are lost where a chunk forgets nearly everything: in single precision
about one digit of the plain rounds with factors of 0.65, and where a chunk keeps less than
$10^{-38}$ the outputs are NaN.

Von Oswald et al., Uncovering mesa-optimization algorithms in Transformers, arXiv:2309.05858, 2023,
for the layer; Andrews, A Square Root Formulation of the Kalman Covariance Equations, 1968, for the
root after several rows.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from olx import _numeric as safe
from olx.layers.delta import inverse_of, product
from olx.second_order.rank_one import RankOneState, folded_state, is_due

CHUNK = 8  # longer ones lose digits where the learner forgets fast


class Tokens(NamedTuple):
    """What the tokens of a chunk teach."""

    keys: Float[Array, "C dk"]
    values: Float[Array, "C dv"]
    queries: Float[Array, "C dk"]
    weights: Float[Array, " C"]
    forget: Float[Array, " C"]


def play_chunk(start: RankOneState, here: Tokens) -> tuple[RankOneState, tuple[Array, Array]]:
    """The state after a chunk of C tokens, the margins W_t q_t, and the spreads q_t' P_t q_t."""
    w, root, c = start.w, jnp.sqrt(start.scale) * start.root, here.weights
    gamma = jnp.cumprod(here.forget)
    size = safe.sqrt(c / gamma)[:, None]
    phi = size * product(here.keys, root)
    lower = _root_of(phi)
    inverse = _inverse(lower)
    residuals = product(inverse, size * (here.values - product(here.keys, w.T)))
    queries = product(here.queries, root)
    mixed = jnp.triu(product(inverse, product(phi, queries.T)))
    margins = product(here.queries, w.T) + product(mixed.T, residuals)
    spreads = (jnp.sum(queries**2, 1) - jnp.sum(mixed**2, 0)) / gamma
    along = product(inverse, phi)
    w = w + product(residuals.T, product(along, root.T))
    step = product(_inverse(lower + jnp.eye(len(lower), dtype=lower.dtype)), phi)
    root = start.root - product(product(start.root, along.T), step)
    counts = jnp.sum(c != 0, dtype=jnp.uint32)
    clock = dataclasses.replace(start.clock, rounds=start.clock.rounds + counts)
    state = RankOneState(w, root, start.scale / gamma[-1], clock)
    due, folded = is_due(None, state), folded_state(None, state, None)
    state = jax.tree.map(lambda new, old: jnp.where(due, new, old), folded, state)
    return state, (margins, spreads)


def _root_of(phi: Float[Array, "C dk"]) -> Float[Array, "C C"]:
    """The lower triangular L with a positive diagonal and L L' = I + phi phi'."""
    stacked = jnp.concatenate([phi.T, jnp.eye(len(phi), dtype=phi.dtype)])
    upper = jnp.linalg.qr(stacked)[1]
    signs = jnp.where(jnp.diagonal(upper) < 0, -1.0, 1.0).astype(phi.dtype)
    return (upper * signs[:, None]).T


def _inverse(lower: Float[Array, "C C"]) -> Float[Array, "C C"]:
    diagonal = jnp.diagonal(lower)
    return inverse_of(jnp.tril(lower, -1) / diagonal[:, None]) / diagonal
