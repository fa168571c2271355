r"""The constants of a loss at the scores of a booster, and the ball that holds them.

$$B = \min\Big\{ \eta N D,\; \inf\{ b \ge D : \eta \beta_b b^2 \ge \epsilon_b D \} \Big\}.$$

The condition stays true once it is true: $\beta_b b^2$ increases and $\epsilon_b$ decreases in $b$.

Luo, Optimal and Adaptive Online Learning, 2016, theorem 13.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.tree_util import Partial
from jaxtyping import Array, PyTree

from olx import _check as check
from olx._cache import compiled
from olx.convex.roots import root
from olx.core import Learner, Rounds, Scalar
from olx.losses.score import ScoreLoss
from olx.needs import PARTS, Need, in_range, within


@functools.partial(compiled, static=(1,))  # else every call compiles its search
def ball_radius(eta: Scalar, n: int, loss: ScoreLoss, bound: Scalar, target: Scalar) -> Array:
    """The radius of the ball; differentiable in all numbers."""
    dtype = jnp.result_type(float, eta, bound, target)
    low, high = jnp.asarray(bound, dtype), jnp.asarray(eta * n * bound, dtype)
    spare = Partial(_spare, loss, *(jnp.asarray(x, dtype) for x in (eta, bound, target)))
    inside = root(spare, low, high, low)
    radius = jnp.where(spare(high) <= 0, high, inside)
    return jnp.where(spare(low) >= 0, low, radius)


def lipschitz(loss: ScoreLoss, b: Scalar, target: Scalar) -> Array:
    assert loss.on_ball is not None  # `check_loss` has checked
    return loss.on_ball.lipschitz_fn(loss.hparams, b, target)


def smooth(loss: ScoreLoss, b: Scalar, target: Scalar) -> Array:
    assert loss.on_ball is not None  # `check_loss` has checked
    assert loss.on_ball.smooth_fn is not None
    return loss.on_ball.smooth_fn(loss.hparams, b, target)


def excess(loss: ScoreLoss, b: Scalar, target: Scalar) -> Array:
    assert loss.on_ball is not None  # `check_loss` has checked
    assert loss.on_ball.excess_fn is not None
    return loss.on_ball.excess_fn(loss.hparams, b, target)


def check_loss(owner: str, loss: Any, curved: bool = True) -> None:
    """Refuse a loss without constants.

    curved: whether it must be smooth.
    """
    check.instance(owner, "loss", loss, ScoreLoss)
    if loss.on_ball is None:
        raise TypeError(
            f"{owner}: `loss` states no constants for scores of bounded size; take one of "
            "`olx.losses`, such as `squared`, or give your loss some: "
            "`on_ball=olx.losses.BallConstants(...)`."
        )
    if curved and (loss.on_ball.smooth_fn is None or loss.on_ball.excess_fn is None):
        raise TypeError(
            f"{owner}: `loss` is not smooth; `gradient_boost_linearized` takes such losses."
        )


def check_eta(owner: str, eta: Scalar, n: int) -> Scalar:
    rounding = 1e-6 / n  # a step of 1 / n in float32 may lie just below
    return check.between(owner, "eta", eta, 1 / n, 1.0, rounding)


def needs_of(owner: str, inner: Learner, loss: ScoreLoss) -> tuple[Need, ...]:
    """The needs of a booster; the constants hold for outcomes of at most `target` only."""
    demand = "outcomes must not exceed `target` in size"
    remedy = "it is 1 unless given; give the largest size, or rescale the outcomes"
    small = Need("outcome", _within_target, demand, owner, remedy)
    return (*within(inner, "inner", *PARTS), *within(loss, "loss", "outcome"), small)


def _within_target(hparams: Any, params: PyTree, rounds: Rounds) -> PyTree:
    top = hparams.target
    if not isinstance(top, Tracer):  # of a batch: the largest one
        top = float(np.max(top)) * (1 + 1e-6)
    return jax.tree.map(lambda outcome: in_range(outcome, -top, top), rounds.outcome)


def _spare(loss: ScoreLoss, eta: Array, bound: Array, target: Array, b: Array) -> Array:
    return eta * smooth(loss, b, target) * b**2 - excess(loss, b, target) * bound
