r"""Potentials in units of the features: predictions do not depend on feature scales.

With $b_{t,i} = \max_{s \le t} |x_{s,i}|$ and $d$ coordinates, AdaGrad becomes

$$f_t(w) = \frac{\sqrt d}{2} \sum_i a_{t,i} (w_i b_{t,i})^2, \qquad
  a_{t,i} = \sqrt{L^2 + \textstyle\sum_{s < t} (g_{s,i} / b_{s,i})^2}.$$

With $m_t$ the largest number of non-zeros in a row so far, $p_t = \max(2, 2 \ln m_t)$ and $1/p_t +
1/q_t = 1$, the p-norm potential is

$$f_t(w) = \frac{\beta_t}{2} \Big( \sum_i (|w_i| b_{t,i})^{q_t} \Big)^{2/q_t}, \qquad
  \beta_t^2 = e L^2 (p_t - 1) + \sum_{s < t} (p_s - 1) \Big( \sum_i (|g_{s,i}| / b_{s,i})^{p_s}
  \Big)^{2/p_s}.$$

It is strongly convex in $(\sum_i (|w_i| b_{t,i})^{q_t})^{1/q_t}$, with modulus $\beta_t (q_t - 1)$.

$b_t$ and $m_t$ include $x_t$, which is known before predicting. The weight of a feature that has
always been 0 is 0.

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, (13) and (12), without the factor $1/(p_t - 1)$ that (14)
prints.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree
from olx._refusal import RefusedType, own_name, public
from olx.convex import norms
from olx.convex.norms import Norm
from olx.core import REGULARIZER, Feedback, Process, Scalar
from olx.mirrors.base import MirrorMap
from olx.mirrors.quadratic import quadratic


@pytree
class ScaleInvariantHparams:
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
    hparams = ScaleInvariantHparams(lipschitz)
    return Process(hparams, adagrad_init, adagrad_update, adagrad_at, REGULARIZER, separable=True)


def adagrad_init(hp: ScaleInvariantHparams, params: PyTree) -> ScaleInvariantAdaGradStats:
    leaves, zeros = jax.tree.leaves(params), tree.zeros_like(params)
    dimension = jnp.asarray(sum(map(jnp.size, leaves)), jnp.result_type(*leaves))
    return ScaleInvariantAdaGradStats(zeros, zeros, dimension)


@own_name("scale_invariant_adagrad")
def adagrad_update(
    hp: ScaleInvariantHparams, stats: ScaleInvariantAdaGradStats, feedback: Feedback
) -> ScaleInvariantAdaGradStats:
    largest = larger(stats.largest, feedback.context)
    scaled = jax.tree.map(ratio, tree.scale(feedback.weight, feedback.grad), largest)
    squares = jax.tree.map(lambda square, g: square + g * g, stats.squares, scaled)
    return ScaleInvariantAdaGradStats(largest, squares, stats.dimension)


@own_name("scale_invariant_adagrad")
def adagrad_at(
    hp: ScaleInvariantHparams, stats: ScaleInvariantAdaGradStats, context: PyTree
) -> MirrorMap:
    largest = larger(stats.largest, context)
    steep = lambda b, a: jnp.sqrt(stats.dimension) * b * b * a
    return quadratic(jax.tree.map(steep, largest, adagrad_level(hp, stats)))


def adagrad_level(hp: ScaleInvariantHparams, stats: ScaleInvariantAdaGradStats) -> PyTree:
    r"""$a_t$."""
    root = lambda square: jnp.sqrt(hp.lipschitz**2 + square)
    return jax.tree.map(root, stats.squares)


class ScaleInvariantPNormStats(NamedTuple):
    largest: PyTree  # b
    support: Float[Array, ""]  # m
    paid: Float[Array, ""]  # the sum in beta^2


@public
def scale_invariant_pnorm(lipschitz: Scalar = 1.0) -> Process:
    """A regularizer for linear predictors: its learner belongs inside `olx.linear`.

    lipschitz: $L$ of the loss in the score; 1 for the hinge, logistic and absolute losses.
    """
    lipschitz = check.positive("lipschitz", lipschitz)
    hparams = ScaleInvariantHparams(lipschitz)
    return Process(hparams, pnorm_init, pnorm_update, pnorm_at, REGULARIZER)


def pnorm_init(hp: ScaleInvariantHparams, params: PyTree) -> ScaleInvariantPNormStats:
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(params)))
    return ScaleInvariantPNormStats(tree.zeros_like(params), zero, zero)


def pnorm_update(
    hp: ScaleInvariantHparams, stats: ScaleInvariantPNormStats, feedback: Feedback
) -> ScaleInvariantPNormStats:
    seen = _see(stats, feedback.context)
    p = exponent(seen)
    scaled = jax.tree.map(ratio, tree.scale(feedback.weight, feedback.grad), seen.largest)
    return seen._replace(paid=seen.paid + (p - 1) * norms.power_squared(p, scaled))


def pnorm_at(
    hp: ScaleInvariantHparams, stats: ScaleInvariantPNormStats, context: PyTree
) -> MirrorMap:
    seen = _see(stats, context)
    p, beta, b = exponent(seen), pnorm_level(hp, seen), seen.largest
    q = p / (p - 1)
    return MirrorMap(
        Partial(_potential, q, beta, b),
        Partial(_conjugate, p, beta, b),
        norm=Norm(Partial(_norm, q, b), Partial(_dual_norm, p, b)),
        modulus=beta * (q - 1),
    )


def exponent(stats: ScaleInvariantPNormStats) -> Array:
    r"""$p_t = \max(2, 2 \ln m_t)$."""
    return jnp.maximum(2 * jnp.log(jnp.maximum(stats.support, 1.0)), 2.0)


def pnorm_level(hp: ScaleInvariantHparams, stats: ScaleInvariantPNormStats) -> Array:
    r"""$\beta_t$."""
    return jnp.sqrt(jnp.e * hp.lipschitz**2 * (exponent(stats) - 1) + stats.paid)


def ratio(top: Array, bottom: Array) -> Array:
    """The quotient, 0 where the divisor is 0."""
    return safe.divide(top, bottom, 0.0, bottom != 0)


def larger(largest: PyTree, context: PyTree) -> PyTree:
    """The largest absolute value of every feature so far, including `context`."""
    if context is None:
        raise RefusedType("there is no context; put the learner inside `olx.linear`.")
    check.same_shape("context", context, "decision", largest)
    return jax.tree.map(lambda b, x: jnp.maximum(b, jnp.abs(x)), largest, context)


@own_name("scale_invariant_pnorm")
def _see(stats: ScaleInvariantPNormStats, context: PyTree) -> ScaleInvariantPNormStats:
    largest = larger(stats.largest, context)
    count = lambda x: jnp.sum(x != 0, dtype=stats.support.dtype)
    support = jnp.maximum(stats.support, tree.sum(jax.tree.map(count, context)))
    return ScaleInvariantPNormStats(largest, support, stats.paid)


def _potential(q: Scalar, beta: Scalar, b: PyTree, w: PyTree) -> Array:
    return beta * norms.power_squared(q, tree.mul(b, w)) / 2


def _conjugate(p: Scalar, beta: Scalar, b: PyTree, theta: PyTree) -> Array:
    return norms.power_squared(p, jax.tree.map(ratio, theta, b)) / (2 * beta)


def _norm(q: Scalar, b: PyTree, w: PyTree) -> Array:
    return norms.power(q, tree.mul(b, w))


def _dual_norm(p: Scalar, b: PyTree, theta: PyTree) -> Array:
    return norms.power(p, jax.tree.map(ratio, theta, b))
