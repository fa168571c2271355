r"""Negative entropy on the probability simplex with a lower bound for every coordinate.

$$\psi(w) = s \sum_i w_i \log (n w_i), \qquad S = \{ w : w_i \ge \varepsilon,
  \textstyle\sum_i w_i = 1 \}.$$

The gradient of $\psi^*$ is the entropic projection of $e^{\theta/s}$: the smallest coordinates are
set to $\varepsilon$, the $m$ others share $1 - (n - m)\varepsilon$ by softmax, where $m$ is the
largest number for which all of them are at least $\varepsilon$. As in fixed share, small weights
can recover quickly. $\psi$ is $s$-strongly convex in $\|\cdot\|_1$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, figure 7.3, with the
denominator $1 - l\varepsilon$ in place of the printed $1 - \varepsilon$.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.scipy.special import entr
from jax.tree_util import Partial
from jaxtyping import Array, PyTree

from olx import _check as check
from olx._refusal import public
from olx.convex import _domain, norms
from olx.convex.projections import entropic_floor
from olx.core import Scalar
from olx.mirrors.base import MirrorMap, with_argmax


@public
def floored_entropy(floor: Scalar, scale: Scalar = 1.0) -> MirrorMap:
    """The relative entropy to the uniform point, times `scale`, with all coordinates >= `floor`.

    floor: between 0 and 1 / n for decisions of n coordinates. For a larger floor the set is empty
        and every decision is NaN.

    >>> import jax.numpy as jnp
    >>> floored_entropy(0.25).to_primal(jnp.array([0.0, 100.0])).tolist()
    [0.25, 0.75]
    """
    floor = check.between("floor", floor, 0, 1)
    scale = check.positive("scale", scale)
    return with_argmax(
        Partial(_potential, scale),
        Partial(_argmax, floor, scale),
        norm=norms.l1(),
        modulus=scale,
        contains=Partial(_domain.simplex, floor, 1.0),
        centering=Partial(_domain.below_top),
    )


def _potential(scale: Scalar, w: PyTree) -> Array:
    flat, _ = ravel_pytree(w)
    return scale * (jnp.sum(flat) * jnp.log(flat.size) - jnp.sum(entr(flat)))


def _argmax(floor: Scalar, scale: Scalar, theta: PyTree) -> PyTree:
    return entropic_floor(jax.tree.map(lambda leaf: leaf / scale, theta), floor)
