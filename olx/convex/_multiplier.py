r"""Weights of the form $w_i = (1 + x + d_i)^{-e}$ that sum to 1.

With $d_i \ge 0$, $\min_i d_i = 0$ and $e \ge 1$ the multiplier $x$ lies in $[0, n^{1/e} - 1]$. The
function $(\sum_i (1 + x + d_i)^{-e})^{-1/e}$ is increasing and concave in $x$, so Newton's method
from 0 increases to the root without overshooting, in a few steps.
"""

import jax.numpy as jnp
from jax import lax
from jax.scipy.special import logsumexp
from jax.tree_util import Partial
from jaxtyping import Array, Float

from olx.convex.roots import root
from olx.core import Scalar


def power_weights(unit: Scalar, exponent: Scalar, theta: Float[Array, " n"]) -> Float[Array, " n"]:
    r"""The $w_i = (u / (\lambda - \theta_i))^e$, $\lambda > \max_i \theta_i$, that sum to 1."""
    highest = lax.stop_gradient(jnp.max(theta))  # any constant works: lambda shifts with it
    d = (highest - theta) / unit
    exponent = jnp.asarray(exponent, theta.dtype)
    zero = jnp.zeros_like(exponent)
    most = jnp.expm1(jnp.log(float(theta.size)) / exponent)
    x = root(Partial(_excess, exponent, d), zero, 2 * most, zero)
    return jnp.exp(-exponent * jnp.log1p(x + d))


def _excess(exponent: Scalar, d: Array, x: Array) -> Array:
    return jnp.expm1(-logsumexp(-exponent * jnp.log1p(x + d)) / exponent)
