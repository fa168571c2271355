r"""A potential scaled by the largest context so far, $f_t = X_t^2 f$.

$$X_t = \max_{s \le t} \|x_s\|_*, \qquad f \text{ 1-strongly convex in } \|\cdot\|.$$

$X_t$ includes $x_t$, which is known before predicting. This generalizes the step size of the
normalized least mean squares algorithm to any geometry.

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx import _check as check
from olx._refusal import RefusedType, own_name, public
from olx.core import REGULARIZER, Feedback, Process
from olx.mirrors.base import MirrorMap
from olx.mirrors.combinators import scale


@public
def largest_context(mirror: MirrorMap) -> Process:
    r"""The potential of `mirror`, divided by its modulus, times $X_t^2$.

    mirror: must state its norm and modulus.
    """
    check.instance("mirror", mirror, MirrorMap)
    if mirror.norm is None or mirror.modulus is None:
        raise RefusedType("`mirror` must state its norm and its modulus.")
    return Process(mirror, init, update, at, REGULARIZER)


def init(mirror: MirrorMap, params: PyTree) -> Array:
    return jnp.zeros((), jnp.result_type(*jax.tree.leaves(params)))


def update(mirror: MirrorMap, largest: Array, feedback: Feedback) -> Array:
    return _see(mirror, largest, feedback.context)


def at(mirror: MirrorMap, largest: Array, context: PyTree) -> MirrorMap:
    seen = _see(mirror, largest, context)
    assert mirror.modulus is not None  # `largest_context` has checked
    # While all rows are 0 the dual is 0, and any factor gives the same decision.
    return scale(mirror, jnp.where(seen == 0, 1.0, seen * seen / mirror.modulus))


@own_name("largest_context")
def _see(mirror: MirrorMap, largest: Array, context: PyTree) -> Array:
    if context is None:
        raise RefusedType("there is no context; put the learner in `olx.linear`.")
    assert mirror.norm is not None
    return jnp.maximum(largest, mirror.norm.dual(context))
