r"""Implicit Newton steps, in the unit of each feature.

A proximal step in the geometry of a matrix that adds the curvature of the losses. With the margin
$m = \langle w_t, x_t\rangle$ and the spread $\chi = x_t^\top A_t^{-1} x_t$,

$$w_{t+1} = \arg\min_w\; \ell(\langle w, x_t\rangle, y_t) + \tfrac12 \|w - w_t\|_{A_t}^2
  = w_t - \ell'(s) A_t^{-1} x_t, \qquad
  s = \arg\min_v\; \chi\, \ell(v, y_t) + \tfrac12 (v - m)^2,$$
$$A_{t+1} = A_t + h x_t x_t^\top, \qquad h = \ell''(s).$$

With the squared loss this is recursive least squares, as in `ridge`. With the logistic loss it is
the approximation of Laplace in the regression of Bayes: $w_{t+1}$ is the most likely one for a
normal prior around $w_t$, and $A_{t+1}$ is the curvature there. Since the step is implicit, the
score of the row never passes the minimum of its loss.

The first matrix is $A_1 = a\, \mathrm{diag}(f_1^2, \dots, f_d^2)$, where $f_i$ is the first value
of feature $i$ that is not 0. Before it the feature plays no role, so $f_i$ is known in time. If a
feature is multiplied by a number, no score changes. If the loss is squared and the outcomes are
multiplied by a number, all scores are too.

For every $u$, with $D_s$ the Bregman divergence of the loss of round $s$ in the score,

$$\sum_{s \le t} \ell_s(w_s) - \ell_s(u) \le \frac a2 \sum_i (f_i u_i)^2 +
  \sum_{s \le t} \Big( \ell_s(w_s) - \ell_s(w_{s+1}) - \tfrac12 \|w_{s+1} - w_s\|_{A_s}^2 \Big) +
  \sum_{s \le t} \Big( \tfrac{h_s}2 r_s^2 - D_s \Big), \quad
  r_s = \langle u - w_{s+1}, x_s\rangle.$$

The first sum is what the steps gain, at most $\frac12 \sum_s \ell_s'(w_s)^2 x_s^\top A_s^{-1} x_s$.
The second one is 0 for the squared loss; for the logistic loss, where $|\ell'''| \le \ell''$, it is
at most $\sum_s h_s |r_s|^3 / 6$. Proof: by the rule, $\ell'(s) \langle x_t, w_{t+1} - u\rangle =
\frac12 \|u - w_t\|_{A_t}^2 - \frac12 \|u - w_{t+1}\|_{A_t}^2 - \frac12 \|w_{t+1} - w_t\|_{A_t}^2$,
and the second of these norms is that of $A_{t+1}$ but for $h r_t^2$.

Kulis, Bartlett, Implicit Online Learning, 2010, for the steps; Azoury, Warmuth, Relative Loss
Bounds for On-line Density Estimation, 2001, for the squared loss; Spiegelhalter, Lauritzen,
Sequential Updating of Conditional Probabilities on Directed Graphical Structures, 1990, for the
logistic loss.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree
from olx._refusal import RefusedValue, public
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Scalar
from olx.frameworks.lift import dot
from olx.losses.score import ScoreLoss, check_convex
from olx.second_order.rank_one import vector
from olx.theorem import ZERO, latest, summed
from olx.wrapper import LOSS, lift_needs


@pytree
class ImplicitNewtonHparams:
    loss: ScoreLoss
    a: Scalar


class ImplicitNewtonState(NamedTuple):
    w: Float[Array, " d"]
    root: Float[Array, "d d"]  # S, with A^-1 = S S'; rows of features that were always 0 are 0
    units: Float[Array, " d"]  # |f|; 0 if the feature was always 0


@public
def implicit_newton(loss: ScoreLoss, a: Scalar = 1.0) -> Learner:
    r"""A linear predictor without a step size; units of features do not matter.

    loss: convex and smooth, of one score. Play the game with the same loss.
    a: positive; how many rows the prior counts for.

    The context is shaped like `params`; only the shape of `params` is used: the first weights are
    0. A feature below the root of the smallest float counts as 0 until it is larger.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(jnp.array([[3.0, 1.0], [2.0, -1.0]]), jnp.array([1.0, -1.0]))
    >>> stretched = rounds._replace(context=rounds.context * jnp.array([1024.0, 0.5]))
    >>> learner = olx.second_order.implicit_newton(olx.losses.logistic)
    >>> play = lambda rounds: olx.rollout(learner, olx.losses.logistic, rounds, jnp.zeros(2)).losses
    >>> bool(jnp.allclose(play(rounds), play(stretched)))
    True
    """
    check.instance("loss", loss, ScoreLoss)
    if loss.of_classes or (loss.on_ball is not None and loss.on_ball.smooth_fn is None):
        raise RefusedValue(
            f"`loss` must be a smooth loss of one score, got {loss!r}; without curvature the "
            "steps never become smaller. `olx.first_order.normalized_adagrad` takes any loss."
        )
    if loss.prox_fn is None and loss.pull_fn is None:
        check_convex(loss)
    hparams = ImplicitNewtonHparams(loss, check.positive("a", a))
    needs = lift_needs(LOSS, loss)
    return Learner(hparams, init, predict, update, needs=needs, theorems=(newton_steps,))


def init(hp: ImplicitNewtonHparams, params: PyTree) -> ImplicitNewtonState:
    w = jnp.zeros_like(vector(params))
    return ImplicitNewtonState(w, jnp.zeros((w.size, w.size), w.dtype), w)


def predict(hp: ImplicitNewtonHparams, state: ImplicitNewtonState, context: PyTree) -> Array:
    return dot(state.w, vector(context))


def update(
    hp: ImplicitNewtonHparams, state: ImplicitNewtonState, feedback: Feedback
) -> ImplicitNewtonState:
    units, root, now = _look(hp, state, feedback)
    along = root @ now.phi
    growth = feedback.weight * now.curvature
    kept = jnp.sqrt(1 + growth * now.spread)
    shrink = growth / (kept + kept**2)
    return ImplicitNewtonState(
        state.w - feedback.weight * now.slope * along,
        root - jnp.outer(shrink * along, now.phi),
        units,
    )


class Look(NamedTuple):
    """What a round is, after its outcome is known."""

    phi: Float[Array, " d"]  # S'x
    spread: Array
    score: Array  # of the row after the step
    slope: Array  # of the loss there
    curvature: Array


def _look(
    hp: ImplicitNewtonHparams, state: ImplicitNewtonState, feedback: Feedback
) -> tuple[Array, Array, Look]:
    """The units and the root with the features that are new, and the round."""
    x, y = vector(feedback.context), feedback.outcome
    fresh = (state.units == 0) & (jnp.abs(x) > float(jnp.finfo(x.dtype).tiny) ** 0.5)
    size = jnp.where(fresh, jnp.abs(x), 1.0)
    units = jnp.where(fresh, size, state.units)
    first = jnp.where(fresh, 1 / (size * jnp.sqrt(hp.a)), 0.0)
    root = state.root + first * jnp.eye(x.size, dtype=x.dtype)
    phi = x @ root
    spread, margin = jnp.vdot(phi, phi), dot(state.w, x)
    step = feedback.weight * spread
    score = jnp.where(step > 0, hp.loss.prox(safe.or_one(step), margin, y), margin)
    slope_of = lambda score: hp.loss.value_and_slope(score, y)[1]
    slope, curvature = jax.jvp(slope_of, (score,), (jnp.ones_like(score),))
    return units, root, Look(phi, spread, score, slope, jnp.maximum(curvature, 0.0))


class Account(NamedTuple):
    left: Float[Array, ""]
    start: Float[Array, ""]  # the sum of a (f u)^2 / 2
    gain: Float[Array, ""]
    bend: Float[Array, ""]  # the sum of h r^2 / 2 - D
    size: Float[Array, ""]
    energy: Float[Array, ""]  # the sum of the bounds of the gains


def start(hp: ImplicitNewtonHparams, state: ImplicitNewtonState, u: PyTree) -> Account:
    check.comparator(vector(u), state.w)
    return Account(*[ZERO] * 6)


def terms(
    hp: ImplicitNewtonHparams, state: ImplicitNewtonState, feedback: Feedback, u: PyTree
) -> Account:
    units, _, now = _look(hp, state, feedback)
    c, y, flat = feedback.weight, feedback.outcome, vector(u)
    along = jnp.vdot(flat, vector(feedback.context))
    paid, later, other = feedback.value, hp.loss(now.score, y), hp.loss(along, y)
    r = along - now.score
    gain = paid - later - c * now.slope**2 * now.spread / 2
    bend = now.curvature * r**2 / 2 - (other - later - now.slope * r)
    size = jnp.abs(paid) + jnp.abs(later) + jnp.abs(other) + now.curvature * r**2
    energy = c * jnp.vdot(feedback.grad, feedback.grad) * now.spread / 2
    return Account(
        c * (paid - other),
        latest(hp.a / 2 * jnp.vdot(units * flat, units * flat)),
        c * gain,
        c * bend,
        c * (size + energy + jnp.abs(now.slope * r)),
        c * energy,
    )


def both_sides(hp: ImplicitNewtonHparams, account: Account, u: PyTree) -> Certificate:
    shared = account.start + account.bend
    return Certificate(
        account.left, shared + account.gain, account.start + account.size, shared + account.energy
    )


newton_steps = summed(
    "newton_steps", "Kulis, Bartlett 2010, in the norm of A", terms, both_sides, start
)
