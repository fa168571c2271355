r"""Eigenvectors of a sketch and some new rows, from inner products alone.

$V$ has orthonormal rows with energies $e$, so it stands for $V^\top \text{diag}(e) V$. For new rows
$G$ with $M = G V^\top$, let $G - M V = L Q$ with orthonormal rows $Q$; $L$ is a root of
$G G^\top - M M^\top$. Then

$$V^\top \text{diag}(e) V + G^\top G = [V; Q]^\top C\, [V; Q], \qquad
  C = \text{diag}(e, 0) + [M\; L]^\top [M\; L],$$

and the eigenvectors of the left side are those of the small matrix $C$ times $[V; Q]$. Frequent
directions keep the first $k$ and subtract eigenvalue number $k + 1$ from all.

Luo, Optimal and Adaptive Online Learning, 2016, algorithms 13, 17 and 20.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from olx import _safe as safe


class Shrunk(NamedTuple):
    """The first k directions, which are turn V + take G, less eigenvalue number k + 1."""

    energy: Float[Array, " k"]
    turn: Float[Array, "k k"]  # rows of 0 for directions without energy
    take: Float[Array, "k n"]
    lost: Float[Array, ""]  # the trace of what was subtracted
    dropped: Float[Array, " k+n"]  # the eigenvector number k + 1 in the basis [V; Q]
    spread: Float[Array, "n k+n"]  # [M L]


def shrunk(
    energy: Float[Array, " k"], cross: Float[Array, "n k"], gram: Float[Array, "n n"]
) -> Shrunk:
    r"""energy: of the old directions. cross: $G V^\top$. gram: $G G^\top$.

    A part of $G$ outside $V$ whose square is below eps$^{1/2}$ of the largest row counts as 0: its
    direction could not be known to more than half of the digits.
    """
    k, eps = len(energy), float(jnp.finfo(energy.dtype).eps)
    squares, axes = _residual(gram - cross @ cross.T)
    legal = squares > eps**0.5 * jnp.max(jnp.diagonal(gram))
    lengths = jnp.where(legal, safe.sqrt(squares), 0.0)
    spread = jnp.concatenate([cross, axes * lengths], axis=1)
    old = jnp.concatenate([energy, jnp.zeros_like(lengths)])
    values, vectors = eigh(jnp.diag(old) + spread.T @ spread)
    values, vectors = jnp.maximum(values[::-1], 0.0), vectors[:, ::-1]
    left = values[:k] - values[k]
    alive = left > 8 * len(values) * eps * values[0]
    kept = jnp.where(alive[:, None], vectors[:, :k].T, 0.0)
    take = kept[:, k:] @ (safe.divide(1.0, lengths)[:, None] * axes.T)
    return Shrunk(
        jnp.where(alive, left, 0.0),
        kept[:, :k] - take @ cross,
        take,
        k * values[k] + jnp.sum(values[k:]),
        vectors[:, k],
        spread,
    )


def gram_after(
    gram: Float[Array, "m m"], delta: Float[Array, " m"], zg: Float[Array, " m"], gg: Array
) -> Float[Array, "m m"]:
    r"""The Gram matrix $Z Z^\top$ after $Z \leftarrow Z + \delta g^\top$."""
    change = jnp.multiply.outer(delta, zg + gg / 2 * delta)
    return gram + change + change.T


def _residual(gram: Array) -> tuple[Array, Array]:
    return (gram[0], jnp.ones_like(gram)) if len(gram) == 1 else eigh(gram)


@jax.custom_jvp
def eigh(a: Float[Array, "n n"]) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
    """Eigenvalues, the smallest first, and eigenvectors as columns, with finite derivatives.

    Eigenvectors of equal eigenvalues do not turn into each other in the derivative. Nothing that
    depends only on the sum of squares sees this.
    """
    values, vectors = jnp.linalg.eigh(a)
    return values, vectors


@eigh.defjvp
def _eigh_jvp(primals, tangents):
    values, vectors = eigh(*primals)
    change = vectors.T @ tangents[0] @ vectors
    gap = values[None, :] - values[:, None]
    least = len(values) * float(jnp.finfo(values.dtype).eps) * jnp.max(jnp.abs(values))
    turn = safe.divide(change, gap, 0.0, jnp.abs(gap) > least)
    return (values, vectors), (jnp.diagonal(change), vectors @ turn)
