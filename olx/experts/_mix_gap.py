r"""The mixability gap: the loss of a mixture minus its mix loss.

$$\delta = \frac1\eta \ln \sum_i p_i e^{\eta r_i} = \frac1\eta \ln \Big( 1 + \sum_i p_i
  \varphi(\eta r_i) \Big), \qquad \varphi(x) = e^x - 1 - x \ge 0,$$

as $\sum_i p_i r_i = 0$. The first form is used where one expert of small weight dominates the sum:
$p_i$ may underflow there, but $\ln p_i + \eta r_i$ does not. The second form is used everywhere
else: it has no cancellation, and the gap is never negative.

De Rooij, van Erven, Grünwald, Koolen, Follow the Leader If You Can, Hedge If You Must, 2014.
"""

import math

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from olx.core import Scalar
from olx.experts._vectors import lowest


def mix_gap(
    log_share: Float[Array, " N"], regret: Float[Array, " N"], eta: Scalar
) -> Float[Array, ""]:
    """The mixability gap of a distribution, given by its logarithms, with mean regret 0.

    log_share: the logarithms; the lowest finite number for an expert without weight.
    """
    x = jnp.where(log_share > lowest(log_share), eta * regret, 0.0)
    share, grown = jnp.exp(log_share), log_share + x
    most = lax.stop_gradient(jnp.max(grown))
    decided = most > 1
    top = jnp.where(decided, most, 0.0)

    far = x > 30  # p_i e^x is computed as e^(log p_i + x); 1 + x is negligible
    power = jnp.exp(jnp.where(far, grown - top, x))
    mass = jnp.where(far, power, share * power * jnp.exp(-top))
    mixed = top + jnp.log(jnp.sum(mass))

    near = jnp.abs(x) < 0.5
    over = jnp.where(near, _series(jnp.where(near, x, 0.0)), jnp.where(far, 0.0, power) - 1 - x)
    excess = jnp.sum(share * over + jnp.where(far, mass, 0.0))
    return jnp.where(decided, mixed, jnp.log1p(jnp.where(decided, 0.0, excess))) / eta


def _series(x: Array) -> Array:
    r"""$\varphi$ to full precision for $|x| < \frac12$."""
    total = jnp.zeros_like(x)
    for k in range(14, 1, -1):
        total = total * x + 1 / math.factorial(k)
    return total * x**2
