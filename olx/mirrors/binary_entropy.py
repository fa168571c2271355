r"""Binary entropy on the unit cube.

$$\psi(w) = s \sum_i \big( w_i \log w_i + (1 - w_i) \log (1 - w_i) + \log 2 \big), \qquad
  \psi^*(\theta) = s \sum_i \log \frac{1 + e^{\theta_i / s}}{2}.$$

The gradient of $\psi^*$ is the logistic function. $\psi$ is never negative and, its curvature being
$s / (w_i (1 - w_i)) \ge 4 s$, it is $4s$-strongly convex in $\|\cdot\|_2$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, appendix A.3.1.
"""

import jax
import jax.numpy as jnp
from jax.scipy.special import entr
from jax.tree_util import Partial
from jaxtyping import PyTree
from optax import tree

from olx import _check as check
from olx._refusal import public
from olx.convex import _domain, norms
from olx.core import Scalar
from olx.mirrors.base import MirrorMap

_LOG_2 = 0.6931471805599453


@public
def binary_entropy(scale: Scalar = 1.0) -> MirrorMap:
    """The binary entropy, times `scale`: each coordinate is a probability.

    >>> import jax.numpy as jnp
    >>> binary_entropy().to_primal(jnp.log(jnp.array([1.0, 3.0]))).round(6).tolist()
    [0.5, 0.75]
    """
    scale = check.positive("scale", scale)
    return MirrorMap(
        Partial(_potential, scale),
        Partial(_conjugate, scale),
        norm=norms.l2(),
        modulus=4 * scale,
        contains=Partial(_domain.unit_box),
        retraction=Partial(_domain.same),
        separable=True,
        offset=Partial(_constants, scale),
    )


def _potential(scale: Scalar, w: PyTree):
    return scale * tree.sum(jax.tree.map(lambda w: _LOG_2 - entr(w) - entr(1 - w), w))


def _constants(scale: Scalar, w: PyTree):
    return scale * tree.sum(jax.tree.map(lambda leaf: jnp.full_like(leaf, _LOG_2), w))


def _conjugate(scale: Scalar, theta: PyTree):
    return scale * tree.sum(jax.tree.map(lambda t: jax.nn.softplus(t / scale) - _LOG_2, theta))
