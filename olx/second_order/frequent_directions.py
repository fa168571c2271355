r"""Frequent directions: the leading directions of the sketched vectors, with what is lost known.

The sketch keeps $k = m - 1$ orthonormal rows $V$ with energies $e$. A round adds $\hat g \hat
g^\top$, takes the eigenvalues $\lambda_1 \ge \dots \ge \lambda_m$ of the sum, and keeps the first
$k$ directions with the energies $\lambda_i - \rho$, $\rho = \lambda_m$. So

$$0 \preceq \sum_{s \le t} \hat g_s \hat g_s^\top - S_t^\top S_t \preceq \sum_{s \le t} \rho_s\, I,
  \qquad \sum_{s \le t} \rho_s \le \min_{j < m} \frac{\Omega_j}{m - j},$$

where $\Omega_j$ is the sum of all but the $j$ largest eigenvalues of $\sum_s \hat g_s \hat
g_s^\top$. If its rank is below $m$, nothing is lost: the learner is the full Newton step.

The new directions are $V' = T V + n \hat g^\top$ with a small matrix $T$. With $V = F Z$ this is
$Z \leftarrow Z + \delta \hat g^\top$, $F \leftarrow T F$ for $\delta = F^{-1} T^{-1} n$. If the
eigenvector that is dropped is $(a, b)$ in the basis of the old directions and the residual of
$\hat g$, of length $r$, then $T^{-1} n = -a / p$ with $p = \langle a, V \hat g\rangle + b r$, and
$\det T = \pm p / r$. If $p / r$ is small, an old direction leaves almost whole: the new row then
goes to a spare row of $Z$, and the coordinates change: $Z \leftarrow V'$. They also change if a
direction loses all its energy, if $F$ is badly conditioned, or if $Z$ is large: $|\det T| \le 1$,
so $F$ shrinks and $Z$ grows, while the weights $\bar u + Z^\top b$ keep the $b$ of earlier rounds,
and their two parts would cancel. One direction alone is never badly conditioned. (Algorithm 19 of
the thesis inverts $T$ also where it has no inverse.)

Regret: `olx.second_order.directions_regret`. An energy counts as at most about 2,900 alpha in
float32; see `olx.second_order._spectral`.

Luo, Optimal and Adaptive Online Learning, 2016, algorithms 13 and 18 to 20, theorem 18; Ghashami,
Liberty, Phillips, Woodruff, Frequent Directions: Simple and Deterministic Matrix Sketching, 2016.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from olx import _check as check
from olx import _safe as safe
from olx._pytree import pytree, static
from olx.core import Scalar
from olx.second_order import _spectral
from olx.second_order._directions import gram_after, shrunk
from olx.second_order.directions_regret import THEOREMS
from olx.second_order.sketch import PERIOD, Sketch, dtype_of, empty_rows, orthonormal

_LEAST = 1 / 32  # of |det T|; below, the new row goes to the spare row


@pytree
class DirectionsHparams:
    size: int = static()


class Directions(NamedTuple):
    energy: Float[Array, " k"]
    frame: Float[Array, "k m"]  # F; the last row of Z is the spare one
    gram: Float[Array, "m m"]  # of the rows of Z
    lost: Float[Array, ""]  # m times the sum of rho
    age: Int[Array, ""]  # rounds since the coordinates changed
    due: Bool[Array, ""]  # whether they must change now

    @property
    def total(self) -> Float[Array, ""]:
        """The trace of S S'."""
        return jnp.sum(self.energy)

    def is_whole(self, alpha: Scalar) -> Bool[Array, ""]:
        """Whether the step uses all of S."""
        return _spectral.is_whole(alpha, self.energy)


def frequent_directions(size: int) -> Sketch:
    """The sketch of frequent directions that keeps `size` - 1 of them.

    size: $m$, at least 2. Each round computes the eigenvectors of a matrix of this size; see
        `epoch_frequent_directions` for one matrix in `size` rounds.

    >>> import jax, jax.numpy as jnp, olx
    >>> from olx.second_order import sketched_newton
    >>> rounds, u = olx.streams.linear_regression(jax.random.key(0), rounds=100, features=3)
    >>> learner = sketched_newton(frequent_directions(4), 10.0, curvature=0.1)
    >>> run = olx.rollout(learner, olx.losses.squared, rounds, jnp.zeros(3))
    >>> bool(run.state.small.lost < 1e-3)  # three directions are enough
    True
    """
    check_size("frequent_directions", size)
    hparams = DirectionsHparams(size)
    parts = init, update, solve, energy, is_due, basis, rebased
    return Sketch(hparams, size, *parts, THEOREMS)


def init(hp: DirectionsHparams, alpha: Scalar, params: PyTree) -> tuple[Directions, PyTree]:
    m, dtype = hp.size, dtype_of(params)
    zeros = lambda *shape: jnp.zeros(shape, dtype)
    frame = jnp.eye(m - 1, m, dtype=dtype)
    small = Directions(
        zeros(m - 1), frame, zeros(m, m), zeros(), jnp.zeros((), jnp.int32), jnp.zeros((), bool)
    )
    return small, empty_rows(m, params)


def update(
    hp: DirectionsHparams, alpha: Scalar, small: Directions, zg: Array, gg: Array
) -> tuple[Directions, Array]:
    k = hp.size - 1
    new = shrunk(small.energy, (small.frame @ zg)[None], gg.reshape(1, 1))
    length, along = new.spread[0, k], jnp.vdot(new.spread[0], new.dropped)
    turns = jnp.abs(along) >= _LEAST * length  # true if the row is inside the old directions
    inside = safe.divide(-new.dropped[:k], along, 0.0, turns & (length > 0))
    spare = jnp.zeros_like(zg).at[k].set(1.0)
    delta = jnp.where(turns, small.gram @ (inside @ small.frame), spare)  # F^(-1) is K F'
    frame = new.turn @ small.frame + jnp.where(turns, 0.0, 1.0) * new.take * spare
    gram = gram_after(small.gram, delta, zg, gg)
    frame = orthonormal(frame, gram)  # removes errors of F K F' = I
    died = jnp.sum(new.energy > 0) < jnp.sum(small.energy > 0)
    condition = jnp.maximum(jnp.sum(frame**2), 1.0) * jnp.trace(gram)
    limit = hp.size**2 * float(jnp.finfo(gg.dtype).eps) ** -0.25
    due = ~turns | died | (condition > limit) | (small.age + 1 >= PERIOD)
    return Directions(new.energy, frame, gram, small.lost + new.lost, small.age + 1, due), delta


def solve(alpha: Scalar, small: Directions, zx: Array, xx: Array) -> tuple[Array, Array]:
    return _spectral.solve(alpha, small.frame, small.energy, zx, xx)


def energy(alpha: Scalar, small: Directions, zv: Array) -> Array:
    return _spectral.square(alpha, small.frame, small.energy, zv)


def is_due(small: Directions) -> Array:
    return small.due


def basis(small: Directions, gram: Array) -> Array:
    return jnp.pad(orthonormal(small.frame, gram), ((0, 1), (0, 0)))


def rebased(small: Directions) -> Directions:
    frame = jnp.eye(*small.frame.shape, dtype=small.energy.dtype)
    alive = (small.energy > 0).astype(small.energy.dtype)
    return Directions(
        small.energy,
        frame,
        jnp.diag(jnp.pad(alive, (0, 1))),
        small.lost,
        jnp.zeros_like(small.age),
        jnp.zeros((), bool),
    )


def check_size(owner: str, size: int) -> None:
    check.size(owner, "size", size)
    if size < 2:
        raise ValueError(f"{owner}: `size` must be at least 2, got {size}: one row is not kept.")
