r"""The account of eager mirror descent: how much closer to $u$ the decisions have come.

$$\sum_{s \le t} \frac{B_\psi(u, w_s) - B_\psi(u, w_{s+1})}{\eta_s}.$$

$w_1, \dots, w_t$ are the decisions played; $w_{t+1}$ is computed from the last update.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx.core import Scalar
from olx.frameworks.master import constants
from olx.mirrors.base import MirrorMap
from olx.theorem import Certificate


class Account(NamedTuple):
    """Sums over the rounds so far."""

    left: Float[Array, ""]
    settled: Float[Array, ""]  # the sum above over all rounds but the last
    near: Float[Array, ""]  # B(u, w_t)
    eta: Float[Array, ""]
    last: Float[Array, ""]  # the term of the last round
    drift: Float[Array, ""]
    published: Float[Array, ""]  # the drift bounded by norms; infinite if the map states no norm
    size: Float[Array, ""]  # the sum of absolute values, for the rounding error


def open_account(f: MirrorMap, dual: PyTree, u: PyTree) -> Account:
    """The account before the first round, from the `dual` of the first decision."""
    near, _ = divergence(f, check.comparator(u, dual), dual)
    zero = jnp.zeros_like(near)
    return Account(zero, zero, near, jnp.ones_like(near), zero, zero, zero, zero)


def add_round(
    account: Account, eta: Scalar, near: Array, far: Array, left, drift, energy, size
) -> Account:
    """Add a round.

    near, far: $B(u, w_t)$ of the decision played, and $B(u, w_{t+1})$ after the update.
    left, drift, energy, size: the terms of the round, times `eta`.
    """
    return Account(
        account.left + left / eta,
        account.settled + (account.near - near) / account.eta,
        near,
        eta * jnp.ones_like(near),
        (near - far) / eta,
        account.drift + drift / eta,
        jnp.full_like(near, jnp.inf) if energy is None else account.published + energy / eta,
        account.size + size / eta,
    )


def both_sides(account: Account) -> Certificate:
    """Both sides, without the condition on the domain."""
    moved = account.settled + account.last
    right, published = moved + account.drift, moved + account.published
    return Certificate(account.left, right, account.size, published)


def divergence(f: MirrorMap, u: PyTree, dual: PyTree) -> tuple[Array, Array]:
    r"""$B_\psi(u, w)$ from the `dual` $\nabla\psi(w)$, and the size of its terms (for rounding).

    The dual is used because a weight in $w$ may underflow to 0 while its dual is still finite.
    """
    size = lambda tree: jax.tree.map(jnp.abs, tree)
    parts = f.potential(u), f.conjugate(dual), jnp.asarray(tree.vdot(dual, u))
    along = jnp.asarray(tree.vdot(size(dual), size(u)))
    size_of = jnp.abs(parts[0]) + jnp.abs(parts[1]) + along + 2 * constants(f, u)
    return parts[0] + parts[1] - parts[2], size_of
