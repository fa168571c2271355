r"""The master inequality: one bound for every mirror descent and follow-the-regularized-leader.

Play $w_t = \nabla f_t^*(\vartheta_t)$, observe any $z_t$, keep $\theta_{t+1} = \theta_t + z_t$. The
played dual $\vartheta_t$ is $\theta_t$, or $\theta_t$ plus a hint. For all $u$ in the domain, with
$f_0^* = 0$,

$$\sum_{s \le t} \langle z_s, u - w_s \rangle \le f_t(u) - \langle\theta_1, u\rangle +
  \sum_{s \le t} \Big( B_{f_s^*}(\theta_{s+1}, \vartheta_s) + f_s^*(\theta_s) -
  f_{s-1}^*(\theta_s) \Big).$$

Proof: $f_s^*(\theta_{s+1}) = f_s^*(\vartheta_s) + \langle\theta_{s+1} - \vartheta_s, w_s\rangle +
B$ and $f_s^*(\vartheta_s) \le f_s^*(\theta_s) + \langle\vartheta_s - \theta_s, w_s\rangle$; add up,
and close with $f_t^*(\theta_{t+1}) \ge \langle\theta_{t+1}, u\rangle - f_t(u)$.

With $f_s$ $\beta_s$-strongly convex, $B \le \|\theta_{s+1} - \vartheta_s\|_{s,*}^2 / (2\beta_s)$,
which is how the paper prints it.

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, lemma 1.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx.certificate import DOMAIN, Certificate
from olx.core import Scalar
from olx.mirrors.base import MirrorMap


class Game(NamedTuple):
    """A run in the words of the lemma, a leading axis of length T on every leaf."""

    seen: PyTree  # what determines f_t, before it is played
    theta: PyTree
    played: PyTree
    z: PyTree
    w: PyTree


def master_inequality(
    at: Callable[[PyTree], MirrorMap], game: Game, u: PyTree, eta: Scalar
) -> Certificate:
    """Both sides of the lemma divided by `eta`, after every round."""
    u = check.comparator("certify", u, jax.tree.map(lambda leaf: leaf[0], game.w))
    before = jax.tree.map(lambda leaf: jnp.concatenate([leaf[:1], leaf[:-1]]), game.seen)
    first = jnp.arange(jax.tree.leaves(game.theta)[0].shape[0]) == 0

    def one(game: Game, before: PyTree, first):
        f, past = at(game.seen), at(before)
        after = tree.add(game.theta, game.z)
        step = tree.sub(after, game.played)
        here, there = f.conjugate(game.played), f.conjugate(after)
        along = tree.vdot(step, game.w)
        change = f.conjugate(game.theta) - jnp.where(first, 0.0, past.conjugate(game.theta))
        left = tree.vdot(game.z, tree.sub(u, game.w))
        size = jnp.abs(left) + 2 * (jnp.abs(here) + jnp.abs(there) + jnp.abs(along))
        size += 4 * constants(f, u)  # of the four conjugates of a round
        return (
            left,
            f.potential(u),
            f.outside(u) == 0,
            there - here - along,
            change,
            f.energy(step),
            size,
        )

    left, paid, inside, drift, change, norms, size = jax.vmap(one)(game, before, first)
    start = tree.vdot(jax.tree.map(lambda leaf: leaf[0], game.theta), u)
    right = lambda drift: (paid - start + jnp.cumsum(drift + change)) / eta
    return Certificate(
        jnp.cumsum(left) / eta,
        right(drift),
        (jnp.where(jnp.isfinite(paid), jnp.abs(paid), 0.0) + jnp.abs(start) + jnp.cumsum(size))
        / eta,
        None if norms is None else right(norms),
        theorem="Orabona, Crammer, Cesa-Bianchi 2015, lemma 1",
    ).given(DOMAIN, inside)


def approached(
    near: Float[Array, " T"], far: Float[Array, " T"], eta: Float[Array, " T"]
) -> Float[Array, " T"]:
    r"""$\sum_{s \le t} (B(u, w_s) - B(u, w_{s+1})) / \eta_s$, with the decisions that were played.

    near: $B(u, w_s)$ of the decisions played.
    far: $B(u, w_{s+1})$ of where the update leads, which the last round needs.
    """
    played = (near - jnp.concatenate([near[1:], far[-1:]])) / eta
    return jnp.cumsum(played) - played + (near - far) / eta


def constants(f: MirrorMap, u: PyTree) -> Array:
    """The size of the constants that the potential and its conjugate subtract."""
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(u)))
    return zero if f.offset is None else f.offset(u)


def divergence(f: MirrorMap, u: PyTree, dual: PyTree) -> tuple[Array, Array]:
    r"""$B_\psi(u, w)$ for the $w$ of a `dual` $\nabla\psi(w)$, and the size of what it is made of.

    By the dual and not by $w$: where a weight of $w$ is too small for a float, its dual is not.
    """
    size = lambda tree: jax.tree.map(jnp.abs, tree)
    parts = f.potential(u), f.conjugate(dual), jnp.asarray(tree.vdot(dual, u))
    along = jnp.asarray(tree.vdot(size(dual), size(u)))
    size_of = jnp.abs(parts[0]) + jnp.abs(parts[1]) + along + 2 * constants(f, u)
    return parts[0] + parts[1] - parts[2], size_of
