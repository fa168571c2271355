r"""The logarithmic barrier, on the positive orthant or on the probability simplex.

$$\psi(w) = -s \sum_i \log w_i, \quad \psi^*(\theta) = s \sum_i \Big( \log \frac{s}{-\theta_i} - 1
  \Big) \ (\theta < 0); \qquad \psi(w) = -s \sum_i \log (n w_i) \text{ on the simplex}.$$

On the orthant the gradient of $\psi^*$ is $-s / \theta_i$. On the simplex it is
$s / (\lambda - \theta_i)$, with the $\lambda > \max_i \theta_i$ for which the weights sum to 1;
there $\psi$ is never negative and, by $(\sum_i |v_i|)^2 \le \sum_i v_i^2 / w_i^2 \sum_i w_i^2$, it
is $s$-strongly convex in $\|\cdot\|_1$. It is infinite at the border: comparators must be inside.

Foster, Li, Lykouris, Sridharan, Tardos, Learning in Games: Robustness of Fast Convergence, 2016.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, PyTree
from optax import tree

from olx import _check as check
from olx._refusal import public
from olx.convex import _domain, norms
from olx.convex.roots import power_weights
from olx.core import Scalar
from olx.mirrors.base import MirrorMap, with_argmax


@public
def log_barrier(scale: Scalar = 1.0) -> MirrorMap:
    """The barrier of the positive orthant; the decision is NaN if a dual coordinate is 0 or more.

    >>> import jax.numpy as jnp
    >>> log_barrier(2.0).to_primal(jnp.array([-1.0, -4.0])).tolist()
    [2.0, 0.5]
    """
    scale = check.positive("scale", scale)
    return MirrorMap(
        Partial(_potential, scale),
        Partial(_conjugate, scale),
        contains=Partial(_domain.orthant),
        retraction=Partial(_domain.same),
        separable=True,
    )


@public
def log_barrier_simplex(scale: Scalar = 1.0) -> MirrorMap:
    """The barrier of the probability simplex, 0 at the uniform point.

    >>> import jax.numpy as jnp
    >>> log_barrier_simplex().to_primal(jnp.array([-3.0, 0.0, -3.0])).sum().round(6).item()
    1.0
    """
    scale = check.positive("scale", scale)
    return with_argmax(
        Partial(_on_simplex, scale),
        Partial(_argmax, scale),
        norm=norms.l1(),
        modulus=scale,
        contains=Partial(_domain.unit_simplex),
        centering=Partial(_domain.below_top),
    )


def _potential(scale: Scalar, w: PyTree):
    return -scale * tree.sum(jax.tree.map(jnp.log, w))


def _conjugate(scale: Scalar, theta: PyTree):
    # Infinite for theta >= 0, with a NaN gradient: NaN is better than a wrong decision.
    one = lambda theta: jnp.log(scale) - 1 - jnp.log(jnp.maximum(-theta, 0.0))
    return scale * tree.sum(jax.tree.map(one, theta))


def _on_simplex(scale: Scalar, w: PyTree) -> Array:
    flat, _ = ravel_pytree(w)
    return -scale * jnp.sum(jnp.log(flat * flat.size))


def _argmax(scale: Scalar, theta: PyTree) -> PyTree:
    flat, unravel = ravel_pytree(theta)
    return unravel(power_weights(scale, 1.0, flat))
