r"""Implicit updates: a step along the slope at where it leads, not at where it starts.

$$w_{t+1} = \arg\min_w\; \eta\, \ell(\langle w, x_t\rangle, y_t) + \tfrac12 \|w - w_t\|^2
  = w_t + \frac{s' - s}{\|x_t\|^2}\, x_t, \qquad
  s' = \arg\min_v\; \eta \|x_t\|^2 \ell(v, y_t) + \tfrac12 (v - s)^2, \quad
  s = \langle w_t, x_t\rangle.$$

The loss is kept whole, so no step overshoots, however large $\eta$ is. With the hinge it is the
passive-aggressive algorithm PA-I, with the squared loss normalized LMS.

Kivinen, Warmuth, Exponentiated Gradient versus Gradient Descent for Linear Predictors, 1997; Kulis,
Bartlett, Implicit Online Learning, 2010.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree
from optax import tree

from olx import _check as check
from olx import _safe as safe
from olx._pytree import pytree
from olx.certificate import Certificate
from olx.core import AddsContext, Feedback, Learner, Scalar, Trace
from olx.frameworks.lift import dot
from olx.losses.score import ScoreLoss, check_convex
from olx.needs import within


@pytree
class ImplicitHparams:
    eta: Scalar
    loss: ScoreLoss


class ImplicitState(NamedTuple):
    w: PyTree


def implicit(eta: Scalar, loss: ScoreLoss) -> Learner:
    r"""Predict $\langle w, x\rangle$, from $w$ = `params`, and make proximal steps on `loss`.

    eta: positive.
    loss: convex; the one the learner is played with, or the bound says nothing.

    >>> import jax.numpy as jnp, olx
    >>> learner = olx.implicit(1.0, olx.losses.squared)
    >>> rounds = olx.Rounds(jnp.ones((3, 1)), jnp.ones(3))
    >>> run = olx.rollout(
    ...     learner, olx.losses.squared, rounds, jnp.zeros(1), record=olx.record.actions
    ... )
    >>> run.trace.tolist()
    [0.0, 0.5, 0.75]
    """
    eta = check.positive("implicit", "eta", eta)
    check.instance("implicit", "loss", loss, ScoreLoss)
    if loss.prox_fn is None:
        check_convex("implicit", loss)
    hparams = ImplicitHparams(eta, loss)
    return Learner(
        hparams,
        init,
        predict,
        update,
        bound,
        separable=True,
        adds=AddsContext(_coefficient),
        needs=within(loss, "loss", "outcome"),
    )


def init(hp: ImplicitHparams, params: PyTree) -> ImplicitState:
    return ImplicitState(params)


def predict(hp: ImplicitHparams, state: ImplicitState, context: PyTree) -> Array:
    return dot(state.w, context)


def update(hp: ImplicitHparams, state: ImplicitState, feedback: Feedback) -> ImplicitState:
    return ImplicitState(tree.add_scale(state.w, _coefficient(hp, feedback), feedback.context))


def bound(hp: ImplicitHparams, trace: Trace, u: PyTree) -> Certificate:
    r"""Regret on the losses themselves, for what one step gains.

    $$\sum_{s \le t} \ell_s(w_s) - \ell_s(u) \le \frac{\|u - w_1\|^2 - \|u - w_{t+1}\|^2}{2\eta} +
      \sum_{s \le t} \delta_s, \qquad \delta_s = \ell_s(w_s) - \ell_s(w_{s+1}) -
      \frac{\|w_{s+1} - w_s\|^2}{2\eta} \le \frac{\eta \|g_s\|^2}{2}.$$
    """

    u = check.comparator("certify", u, jax.tree.map(lambda leaf: leaf[0], trace.state.w))

    def one(state: ImplicitState, feedback: Feedback):
        x, score = feedback.context, feedback.action
        new = update(hp, state, feedback).w
        step, size = _coefficient(hp, feedback), tree.vdot(x, x)
        paid = feedback.weight * feedback.value
        later = feedback.weight * feedback.loss(score + step * size)
        other = feedback.weight * feedback.loss(dot(u, x))
        gain = paid - later - step * step * size / (2 * hp.eta)
        apart = tree.sub(u, new)
        energy = hp.eta * (feedback.weight * feedback.grad) ** 2 * size / 2
        sizes = jnp.abs(paid) + jnp.abs(later) + jnp.abs(other)
        return paid - other, gain, energy, jnp.asarray(tree.vdot(apart, apart)), sizes

    left, gain, energy, far, size = jax.vmap(one)(trace.state, trace.feedback)
    apart = tree.sub(u, jax.tree.map(lambda leaf: leaf[0], trace.state.w))
    near = jnp.asarray(tree.vdot(apart, apart))
    start = (near - far) / (2 * hp.eta)
    return Certificate(
        jnp.cumsum(left),
        start + jnp.cumsum(gain),
        (near + far) / (2 * hp.eta) + jnp.cumsum(size + energy),
        near / (2 * hp.eta) + jnp.cumsum(energy),
        theorem="Kulis, Bartlett 2010",
    )


def _coefficient(hp: ImplicitHparams, feedback: Feedback) -> Array:
    size = jnp.asarray(tree.vdot(feedback.context, feedback.context))
    new = hp.loss.prox(hp.eta * feedback.weight * size, feedback.action, feedback.outcome)
    return (new - feedback.action) / safe.or_one(size)
