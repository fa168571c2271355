r"""The account of eager mirror descent: how much closer to $u$ the decisions came.

$$\sum_{s \le t} \frac{B_\psi(u, w_s) - B_\psi(u, w_{s+1})}{\eta_s},$$

with the decisions that were played; only the last $w_{t+1}$ is where the update leads.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx.certificate import Certificate
from olx.core import Scalar
from olx.frameworks.master import constants
from olx.mirrors.base import MirrorMap


class Account(NamedTuple):
    """What the rounds so far have added to both sides."""

    left: Float[Array, ""]
    settled: Float[Array, ""]  # the sum over all rounds but the last
    near: Float[Array, ""]  # B(u, w_t)
    eta: Float[Array, ""]
    last: Float[Array, ""]  # the term of the last round
    drift: Float[Array, ""]
    published: Float[Array, ""]  # the drift with norms; infinite where they are not known
    size: Float[Array, ""]


def open_account(f: MirrorMap, dual: PyTree, u: PyTree) -> Account:
    """The account before the first round, from the `dual` of the first decision."""
    near, _ = divergence(f, check.comparator("certify", u, dual), dual)
    zero = jnp.zeros_like(near)
    return Account(zero, zero, near, jnp.ones_like(near), zero, zero, zero, zero)


def add_round(
    account: Account, eta: Scalar, near: Array, far: Array, left, drift, energy, size
) -> Account:
    """Add a round.

    near, far: $B(u, w_t)$ of the decision played and $B(u, w_{t+1})$ of where the update leads.
    left, drift, energy, size: what the round adds, times `eta`.
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
    r"""$B_\psi(u, w)$ for the $w$ of a `dual` $\nabla\psi(w)$, and the size of what it is made of.

    By the dual and not by $w$: where a weight of $w$ is too small for a float, its dual is not.
    """
    size = lambda tree: jax.tree.map(jnp.abs, tree)
    parts = f.potential(u), f.conjugate(dual), jnp.asarray(tree.vdot(dual, u))
    along = jnp.asarray(tree.vdot(size(dual), size(u)))
    size_of = jnp.abs(parts[0]) + jnp.abs(parts[1]) + along + 2 * constants(f, u)
    return parts[0] + parts[1] - parts[2], size_of
