r"""The hyperbolic entropy: between gradient descent and exponentiated gradient.

$$\psi(w) = \sum_i w_i \operatorname{asinh}\frac{w_i}{\beta} - \sqrt{w_i^2 + \beta^2} + \beta,
  \qquad \psi^*(\theta) = \beta \sum_i (\cosh \theta_i - 1).$$

The gradient of $\psi^*$ is $\beta \sinh \theta_i$. For $\beta$ much larger than the decisions it is
gradient descent with its step size times $\beta$; for $\beta$ much smaller steps are
multiplicative, with weights of both signs. The curvature $1 / \sqrt{w_i^2 + \beta^2}$ has no lower
bound. $\sinh \theta_i$ is clipped at about the root of the largest float; $\psi^*$ is then the
conjugate of $\psi$ restricted to a box.

Ghai, Hazan, Singer, Exponentiated Gradient Meets Gradient Descent, 2020.
"""

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, PyTree
from optax import tree

from olx import _check as check
from olx._refusal import public
from olx.convex import _domain
from olx.core import Scalar
from olx.mirrors.base import MirrorMap


@public
def hypentropy(beta: Scalar) -> MirrorMap:
    """The hyperbolic entropy with positive parameter `beta`.

    >>> import jax.numpy as jnp
    >>> hypentropy(2.0).to_primal(jnp.arcsinh(jnp.array([-1.0, 3.0]))).round(6).tolist()
    [-2.0, 6.0]
    """
    beta = check.positive("beta", beta)
    return MirrorMap(
        Partial(_potential, beta),
        Partial(_conjugate, beta),
        retraction=Partial(_domain.same),
        separable=True,
    )


def _potential(beta: Scalar, w: PyTree):
    def one(w: Array) -> Array:
        # sqrt(w^2 + beta^2) - beta without cancellation for small w
        bend = w**2 / (jnp.sqrt(w**2 + beta**2) + beta)
        return jnp.sum(w * jnp.arcsinh(w / beta) - bend)

    return tree.sum(jax.tree.map(one, w))


def _conjugate(beta: Scalar, theta: PyTree):
    def one(theta: Array) -> Array:
        most = _domain.largest_log(theta)
        beyond = jnp.maximum(theta - most, 0.0) + jnp.maximum(-theta - most, 0.0)
        return 2 * jnp.sinh(jnp.clip(theta, -most, most) / 2) ** 2 + jnp.sinh(most) * beyond

    return beta * tree.sum(jax.tree.map(one, theta))
