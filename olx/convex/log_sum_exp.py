r"""The proximal map of the logarithm of a sum of exponentials.

$$s = \arg\min_s\; c \log \sum_r e^{s_r} + \tfrac12 \|s - b\|^2, \qquad p_r = e^{s_r - L}, \quad
  L = \log \sum_r e^{s_r}.$$

At the minimum $s = b - c\,p$, so each share solves an equation of its own, $\log p_r + c\,p_r = b_r
- L$, and $L$ is the one number for which the shares sum to 1. Their sum falls in $L$, and is convex
in it, so Newton's method finds $L$ between $\log \sum_r e^{b_r} - c$ and $\log \sum_r e^{b_r}$.

The equation of a share is that of the Wright $\omega$ function, $c\,p = \omega(b_r - L + \log c)$.
A step of the iteration below multiplies the number of correct digits by four. It works with $p$ and
not with $c\,p$, so that $c = 0$ is legal.

Fritsch, Shafer, Crowley, Algorithm 443: Solution of the Transcendental Equation $w e^w = x$, 1973;
Corless, Jeffrey, The Wright $\omega$ Function, 2002.
"""

import math

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jax.tree_util import Partial
from jaxtyping import Array, Float

from olx import _numeric as safe
from olx.convex.roots import root
from olx.core import Scalar

_STEPS = 3  # the first error is below 1/2, so the last one is below its 64th power


def soft_shares(step: Scalar, b: Float[Array, "... k"]) -> Float[Array, "... k"]:
    r"""The shares $p$ of the proximal map at $b$, which is $b - c\,p$ for $c$ = `step`, at least 0.

    step: a number, or one per vector of `b`.

    >>> import jax.numpy as jnp
    >>> b = jnp.array([1.0, 0.0, -1.0])
    >>> p = soft_shares(2.0, b)
    >>> bool(jnp.allclose(p, jax.nn.softmax(b - 2.0 * p)))
    True
    """
    step = jnp.broadcast_to(jnp.asarray(step, b.dtype), b.shape[:-1])
    top = logsumexp(b, -1)
    level = root(Partial(_unspent, step, b), top - step, top, top - step)
    return share(b - level[..., None], step[..., None])


def _unspent(step: Array, b: Array, level: Array) -> Array:
    return 1 - jnp.sum(share(b - level[..., None], step[..., None]), -1)


@jax.custom_jvp
def share(a: Array, c: Array) -> Array:
    r"""The $p$ with $\log p + c\,p = a$, element by element, for $c \ge 0$."""
    least = math.log(float(jnp.finfo(a.dtype).tiny))
    tame = jnp.maximum(a, least)
    p = _near(tame, c)
    for _ in range(_STEPS):
        more = 1 + c * p
        miss = tame - c * p - jnp.log(p)
        curve = more * (more + 2 * miss / 3)
        p = p * (1 + miss / more * (curve - miss / 2) / (curve - miss))
    return jnp.where(a < least, jnp.exp(a), p)


@share.defjvp
def _share_jvp(primals: tuple, moves: tuple) -> tuple[Array, Array]:
    (a, c), (da, dc) = primals, moves
    p = share(a, c)
    return p, p * (da - p * dc) / (1 + c * p)


def _near(a: Array, c: Array) -> Array:
    r"""A start below $p$: $e^a / (1 + c\,e^a)$, or $(z - \log z) / c$ if $z = a + \log c > 1$."""
    z = a + jnp.log(safe.or_one(c))
    far = (z > 1) & (c > 0)
    small = jnp.exp(jnp.where(far, 0.0, a))
    large = safe.or_one(z, far)
    return jnp.where(far, (large - jnp.log(large)) / safe.or_one(c), small / (1 + c * small))
