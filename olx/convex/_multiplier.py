r"""Weights of the form $w_i = (1 + x + d_i)^{-e}$ that add up to 1.

With $d_i \ge 0$, $\min_i d_i = 0$ and $e \ge 1$ the multiplier $x$ lies in $[0, n^{1/e} - 1]$. The
function $(\sum_i (1 + x + d_i)^{-e})^{-1/e}$ is increasing and concave in $x$, so Newton's method
from 0 rises to the root without overshooting, in a handful of steps. Its derivative is implicit.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from olx.core import Scalar

_STEPS = 100


def power_weights(unit: Scalar, exponent: Scalar, theta: Float[Array, " n"]) -> Float[Array, " n"]:
    r"""The $w_i = (u / (\lambda - \theta_i))^e$, $\lambda > \max_i \theta_i$, that add up to 1."""
    highest = lax.stop_gradient(jnp.max(theta))  # any constant would do: lambda takes it up
    d = (highest - theta) / unit
    exponent = jnp.asarray(exponent, theta.dtype)
    return jnp.exp(-exponent * jnp.log1p(_root(exponent, d) + d))


@jax.custom_jvp
def _root(exponent: Array, d: Float[Array, " n"]) -> Array:
    def newton(search):
        x, steps, _ = search
        logs = jnp.log1p(x + d)
        log_sum = logsumexp(-exponent * logs)
        log_slope = logsumexp(-(exponent + 1) * logs)
        step = jnp.expm1(log_sum / exponent) * jnp.exp(log_sum - log_slope)
        return x + jnp.maximum(step, 0.0), steps + 1, x + step > x

    rising = lambda search: search[2] & (search[1] < _STEPS)
    return lax.while_loop(rising, newton, (jnp.zeros_like(exponent), 0, jnp.array(True)))[0]


@_root.defjvp
def _root_jvp(primals, tangents):
    x = _root(*primals)
    excess = lambda exponent, d: _excess(x, exponent, d)
    _, change = jax.jvp(excess, primals, tangents)
    return x, -change / jax.grad(_excess)(x, *primals)


def _excess(x, exponent, d):
    return logsumexp(-exponent * jnp.log1p(x + d))
