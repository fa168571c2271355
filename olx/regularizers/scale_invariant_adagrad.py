r"""AdaGrad with weights in units of the features: predictions do not depend on feature scales.

With $b_{t,i} = \max_{s \le t} |x_{s,i}|$ and $d$ coordinates,

$$f_t(w) = \frac{\sqrt d}{2} \sum_i a_{t,i} (w_i b_{t,i})^2, \qquad
  a_{t,i} = \sqrt{L^2 + \textstyle\sum_{s < t} (g_{s,i} / b_{s,i})^2}.$$

$b_t$ includes $x_t$, known before predicting. A feature that has always been 0 has the weight 0.

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, (13).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import own_name, public
from olx.core import REGULARIZER, Feedback, Process, Scalar
from olx.mirrors.base import MirrorMap
from olx.mirrors.quadratic import quadratic
from olx.regularizers.scale_invariant_pnorm import larger, ratio


@pytree
class ScaleInvariantAdaGradHparams:
    lipschitz: Scalar


class ScaleInvariantAdaGradStats(NamedTuple):
    largest: PyTree  # b
    squares: PyTree
    dimension: Float[Array, ""]  # d


@public
def scale_invariant_adagrad(lipschitz: Scalar = 1.0) -> Process:
    """A regularizer for linear predictors: its learner belongs inside `olx.linear`.

    lipschitz: $L$ of the loss in the score; 1 for the hinge, logistic and absolute losses.
    """
    lipschitz = check.positive("lipschitz", lipschitz)
    hparams = ScaleInvariantAdaGradHparams(lipschitz)
    return Process(hparams, init, update, at, REGULARIZER, separable=True)


def init(hp: ScaleInvariantAdaGradHparams, params: PyTree) -> ScaleInvariantAdaGradStats:
    leaves, zeros = jax.tree.leaves(params), tree.zeros_like(params)
    dimension = jnp.asarray(sum(map(jnp.size, leaves)), jnp.result_type(*leaves))
    return ScaleInvariantAdaGradStats(zeros, zeros, dimension)


@own_name("scale_invariant_adagrad")
def update(
    hp: ScaleInvariantAdaGradHparams, stats: ScaleInvariantAdaGradStats, feedback: Feedback
) -> ScaleInvariantAdaGradStats:
    largest = larger(stats.largest, feedback.context)
    scaled = jax.tree.map(ratio, tree.scale(feedback.weight, feedback.grad), largest)
    squares = jax.tree.map(lambda square, g: square + g * g, stats.squares, scaled)
    return ScaleInvariantAdaGradStats(largest, squares, stats.dimension)


@own_name("scale_invariant_adagrad")
def at(
    hp: ScaleInvariantAdaGradHparams, stats: ScaleInvariantAdaGradStats, context: PyTree
) -> MirrorMap:
    largest = larger(stats.largest, context)
    steep = lambda b, a: jnp.sqrt(stats.dimension) * b * b * a
    return quadratic(jax.tree.map(steep, largest, level(hp, stats)))


def level(hp: ScaleInvariantAdaGradHparams, stats: ScaleInvariantAdaGradStats) -> PyTree:
    r"""$a_t$."""
    root = lambda square: jnp.sqrt(hp.lipschitz**2 + square)
    return jax.tree.map(root, stats.squares)
