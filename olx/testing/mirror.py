"""The conformance kit for mirror maps: the facts of convex duality, checked on one of them."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import PyTree
from optax import tree

from olx.convex.base import MirrorMap
from olx.testing.report import close, fail


def check_mirror(mirror: MirrorMap, theta: PyTree, *, key: jax.Array | None = None) -> None:
    r"""Raise an AssertionError that names the fact of duality which `mirror` breaks near `theta`.

    Decisions lie in the domain; $\psi(w) + \psi^*(\theta) \ge \langle\theta, w\rangle$, with
    equality at the decision of $\theta$; both functions are convex; the derivative of the decision
    is symmetric and positive semidefinite, and agrees with finite differences; the dual of a
    decision leads back to it; a stated norm pairs with its dual and $\psi$ is as strongly convex
    as stated; a map that says it is separable is.

    >>> import jax.numpy as jnp, olx
    >>> olx.testing.check_mirror(olx.convex.negative_entropy(), jnp.array([0.5, -1.0, 2.0]))
    """
    key = jax.random.key(0) if key is None else key
    flat, unravel = ravel_pytree(theta)
    noise = jax.random.normal(key, (6, flat.size), flat.dtype)
    thetas = jax.vmap(unravel)(flat + noise * jnp.std(flat) + 0.1 * noise)
    loose = 1e-9 if flat.dtype == jnp.float64 else 2e-4
    ws = jax.jit(jax.vmap(mirror.to_primal))(thetas)
    if not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(ws)):
        fail("a decision is not finite")
    check_domain(mirror, ws)
    check_duality(mirror, thetas, ws, loose)
    check_convexity(mirror, thetas, ws, loose)
    check_derivative(mirror, unravel, flat)
    check_round_trip(mirror, thetas, ws, loose)
    check_geometry(mirror, thetas, ws, loose)


def check_domain(mirror: MirrorMap, ws: PyTree) -> None:
    """Decisions lie in the domain."""
    if mirror.contains is not None and not np.all(jax.vmap(mirror.contains)(ws)):
        fail("a decision lies outside the domain")


def check_duality(mirror: MirrorMap, thetas: PyTree, ws: PyTree, loose: float) -> None:
    """Fenchel-Young, with equality at the decision."""
    gaps = jax.vmap(lambda w: jax.vmap(lambda theta: mirror.gap(w, theta))(thetas))(ws)
    size = 1 + np.max(np.abs(jax.vmap(mirror.conjugate)(thetas)))
    if np.min(gaps) < -loose * size:
        fail(f"the Fenchel-Young gap is negative: {np.min(gaps)}")
    if np.max(np.abs(np.diagonal(gaps))) > loose * size:
        fail(
            "the decision is not where the conjugate is attained: gap "
            f"{np.max(np.abs(np.diagonal(gaps)))}"
        )


def check_convexity(mirror: MirrorMap, thetas: PyTree, ws: PyTree, loose: float) -> None:
    """Both functions lie below their chords."""
    for name, f, points in (
        ("potential", mirror.potential, ws),
        ("conjugate", mirror.conjugate, thetas),
    ):
        other = jax.tree.map(lambda leaf: jnp.roll(leaf, 1, axis=0), points)
        middle = jax.tree.map(lambda a, b: (a + b) / 2, points, other)
        ends = jax.vmap(f)(points), jax.vmap(f)(other)
        rise = jax.vmap(f)(middle) - (ends[0] + ends[1]) / 2
        if np.max(rise) > loose * (1 + np.max(np.abs(ends[0]))):
            fail(f"the {name} is not convex: {np.max(rise)} above a chord")


def check_derivative(mirror: MirrorMap, unravel, flat: jax.Array) -> None:
    """The derivative of the decision is symmetric, positive and right."""
    decide = lambda flat: ravel_pytree(mirror.to_primal(unravel(flat)))[0]
    slope = np.asarray(jax.jit(jax.jacfwd(decide))(flat))
    size = 1e-12 + np.max(np.abs(slope))
    loose = 1e-6 if flat.dtype == jnp.float64 else 1e-2
    if not np.all(np.isfinite(slope)):
        fail("the derivative of the decision is not finite")
    if np.max(np.abs(slope - slope.T)) > loose * size:
        fail("the derivative of the decision is not symmetric")
    if np.min(np.linalg.eigvalsh((slope + slope.T) / 2)) < -loose * size:
        fail("the derivative of the decision is not positive semidefinite")
    if mirror.separable and np.max(np.abs(slope - np.diag(np.diag(slope)))) > loose * size:
        fail("the map says it is separable, but its coordinates meet")
    if flat.dtype == jnp.float64:
        step = 1e-6 * jnp.eye(flat.size)
        ahead, behind = jax.vmap(decide)(flat + step), jax.vmap(decide)(flat - step)
        difference = np.asarray((ahead - behind) / 2e-6).T
        if np.max(np.abs(difference - slope)) > 1e-5 * (1 + size):
            fail("the derivative of the decision disagrees with finite differences")


def check_round_trip(mirror: MirrorMap, thetas: PyTree, ws: PyTree, loose: float) -> None:
    """The dual of a decision leads back to it."""
    back = jax.vmap(lambda w: mirror.to_primal(mirror.to_dual(w)))(ws)
    close("the dual of a decision does not lead back to it", back, ws, 10 * loose)
    if mirror.retraction is not None:
        held = jax.vmap(lambda theta: mirror.to_primal(mirror.retract(theta)))(thetas)
        close("the retraction changes the decision", held, ws, 10 * loose)


def check_geometry(mirror: MirrorMap, thetas: PyTree, ws: PyTree, loose: float) -> None:
    """A stated norm pairs with its dual, and the potential is as strongly convex as stated."""
    if mirror.norm is None or mirror.modulus is None:
        return
    norm, modulus = mirror.norm, mirror.modulus
    other = jax.tree.map(lambda leaf: jnp.roll(leaf, 1, axis=0), ws)
    pair = jax.vmap(lambda w, theta: jnp.abs(tree.vdot(w, theta)))(ws, thetas)
    bound = jax.vmap(norm.primal)(ws) * jax.vmap(norm.dual)(thetas)
    if np.max(pair - bound) > loose * (1 + np.max(bound)):
        fail("the norm and its dual break Hoelder's inequality")
    apart = jax.vmap(lambda u, w: norm.primal(tree.sub(u, w)))(other, ws)
    bregman = jax.vmap(mirror.bregman)(other, ws)
    if np.min(bregman - modulus * apart**2 / 2) < -loose * (1 + np.max(np.abs(bregman))):
        fail("the potential is less strongly convex than its modulus says")
