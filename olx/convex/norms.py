"""Norms on pytrees, each with its dual."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from optax import tree

from olx.convex.base import Norm
from olx.core import Scalar


def l2() -> Norm:
    return Norm(Partial(_l2), Partial(_l2))


def l1() -> Norm:
    return Norm(Partial(_l1), Partial(_linf))


def linf() -> Norm:
    return Norm(Partial(_linf), Partial(_l1))


def lp(p: Scalar) -> Norm:
    """The p-norm for 1 < p < infinity, its dual the norm of p / (p - 1)."""
    return Norm(Partial(power, p), Partial(power, p / (p - 1)))


def power(p, x):
    r"""$(\sum_i |x_i|^p)^{1/p}$, scaled by the largest entry, with gradient 0 at 0."""
    flat, _ = ravel_pytree(x)
    largest = jnp.max(jnp.abs(flat))
    safe = jnp.where(largest > 0, largest, 1.0)
    ratios = jnp.abs(flat) / jax.lax.stop_gradient(safe)
    total = jnp.sum(jnp.where(ratios > 0, ratios, 0.0) ** p)
    root = jnp.where(total > 0, total, 1.0) ** (1 / p)
    return jnp.where(largest > 0, jax.lax.stop_gradient(safe) * root, 0.0)


def _l1(x):
    return tree.norm(x, ord=1)


def _linf(x):
    return tree.norm(x, ord=jnp.inf)


def _l2(x):
    squares = tree.vdot(x, x)
    return jnp.where(squares > 0, jnp.sqrt(jnp.where(squares > 0, squares, 1.0)), 0.0)
