r"""One round of a sketched Newton step: the projection, the change of the sketch, and the step.

See `olx.second_order.sketched_newton` for the rule. The weights are $\bar u + Z^\top b$.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _clock as clock
from olx import _safe as safe
from olx._clock import Clock
from olx._pytree import pytree
from olx.core import Feedback, Scalar
from olx.frameworks.lift import dot
from olx.second_order import _slab
from olx.second_order._slab import SlabHparams
from olx.second_order.sketch import Sketch, grown, product


@pytree
class SketchedNewtonHparams:
    sketch: Sketch
    alpha: Scalar
    slab: SlabHparams


class SketchedNewtonState(NamedTuple):
    base: PyTree
    mix: Array  # one number per row of `rows`; the weights are base + mix @ rows
    rows: PyTree  # the matrix Z; None without a sketch
    small: PyTree  # the state of the sketch
    clock: Clock


class Step(NamedTuple):
    base: PyTree  # the weights played are base + mix @ rows, with the rows before the round
    mix: Array
    ghat: Array  # the sketched vector is ghat * x
    delta: Array  # the rows change by delta times the sketched vector
    eta: Array
    energy: Float[Array, ""]  # g'A_t^(-1) g
    after: SketchedNewtonState


def score(state: SketchedNewtonState, x: PyTree, zx: Array) -> Array:
    """The score before the projection."""
    check.same_shape("sketched_newton", "the context", x, "`params`", state.base)
    return dot(state.base, x) + jnp.sum(state.mix * zx)


def step(hp: SketchedNewtonHparams, state: SketchedNewtonState, feedback: Feedback) -> Step:
    x, sketch, c = feedback.context, hp.sketch, feedback.weight
    zx, xx = product(state.rows, x), jnp.asarray(tree.vdot(x, x))
    pulled, spread = sketch.solve_fn(hp.alpha, state.small, zx, xx)
    plain = score(state, x, zx)
    back = safe.divide(plain - _slab.clipped(hp.slab, plain), spread)
    base, mix = tree.add_scale(state.base, -back, x), state.mix + back * pulled
    eta = _slab.eta(hp.slab, sketch.size, state.clock.now)
    slope = c * feedback.grad
    ghat = feedback.grad * safe.sqrt(c * hp.slab.curvature + c**2 * eta)
    small, delta = sketch.update(hp.alpha, state.small, ghat * zx, ghat**2 * xx)
    pulled, spread = sketch.solve_fn(hp.alpha, small, zx + delta * (ghat * xx), xx)
    push = slope / hp.alpha
    after = SketchedNewtonState(
        tree.add_scale(base, -push - jnp.sum(delta * mix) * ghat, x),
        mix + push * pulled,
        grown(state.rows, delta, tree.scale(ghat, x)),
        small,
        clock.tick(hp, state.clock, feedback),
    )
    return Step(base, mix, ghat, delta, eta, slope * push * spread, after)
