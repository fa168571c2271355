r"""Potentials that stay as they are, or grow with time or with the rows.

- `constant`: $f_t = f$.
- `growing`: $f_t = t^p f$. $p = 1/2$ gives $O(\sqrt T)$ regret for an unknown number of rounds.
  $p = 1$ with a strongly convex $f$ that is part of every loss is follow the leader on composite
  losses: its regret is logarithmic.
- `composite`: $f_t(w) = \frac{t^p}{2} \|w\|^2 + \rho t F(w)$. With $z_t = -\eta g_t$ and $\rho =
  \eta$ this is regularized dual averaging on the losses $\ell_t + F$. The penalty is not
  linearized, so $\ell_1$ gives exact zeros. $p = 0$ keeps the quadratic fixed.
- `largest_context`: $f_t = X_t^2 f$ with $X_t = \max_{s \le t} \|x_s\|_*$, for an $f$ that is
  1-strongly convex in $\|\cdot\|$. $X_t$ includes $x_t$, which is known before predicting. This
  generalizes the step size of the normalized least mean squares algorithm to any geometry.

Xiao, Dual Averaging Methods for Regularized Stochastic Learning and Online Optimization, 2010;
Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, corollary 1.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx import _check as check
from olx import _clock as clock
from olx._clock import Clock
from olx._pytree import pytree
from olx._refusal import RefusedType, own_name, public
from olx.convex.prox import Penalty
from olx.core import REGULARIZER, Feedback, Process, Scalar
from olx.mirrors.base import MirrorMap
from olx.mirrors.combinators import scale
from olx.mirrors.quadratic import quadratic


@public
def constant(mirror: MirrorMap) -> Process:
    check.instance("mirror", mirror, MirrorMap)
    parts = constant_init, constant_update, constant_at
    return Process(mirror, *parts, REGULARIZER, separable=mirror.separable)


def as_regularizer(name: str, regularizer: MirrorMap | Process) -> Process:
    """Turn a mirror map into a constant regularizer; return a regularizer as it is."""
    if isinstance(regularizer, MirrorMap):
        return constant(regularizer)
    if not isinstance(regularizer, Process):
        kind = type(regularizer).__name__
        raise RefusedType(
            f"`{name}` must be a MirrorMap or a Process made by olx.regularizers, got "
            f"{kind}; take one, as `olx.regularizers.adagrad()` or `olx.mirrors.euclidean()`."
        )
    return regularizer.must_give(name, REGULARIZER)


def constant_init(mirror: MirrorMap, params: PyTree) -> None:
    return None


def constant_update(mirror: MirrorMap, stats: None, feedback: Feedback) -> None:
    return None


def constant_at(mirror: MirrorMap, stats: None, context: PyTree) -> MirrorMap:
    return mirror


@pytree
class GrowingHparams:
    mirror: MirrorMap
    power: Scalar


@public
def growing(mirror: MirrorMap, power: Scalar = 0.5) -> Process:
    """The potential of `mirror` times $t^p$, with $t$ the round number and `power` $p$."""
    check.instance("mirror", mirror, MirrorMap)
    power = check.non_negative("power", power)
    parts = GrowingHparams(mirror, power), clock.start, clock.tick, growing_at
    return Process(*parts, REGULARIZER, separable=mirror.separable)


def growing_at(hp: GrowingHparams, stats: Clock, context: PyTree) -> MirrorMap:
    return scale(hp.mirror, stats.now**hp.power)


@pytree
class CompositeHparams:
    penalty: Penalty
    rate: Scalar
    power: Scalar


@public
def composite(penalty: Penalty, rate: Scalar, power: Scalar = 0.5) -> Process:
    """`rate` times the penalty per round, plus a quadratic that grows with `power`.

    rate: the step size of the learner, for the regret on penalized losses.
    """
    check.instance("penalty", penalty, Penalty)
    rate = check.non_negative("rate", rate)
    power = check.non_negative("power", power)
    parts = CompositeHparams(penalty, rate, power), clock.start, clock.tick, composite_at
    return Process(*parts, REGULARIZER, separable=penalty.separable)


def composite_at(hp: CompositeHparams, stats: Clock, context: PyTree) -> MirrorMap:
    t = stats.now
    return quadratic(t**hp.power, hp.penalty, hp.rate * t)


@public
def largest_context(mirror: MirrorMap) -> Process:
    r"""The potential of `mirror`, divided by its modulus, times $X_t^2$.

    mirror: must state its norm and modulus.
    """
    check.instance("mirror", mirror, MirrorMap)
    if mirror.norm is None or mirror.modulus is None:
        raise RefusedType("`mirror` must state its norm and its modulus.")
    return Process(mirror, largest_init, largest_update, largest_at, REGULARIZER)


def largest_init(mirror: MirrorMap, params: PyTree) -> Array:
    return jnp.zeros((), jnp.result_type(*jax.tree.leaves(params)))


def largest_update(mirror: MirrorMap, largest: Array, feedback: Feedback) -> Array:
    return _larger(mirror, largest, feedback.context)


def largest_at(mirror: MirrorMap, largest: Array, context: PyTree) -> MirrorMap:
    seen = _larger(mirror, largest, context)
    assert mirror.modulus is not None  # `largest_context` has checked
    # While all rows are 0 the dual is 0, and any factor gives the same decision.
    return scale(mirror, jnp.where(seen == 0, 1.0, seen * seen / mirror.modulus))


@own_name("largest_context")
def _larger(mirror: MirrorMap, largest: Array, context: PyTree) -> Array:
    if context is None:
        raise RefusedType("there is no context; put the learner in `olx.linear`.")
    assert mirror.norm is not None
    return jnp.maximum(largest, mirror.norm.dual(context))
