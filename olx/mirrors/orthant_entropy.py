r"""Unnormalized entropy on the positive orthant.

$$\psi(w) = s \sum_i \Big( w_i \log \frac{w_i}{p_i} - w_i + p_i \Big), \qquad
  \psi^*(\theta) = s \sum_i p_i (e^{\theta_i / s} - 1).$$

The gradient of $\psi^*$ is $p_i e^{\theta_i / s}$, so mirror descent with it is the exponentiated
gradient without normalization. $\psi$ is never negative. Its curvature $s / w_i$ has no lower
bound, so it is strongly convex on bounded sets only. $e^{\theta_i / s}$ is clipped at about the
root of the largest float; $\psi^*$ is then the conjugate of $\psi$ restricted to a box.

Kivinen, Warmuth, Exponentiated Gradient versus Gradient Descent for Linear Predictors, 1997.
"""

import jax
import jax.numpy as jnp
from jax.scipy.special import entr
from jax.tree_util import Partial
from jaxtyping import Array, PyTree
from optax import tree

from olx import _check as check
from olx._refusal import public
from olx.convex import _domain
from olx.core import Scalar
from olx.mirrors.base import MirrorMap


@public
def unnormalized_entropy(scale: Scalar = 1.0, prior: PyTree | None = None) -> MirrorMap:
    """The relative entropy of positive weights to `prior`, times `scale`.

    prior: positive weights shaped like a decision, the decision whose dual is 0; 1 if None.

    >>> import jax.numpy as jnp
    >>> unnormalized_entropy().to_primal(jnp.log(jnp.array([2.0, 5.0]))).round(6).tolist()
    [2.0, 5.0]
    """
    scale = check.positive("scale", scale)
    if prior is not None:
        prior = check.positive("prior", prior, each=True)
    return MirrorMap(
        Partial(_potential, scale, prior),
        Partial(_conjugate, scale, prior),
        contains=Partial(_domain.orthant),
        retraction=Partial(_domain.same),
        separable=True,
    )


def _potential(scale: Scalar, prior: PyTree, w: PyTree):
    paid = lambda w, p: -entr(w) - w * jnp.log(p) - w + p  # entr(0) = 0
    return scale * tree.sum(jax.tree.map(paid, w, _prior(prior, w)))


def _conjugate(scale: Scalar, prior: PyTree, theta: PyTree):
    def grown(theta: Array, p: Array) -> Array:
        theta = theta / scale
        most = _domain.largest_log(theta)
        beyond = jnp.exp(most) * jnp.maximum(theta - most, 0.0)
        return p * (jnp.expm1(jnp.minimum(theta, most)) + beyond)

    return scale * tree.sum(jax.tree.map(grown, theta, _prior(prior, theta)))


def _prior(prior: PyTree, w: PyTree) -> PyTree:
    return tree.ones_like(w) if prior is None else prior
