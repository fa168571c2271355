r"""Implicit updates: a step along the gradient at the new point, not at the old one.

$$w_{t+1} = \arg\min_w\; \eta\, \ell(\langle w, x_t\rangle, y_t) + \tfrac12 \|w - w_t\|^2
  = w_t + \frac{s' - s}{\|x_t\|^2}\, x_t, \qquad
  s' = \arg\min_v\; \eta \|x_t\|^2 \ell(v, y_t) + \tfrac12 (v - s)^2, \quad
  s = \langle w_t, x_t\rangle.$$

The loss is not linearized, so no step overshoots, however large $\eta$ is. With the hinge this is
the passive-aggressive algorithm PA-I, with the squared loss it is normalized LMS.

The regret on the losses themselves is bounded by the gains $\delta_s$ of the steps:

$$\sum_{s \le t} \ell_s(w_s) - \ell_s(u) \le \frac{\|u - w_1\|^2 - \|u - w_{t+1}\|^2}{2\eta} +
  \sum_{s \le t} \delta_s, \qquad \delta_s = \ell_s(w_s) - \ell_s(w_{s+1}) -
  \frac{\|w_{s+1} - w_s\|^2}{2\eta} \le \frac{\eta \|g_s\|^2}{2}.$$

Kivinen, Warmuth, Exponentiated Gradient versus Gradient Descent for Linear Predictors, 1997; Kulis,
Bartlett, Implicit Online Learning, 2010.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree
from olx._refusal import public
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Scalar
from olx.facts import AddsContext, Facts, Rowwise
from olx.frameworks.lift import dot, transposed
from olx.losses.classes import class_rows
from olx.losses.score import ScoreLoss, check_convex
from olx.theorem import ZERO, latest, summed
from olx.wrapper import LOSS, lift_needs


@pytree
class ImplicitHparams:
    eta: Scalar
    loss: ScoreLoss


class ImplicitState(NamedTuple):
    w: PyTree


@public
def implicit(eta: Scalar, loss: ScoreLoss) -> Learner:
    r"""Predict $\langle w, x\rangle$ and make proximal steps on `loss`, starting at $w$ = `params`.

    eta: positive.
    loss: convex. The bound holds only if the game is played with the same loss. With a loss of
        classes `params` has one row of weights per class.

    >>> import jax.numpy as jnp, olx
    >>> learner = olx.implicit(1.0, olx.losses.squared)
    >>> rounds = olx.Rounds(jnp.ones((3, 1)), jnp.ones(3))
    >>> run = olx.rollout(
    ...     learner, olx.losses.squared, rounds, jnp.zeros(1), record=olx.record.actions
    ... )
    >>> run.trace.tolist()
    [0.0, 0.5, 0.75]
    """
    eta = check.positive("eta", eta)
    check.instance("loss", loss, ScoreLoss)
    if loss.prox_fn is None and loss.pull_fn is None:
        check_convex(loss)
    hparams, needs = ImplicitHparams(eta, loss), lift_needs(LOSS, loss)
    if loss.of_classes:
        needs += (class_rows("implicit"),)
    return Learner(
        hparams,
        init,
        predict,
        update,
        facts=Facts(adds=AddsContext(_coefficient), coordinates=Rowwise()),
        needs=needs,
        theorems=(proximal_steps,),
    )


def init(hp: ImplicitHparams, params: PyTree) -> ImplicitState:
    return ImplicitState(params)


def predict(hp: ImplicitHparams, state: ImplicitState, context: PyTree) -> Array:
    return dot(state.w, context)


def update(hp: ImplicitHparams, state: ImplicitState, feedback: Feedback) -> ImplicitState:
    return ImplicitState(
        tree.add(state.w, transposed(_coefficient(hp, feedback), feedback.context))
    )


class Account(NamedTuple):
    left: Float[Array, ""]
    gain: Float[Array, ""]  # the sum of delta
    energy: Float[Array, ""]  # the sum of the bounds eta |g|^2 / 2 of delta
    size: Float[Array, ""]
    near: Float[Array, ""]  # |u - w_1|^2
    far: Float[Array, ""]  # |u - w_{t+1}|^2


def start(hp: ImplicitHparams, state: ImplicitState, u: PyTree) -> Account:
    near = _distance(check.comparator(u, state.w), state.w)
    return Account(ZERO, ZERO, ZERO, ZERO, near, near)


def terms(hp: ImplicitHparams, state: ImplicitState, feedback: Feedback, u: PyTree) -> Account:
    x, score, weight = feedback.context, feedback.action, feedback.weight
    step, size = _coefficient(hp, feedback), tree.vdot(x, x)
    paid = weight * feedback.value
    later = weight * feedback.loss(score + step * size)
    other = weight * feedback.loss(dot(u, x))
    energy = hp.eta * weight**2 * jnp.vdot(feedback.grad, feedback.grad) * size / 2
    return Account(
        paid - other,
        paid - later - jnp.vdot(step, step) * size / (2 * hp.eta),
        energy,
        jnp.abs(paid) + jnp.abs(later) + jnp.abs(other) + energy,
        ZERO,
        latest(_distance(u, update(hp, state, feedback).w)),
    )


def both_sides(hp: ImplicitHparams, account: Account, u: PyTree) -> Certificate:
    near, far = account.near / (2 * hp.eta), account.far / (2 * hp.eta)
    return Certificate(
        account.left, near - far + account.gain, near + far + account.size, near + account.energy
    )


proximal_steps = summed("proximal_steps", "Kulis, Bartlett 2010", terms, both_sides, start)


def _distance(u: PyTree, w: PyTree) -> Array:
    apart = tree.sub(u, w)
    return jnp.asarray(tree.vdot(apart, apart))


def _coefficient(hp: ImplicitHparams, feedback: Feedback) -> Array:
    size = jnp.asarray(tree.vdot(feedback.context, feedback.context))
    rate, score, y = hp.eta * feedback.weight, feedback.action, feedback.outcome
    if hp.loss.pull_fn is None:
        return (hp.loss.prox(rate * size, score, y) - score) / safe.or_one(size)
    pull = hp.loss.pull(safe.or_one(rate * size), score, y)
    return jnp.where(rate * size > 0, -rate * pull, 0.0)
