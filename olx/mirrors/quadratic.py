r"""Diagonal quadratics with an optional penalty.

$$\psi(w) = \frac12 \sum_i c_i w_i^2 + \rho F(w), \qquad
  \nabla\psi^*(\theta) = \operatorname{prox}_F(\theta / c, \rho / c).$$

It is used by dual averaging, AdaGrad and their composite forms. With an $\ell_1$ penalty the
decision is a soft threshold. $\psi$ is 1-strongly convex in $(\sum_i c_i w_i^2)^{1/2}$, whose dual
norm is $(\sum_i \theta_i^2 / c_i)^{1/2}$.

Duchi, Hazan, Singer, Adaptive Subgradient Methods for Online Learning and Stochastic
Optimization, 2011.
"""

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import like
from olx._refusal import RefusedType, public
from olx.convex.norms import Norm
from olx.convex.prox import Penalty
from olx.core import Scalar
from olx.mirrors.base import MirrorMap, with_argmax


@public
def quadratic(
    curvature: PyTree, penalty: Penalty | None = None, strength: Scalar = 1.0
) -> MirrorMap:
    r"""A diagonal quadratic plus a penalty.

    curvature: $c$, non-negative, one number or a tree shaped like a decision. Where it is 0, as for
        a feature that has always been 0, the decision is 0.
    penalty: $F$; must be separable unless the curvature is one number.
    strength: $\rho$, non-negative; for composite losses the step size times the round number.

    >>> import jax.numpy as jnp, olx
    >>> from olx.convex.prox import l1
    >>> curvature = jnp.array([1.0, 2.0, 0.0])
    >>> quadratic(curvature, l1(), 0.5).to_primal(jnp.array([0.25, -4.5, 0.0])).tolist()
    [0.0, -2.0, 0.0]
    """
    curvature = check.non_negative("curvature", curvature, each=True)
    strength = check.non_negative("strength", strength)
    if penalty is not None:
        check.instance("penalty", penalty, Penalty)
        if not penalty.separable and not _single(curvature):
            raise RefusedType(
                "a penalty that mixes coordinates needs one curvature for all of them; "
                "give a number, a separable penalty such as `l1`, or use `full_quadratic`."
            )
    return with_argmax(
        Partial(_potential, curvature, penalty, strength),
        Partial(_argmax, curvature, penalty, strength),
        norm=Norm(Partial(_norm, curvature), Partial(_dual_norm, curvature)),
        modulus=1.0,
        contains=None if penalty is None else Partial(is_finite, penalty),
        separable=penalty is None or penalty.separable,
    )


def penalized(smooth: Array, penalty: Penalty | None, strength: Scalar, w: PyTree) -> Array:
    """A potential plus `strength` times its penalty; an infinite penalty stays infinite."""
    if penalty is None:
        return smooth
    extra = penalty.value(w)
    return smooth + jnp.where(jnp.isinf(extra), extra, strength * extra)


def is_finite(penalty: Penalty, w: PyTree) -> Array:
    return penalty.value(w) < jnp.inf


def _potential(curvature: PyTree, penalty: Penalty, strength: Scalar, w: PyTree) -> Array:
    return penalized(_squares(curvature, w) / 2, penalty, strength, w)


def _argmax(curvature: PyTree, penalty: Penalty, strength: Scalar, theta: PyTree) -> PyTree:
    if _single(curvature):
        center = jax.tree.map(lambda leaf: _over(leaf, curvature), theta)
        step = _over(strength, curvature)
    else:
        center = jax.tree.map(_over, theta, curvature)
        step = jax.tree.map(lambda c: _over(strength, c), curvature)
    return center if penalty is None else penalty.prox(center, step)


def _over(top: PyTree, curvature: PyTree) -> Array:
    # a NaN curvature must give NaN, not 0
    return safe.divide(top, curvature, 0.0, curvature != 0)


def _single(curvature: PyTree) -> bool:
    leaf = jax.tree_util.treedef_is_leaf(jax.tree.structure(curvature))
    return leaf and jnp.ndim(curvature) == 0


def _squares(curvature: PyTree, w: PyTree) -> Array:
    squares = jax.tree.map(lambda c, leaf: c * leaf * leaf, like(curvature, w), w)
    return jnp.asarray(tree.sum(squares))


def _norm(curvature: PyTree, w: PyTree) -> Array:
    return safe.sqrt(_squares(curvature, w))


def _dual_norm(curvature: PyTree, theta: PyTree) -> Array:
    def squares(c: Array, leaf: Array) -> Array:
        return safe.divide(leaf * leaf, c, jnp.where(leaf == 0, 0.0, jnp.inf), c != 0)

    return safe.sqrt(jnp.asarray(tree.sum(jax.tree.map(squares, like(curvature, theta), theta))))
