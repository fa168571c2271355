r"""Frequent directions in epochs: the eigenvectors are computed once in $m$ rounds.

The sketch has the rows $S = [e^{1/2} V; G]$: the $m - 1$ directions $V$ of `frequent_directions`,
and below them the vectors of this epoch as they came. After $m$ vectors the epoch ends: the
eigenvalues $\lambda_1 \ge \lambda_2 \ge \dots$ of $S^\top S$ are computed, the first $m - 1$
directions are kept with the energies $\lambda_i - \lambda_m$, and $G$ is empty again. The
coordinates change at the same time, at a cost of $O(m^2 d)$ per epoch. Between, the inverse of
$\alpha I + S S^\top$ is kept by its root, and a round costs $O(m^2)$ beside the products with the
row.

The trace that is lost is still at most $m\, \Omega_j / (m - j)$ for all $j < m$, but the sketch has
up to $2 m - 1$ rows, so the logarithm in the bound has the factor $2 m$.

The squared length of a row of $S$ counts as at most about 2,900 alpha in float32, of a direction as
of a vector of this epoch; see `olx.second_order.sketch`.

Luo, Optimal and Adaptive Online Learning, 2016, algorithms 16 and 17, theorem 19.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from olx import _numeric as safe
from olx._refusal import public
from olx.core import Scalar
from olx.second_order import sketch
from olx.second_order.frequent_directions import (
    THEOREMS,
    DirectionsHparams,
    check_size,
    gram_after,
    shrunk_directions,
)
from olx.second_order.rank_one import changed_root
from olx.second_order.sketch import Sketch, dtype_of, empty_rows, orthonormal


class Epoch(NamedTuple):
    """S is (root of the energies) * (frame Z), with energies of 1 for the vectors of this epoch."""

    energy: Float[Array, " k"]
    frame: Float[Array, "n n"]  # the identity, but for the moment between epochs
    gram: Float[Array, "n n"]  # of the rows of Z
    root: Float[Array, "n n"]  # Q Q' is the inverse of alpha I + S S'
    total: Float[Array, ""]  # the trace of S S'
    count: Int[Array, ""]  # the vectors of this epoch
    lost: Float[Array, ""]  # the trace that was subtracted so far

    def is_whole(self, alpha: Scalar) -> Bool[Array, ""]:
        """Whether the step uses all of S."""
        return sketch.is_whole(alpha, _squares(self))


@public
def epoch_frequent_directions(size: int) -> Sketch:
    """Frequent directions that are found once in `size` rounds, with 2 `size` - 1 rows.

    size: $m$, at least 2.

    >>> import jax, jax.numpy as jnp, olx
    >>> from olx.second_order import sketched_newton
    >>> rounds, u = olx.streams.linear_regression(jax.random.key(0), rounds=100, features=3)
    >>> learner = sketched_newton(epoch_frequent_directions(4), 10.0, curvature=0.1)
    >>> run = olx.rollout(learner, olx.losses.squared, rounds, jnp.zeros(3))
    >>> bool(run.state.small.lost < 1e-3)  # three directions are enough
    True
    """
    check_size(size)
    hparams = DirectionsHparams(size)
    parts = init, update, solve, energy, is_due, basis, rebased_state
    return Sketch(hparams, size, *parts, THEOREMS)


def init(hp: DirectionsHparams, alpha: Scalar, params: PyTree) -> tuple[Epoch, PyTree]:
    n, dtype = 2 * hp.size - 1, dtype_of(params)
    zero, eye = jnp.zeros((), dtype), jnp.eye(n, dtype=dtype)
    root = eye / jnp.sqrt(jnp.asarray(alpha, dtype))
    count = jnp.zeros((), jnp.int32)
    small = Epoch(jnp.zeros(hp.size - 1, dtype), eye, 0 * eye, root, zero, count, zero)
    return small, empty_rows(n, params)


def update(
    hp: DirectionsHparams, alpha: Scalar, small: Epoch, zg: Array, gg: Array
) -> tuple[Epoch, Array]:
    k = hp.size - 1
    delta = (jnp.arange(len(zg), dtype=jnp.int32) == k + small.count).astype(zg.dtype)
    share = sketch.share(gg, sketch.most(alpha, gg))
    along = safe.sqrt(share) * _scale(alpha, small) * zg
    after = Epoch(
        small.energy,
        small.frame,
        gram_after(small.gram, delta, zg, gg),
        changed_root(small.root, along + share * gg / 2 * delta, delta),
        small.total + gg,
        small.count + 1,
        small.lost,
    )
    end = lambda now: _end_of_epoch(alpha, now)
    return jax.lax.cond(is_due(after), end, lambda now: now, after), delta


def _end_of_epoch(alpha: Scalar, small: Epoch) -> Epoch:
    k = len(small.energy)
    new = shrunk_directions(small.energy, small.gram[k:, :k], small.gram[k:, k:])
    energies = jnp.zeros_like(small.gram[0]).at[:k].set(new.energy)
    frame = jnp.zeros_like(small.gram).at[:k].set(jnp.concatenate([new.turn, new.take], axis=1))
    return Epoch(
        new.energy,
        frame,
        small.gram,
        jnp.diag(1 / jnp.sqrt(alpha + sketch.counted_energies(alpha, energies))),
        jnp.sum(new.energy),
        small.count,
        small.lost + new.lost,
    )


def solve(alpha: Scalar, small: Epoch, zx: Array, xx: Array) -> tuple[Array, Array]:
    scale = _scale(alpha, small)
    along = (scale * (small.frame @ zx)) @ small.root
    least = alpha / (alpha + small.total)  # no eigenvalue of S'S is larger than the trace
    pulled = (scale * (small.root @ along)) @ small.frame
    return pulled, jnp.maximum(xx - jnp.vdot(along, along), least * xx)


def energy(alpha: Scalar, small: Epoch, zv: Array) -> Array:
    return jnp.sum((_scale(alpha, small) * (small.frame @ zv)) ** 2)


def is_due(small: Epoch) -> Array:
    return small.count > len(small.energy)


def basis(small: Epoch, gram: Array) -> Array:
    return orthonormal(small.frame, gram)


def rebased_state(small: Epoch) -> Epoch:
    eye = jnp.eye(len(small.gram), dtype=small.gram.dtype)
    alive = jnp.zeros_like(small.gram[0]).at[: len(small.energy)].set(jnp.sign(small.energy))
    return small._replace(frame=eye, gram=jnp.diag(alive), count=jnp.zeros_like(small.count))


def _scale(alpha: Scalar, small: Epoch) -> Array:
    """The roots of the energies that count, then of the share of each vector that counts."""
    squares = _squares(small)
    most = sketch.most(alpha, squares)
    energy, share = jnp.minimum(squares, most), sketch.share(squares, most)
    return safe.sqrt(jnp.where(_is_direction(small), energy, share))


def _squares(small: Epoch) -> Array:
    """The squared lengths of the rows of S: the energies, then those of the vectors."""
    energy = jnp.zeros_like(small.gram[0]).at[: len(small.energy)].set(small.energy)
    return jnp.where(_is_direction(small), energy, jnp.diagonal(small.gram))


def _is_direction(small: Epoch) -> Array:
    return jnp.arange(len(small.gram), dtype=jnp.int32) < len(small.energy)
