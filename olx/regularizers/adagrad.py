r"""Diagonal AdaGrad: a quadratic whose curvature per coordinate follows the past gradients.

$$f_t(w) = \frac12 \sum_i a_{t,i} w_i^2 + \rho t F(w), \qquad
  a_{t,i} = \sqrt{\delta + \textstyle\sum_{s < t} g_{s,i}^2}.$$

Duchi, Hazan, Singer, Adaptive Subgradient Methods for Online Learning and Stochastic
Optimization, 2011; Orabona, Crammer, Cesa-Bianchi, 2015, corollary 1.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import PyTree
from optax import tree

from olx import _check as check
from olx import _clock as clock
from olx._clock import Clock
from olx._pytree import pytree
from olx._refusal import public
from olx.convex.prox import Penalty
from olx.core import REGULARIZER, Feedback, Process, Scalar
from olx.mirrors.base import MirrorMap
from olx.mirrors.quadratic import quadratic


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
    hparams = AdaGradHparams(delta, penalty, rate)
    return Process(hparams, init, update, at, REGULARIZER, separable=separable)


def init(hp: AdaGradHparams, params: PyTree) -> AdaGradStats:
    return AdaGradStats(tree.zeros_like(params), clock.start(hp, params))


def update(hp: AdaGradHparams, stats: AdaGradStats, feedback: Feedback) -> AdaGradStats:
    grow = lambda square, g: square + (feedback.weight * g) ** 2
    squares = jax.tree.map(grow, stats.squares, feedback.grad)
    return AdaGradStats(squares, clock.tick(hp, stats.clock, feedback))


def at(hp: AdaGradHparams, stats: AdaGradStats, context: PyTree) -> MirrorMap:
    curvature = jax.tree.map(lambda square: jnp.sqrt(hp.delta + square), stats.squares)
    return quadratic(curvature, hp.penalty, hp.rate * stats.clock.now)
