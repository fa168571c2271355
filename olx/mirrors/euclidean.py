r"""Half the squared Euclidean norm, on the whole space or on a closed convex set.

$$\psi(w) = \tfrac12 \|w\|_2^2 \text{ on } S, \qquad
  \psi^*(\theta) = \tfrac12 \|\theta\|_2^2 - \tfrac12 \mathrm{dist}(\theta, S)^2.$$

The gradient of $\psi^*$ is the Euclidean projection on $S$, so mirror descent with it is projected
gradient descent. $\psi$ is 1-strongly convex in $\|\cdot\|_2$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, examples 1 and 3.
"""

from jax.tree_util import Partial
from jaxtyping import PyTree
from optax import tree

from olx import _check as check
from olx._refusal import public
from olx.convex import _domain, norms
from olx.convex.sets import ConvexSet
from olx.mirrors.base import MirrorMap, with_argmax


@public
def euclidean(domain: ConvexSet | None = None) -> MirrorMap:
    """Half the squared norm, on the whole space or on a set of `olx.convex.sets`.

    >>> import jax.numpy as jnp
    >>> from olx.convex import sets
    >>> euclidean(sets.box(0.0, 1.0)).to_primal(jnp.array([3.0, 0.5])).tolist()
    [1.0, 0.5]
    """
    if domain is None:
        return MirrorMap(
            Partial(_half),
            Partial(_half),
            norm=norms.l2(),
            modulus=1.0,
            retraction=Partial(_domain.same),
            separable=True,
            identity=True,
        )
    check.instance("domain", domain, ConvexSet)
    return with_argmax(
        Partial(_half),
        domain.project,
        norm=norms.l2(),
        modulus=1.0,
        contains=Partial(_domain.stays, domain.project),
        centering=Partial(_domain.below_top) if domain.fixed_sum else None,
        separable=domain.separable,
    )


def _half(w: PyTree):
    return tree.vdot(w, w) / 2
