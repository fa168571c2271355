r"""AdaGrad: a quadratic whose curvature follows the past gradients.

With a diagonal matrix, and a penalty $F$ if there is one,

$$f_t(w) = \frac12 \sum_i a_{t,i} w_i^2 + \rho t F(w), \qquad
  a_{t,i} = \sqrt{\delta + \textstyle\sum_{s < t} g_{s,i}^2}.$$

With a full matrix, whose root costs $O(d^3)$ in every round,

$$f_t(w) = \frac12 w^\top \big( \delta I + G_t^{1/2} \big) w, \qquad
  G_t = \sum_{s < t} g_s g_s^\top.$$

Duchi, Hazan, Singer, Adaptive Subgradient Methods for Online Learning and Stochastic
Optimization, 2011; Orabona, Crammer, Cesa-Bianchi, 2015, corollary 1.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _clock as clock
from olx import _numeric as safe
from olx._clock import Clock
from olx._pytree import pytree
from olx._refusal import RefusedType, own_name, public
from olx.convex import _spectral as spectral
from olx.convex.prox import Penalty
from olx.core import REGULARIZER, Feedback, Process, Scalar
from olx.mirrors.base import MirrorMap
from olx.mirrors.quadratic import diagonal_quadratic, full_quadratic


@pytree
class AdaGradHparams:
    delta: Scalar
    penalty: Penalty | None
    rate: Scalar


class AdaGradStats(NamedTuple):
    squares: PyTree
    clock: Clock


@public
def adagrad(penalty: Penalty | None = None, delta: Scalar = 1.0, rate: Scalar = 1.0) -> Process:
    r"""Curvature from past gradients, plus `rate` times the penalty per round.

    penalty: a separable one, such as `l1`.
    delta: positive; the bound of the paper needs at least the square of the largest gradient.
    rate: the step size of the learner, for the regret on penalized losses.
    """
    delta = check.positive("delta", delta)
    rate = check.non_negative("rate", rate)
    if penalty is not None:
        check.instance("penalty", penalty, Penalty)
    separable = penalty is None or penalty.separable
    parts = AdaGradHparams(delta, penalty, rate), adagrad_init, adagrad_update, adagrad_at
    return Process(*parts, REGULARIZER, separable=separable)


def adagrad_init(hp: AdaGradHparams, params: PyTree) -> AdaGradStats:
    return AdaGradStats(tree.zeros_like(params), clock.start(hp, params))


def adagrad_update(hp: AdaGradHparams, stats: AdaGradStats, feedback: Feedback) -> AdaGradStats:
    grow = lambda square, g: square + (feedback.weight * g) ** 2
    squares = jax.tree.map(grow, stats.squares, feedback.grad)
    return AdaGradStats(squares, clock.tick(hp, stats.clock, feedback))


def adagrad_at(hp: AdaGradHparams, stats: AdaGradStats, context: PyTree) -> MirrorMap:
    curvature = jax.tree.map(lambda square: jnp.sqrt(hp.delta + square), stats.squares)
    return diagonal_quadratic(curvature, hp.penalty, hp.rate * stats.clock.now)


@public
def full_adagrad(delta: Scalar = 1.0) -> Process:
    """Curvature from the matrix of past gradients; decisions are vectors.

    delta: positive; the bound of the paper needs at least the norm of the largest gradient.
    """
    delta = check.positive("delta", delta)
    return Process(delta, full_init, full_update, full_at, REGULARIZER)


@own_name("full_adagrad")
def full_init(delta: Scalar, params: PyTree) -> Float[Array, "d d"]:
    if getattr(params, "ndim", 0) != 1:
        raise RefusedType("`params` must be one vector; `adagrad` takes trees.")
    return jnp.zeros((params.size, params.size), params.dtype)


def full_update(delta: Scalar, squares: Array, feedback: Feedback) -> Float[Array, "d d"]:
    g = feedback.weight * feedback.grad
    return squares + jnp.outer(g, g)


def full_at(delta: Scalar, squares: Array, context: PyTree) -> MirrorMap:
    root = spectral.apply(spectral.Curve(Partial(safe.sqrt), Partial(jnp.abs)), squares)
    return full_quadratic(delta * jnp.eye(len(squares), dtype=squares.dtype) + root)
