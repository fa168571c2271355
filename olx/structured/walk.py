r"""Weights that move by multiples of feature differences, and their mean over the rounds.

With $\tau_s a_s$ added in round $s$, $h_s$ the weight of the round and $H_t = \sum_{s \le t} h_s$,

$$w_t = w_1 + \sum_{s < t} \tau_s a_s, \qquad
  \bar w = \frac{1}{H_T} \sum_{t \le T} h_t w_t = w_{T+1} - \frac{1}{H_T} \sum_{s \le T} H_s \tau_s
  a_s.$$

The last sum is kept beside the weights. It changes at the active features only, where a running
mean would change all weights in every round.

Daume, Practical Structured Learning Techniques for Natural Language Processing, 2006.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _numeric
from olx import _numeric as safe
from olx._check import seen_as
from olx._numeric import Sum
from olx._refusal import RefusedType, public
from olx.core import Feedback, Scalar
from olx.structured.structure import Structure


class Walk(NamedTuple):
    w: PyTree
    late: PyTree  # the sum of H_s tau_s a_s
    total: Sum  # H_t


def start(w: PyTree) -> Walk:
    w = jax.tree.map(jnp.asarray, w)
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(w)))
    return Walk(w, tree.zeros_like(w), _numeric.start(zero))


def step(
    structure: Structure, walk: Walk, factor: Scalar, feedback: Feedback, slope: PyTree
) -> Walk:
    """Add `factor` times the gradient in w, if `slope` is that in the parts."""
    total = _numeric.add(walk.total, jnp.asarray(feedback.weight, walk.total.value.dtype))
    add = lambda w, factor: structure.add(w, factor, feedback.context, slope)
    return Walk(add(walk.w, factor), add(walk.late, total.value * factor), total)


@public
def averaged_weights(state: Any) -> PyTree:
    """The mean of the weights before each update, from the state of a structured learner.

    The state of a sweep gives one mean for each configuration. Before round 1 it is the start.

    >>> import jax.numpy as jnp, olx
    >>> words = olx.structured.chain(classes=2, features=1)
    >>> rounds = olx.structured.padded_rounds([jnp.ones((1, 1))] * 4, [[1]] * 4)
    >>> learner = olx.structured.structured_perceptron(words)
    >>> run = olx.run(learner, olx.structured.decoded_cost(words), rounds, words.zeros())
    >>> run.state.walk.w.emission.tolist(), averaged_weights(run.state).emission.tolist()
    ([[-1.0], [1.0]], [[-0.75], [0.75]])
    """
    walk = getattr(state, "walk", None)
    if not isinstance(walk, Walk):
        raise RefusedType(
            "`state` must be that of a structured learner, such as "
            f"`structured_perceptron`, got {seen_as(state)}; give `run.state`."
        )
    return jax.tree.map(lambda w, late: w - _over(late, walk.total.value), walk.w, walk.late)


def _over(late: Array, total: Float[Array, "*n"]) -> Array:
    return late / safe.or_one(jnp.reshape(total, total.shape + (1,) * (late.ndim - total.ndim)))
