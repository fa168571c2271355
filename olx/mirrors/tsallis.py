r"""Negative Tsallis entropy on the probability simplex.

$$\psi(w) = \frac{s}{1 - \alpha} \Big( n^{1 - \alpha} - 1 + \sum_i (w_i - w_i^\alpha) \Big),
  \qquad \nabla\psi^*(\theta)_i = \Big( \frac{s \alpha}{(1 - \alpha)(\lambda - \theta_i)}
  \Big)^{1 / (1 - \alpha)},$$

with the $\lambda > \max_i \theta_i$ for which the weights sum to 1. $\psi$ is 0 at the uniform
point and finite at the vertices. For $\alpha \to 1$ it is the relative entropy to the uniform
point. Since $(\sum_i |v_i|)^2 \le \sum_i w_i^{\alpha - 2} v_i^2 \sum_i w_i^{2 - \alpha}$ and the
last sum is at most 1, it is $s\alpha$-strongly convex in $\|\cdot\|_1$.

Zimmert, Seldin, Tsallis-INF: An Optimal Algorithm for Stochastic and Adversarial Bandits, 2021;
their potential is this one with $s = 1 / \alpha$, up to a constant.
"""

import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, PyTree

from olx import _check as check
from olx._refusal import public
from olx._words import as_given
from olx.convex import _domain, norms
from olx.convex.roots import power_weights
from olx.core import Scalar
from olx.mirrors.base import MirrorMap, with_argmax


@public
def tsallis(alpha: Scalar = 0.5, scale: Scalar = 1.0) -> MirrorMap:
    """The negative Tsallis entropy of order `alpha`, times `scale`.

    alpha: strictly between 0 and 1; Tsallis-INF uses 1/2.

    >>> import jax.numpy as jnp
    >>> mirror = tsallis(0.5)
    >>> w = jnp.array([0.2, 0.3, 0.5])
    >>> bool(jnp.allclose(mirror.to_primal(mirror.to_dual(w)), w))
    True
    """
    alpha = check.positive("alpha", alpha)
    below = check.positive("1 - alpha", 1 - alpha)
    alpha = as_given(alpha + 0 * below, alpha)  # keeps a NaN
    scale = check.positive("scale", scale)
    return with_argmax(
        Partial(_potential, alpha, scale),
        Partial(_argmax, alpha, scale),
        norm=norms.l1(),
        modulus=alpha * scale,
        contains=Partial(_domain.unit_simplex),
        centering=Partial(_domain.below_top),
    )


def _potential(alpha: Scalar, scale: Scalar, w: PyTree) -> Array:
    flat, _ = ravel_pytree(w)
    least = float(flat.size) ** (1 - alpha) - 1
    return scale / (1 - alpha) * (least + jnp.sum(flat - flat**alpha))


def _argmax(alpha: Scalar, scale: Scalar, theta: PyTree) -> PyTree:
    flat, unravel = ravel_pytree(theta)
    return unravel(power_weights(scale * alpha / (1 - alpha), 1 / (1 - alpha), flat))
