r"""Normalized adaptive gradient (NAG), the default learner of Vowpal Wabbit.

A linear predictor with $\hat y_t = \langle w_t, x_t \rangle$ and a step size per coordinate that
adapts to the scale of its feature. With $s_{t,i} = \max_{r \le t} |x_{r,i}|$, which includes $x_t$,
the slope $\ell'_t$ of the loss at $\hat y_t$, and rounds of importance $p_t$,

$$G_{t,i} = \sum_{r \le t} p_r (\ell'_r x_{r,i})^2, \qquad
  N_t = \sum_{r \le t} p_r \sum_i \frac{x_{r,i}^2}{s_{r,i}^2}, \qquad
  c_{t,i} = \sqrt{\frac{\sum_{r \le t} p_r}{N_t}}\, \frac{x_{t,i}}{s_{t,i} \sqrt{G_{t,i}}}.$$

A step along $-c_t$ changes the score by $q_t = \langle c_t, x_t \rangle$ per unit. Steps are safe:

$$w_{t+1} = w_t - \ell'_t\, \frac{1 - e^{-\kappa \eta p_t q_t}}{\kappa q_t}\, c_t.$$

For a loss of curvature $\kappa$ in the score, such as the squared loss with $\kappa = 1$, this is
where infinitely many small steps on the same row lead: the score does not pass the label, and one
round of importance 2 is like two rounds. For small $\eta$ it is the step $\eta p_t \ell'_t c_t$.

If $|x_{t,i}|$ is a new maximum, $w_i$ is first multiplied by $s_{t-1,i} / s_{t,i}$. The state keeps
$v_i = w_i s_i$, which this does not change. Multiplying a feature by a constant in all rounds
changes no prediction.

Vowpal Wabbit computes the slope at a score that is clipped to the range of the labels; for labels
of -1 and +1 that is the slope of `olx.losses.modified_huber`. It differs from the paper, and from
this page, in two details: $w_i$ is multiplied after the score of a new maximum and not before it,
and $N_t$ does not count rounds of slope 0.

Ross, Mineiro, Langford, Normalized Online Learning, 2013, algorithm 2; Karampatziakis, Langford,
Online Importance Weight Aware Updates, 2011, for the steps.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric
from olx import _numeric as safe
from olx._numeric import Sum
from olx._pytree import pytree
from olx._refusal import own_name, public
from olx.core import Feedback, Learner, Scalar
from olx.facts import Facts, Rowwise


@pytree
class NAGHparams:
    eta: Scalar
    curvature: Scalar


class NAGState(NamedTuple):
    v: PyTree  # the weights times the largest features
    largest: PyTree  # s
    squares: PyTree  # G
    norms: Sum  # N
    weight: Sum  # of all rounds


@public
def normalized_adagrad(eta: Scalar, curvature: Scalar = 1.0) -> Learner:
    r"""A linear predictor with adaptive, normalized and safe steps.

    eta: positive; a number near 0.5 suits most data, whatever the scales of features and loss.
    curvature: $\kappa$, positive: of the loss in the score, or an upper bound of it; 1 for
        `squared` and `modified_huber`, 1/4 for `logistic`.

    The context is shaped like `params`; only the shape of `params` is used.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(jnp.array([[3.0, 1.0], [2.0, -1.0]]), jnp.array([1.0, -1.0]))
    >>> stretched = rounds._replace(context=rounds.context * jnp.array([1024.0, 0.5]))
    >>> learner = olx.first_order.normalized_adagrad(0.5)
    >>> play = lambda rounds: olx.rollout(learner, olx.losses.squared, rounds, jnp.zeros(2)).losses
    >>> bool(jnp.allclose(play(rounds), play(stretched)))
    True
    """
    eta = check.positive("eta", eta)
    curvature = check.positive("curvature", curvature)
    facts = Facts(coordinates=Rowwise())
    return Learner(NAGHparams(eta, curvature), init, predict, update, facts=facts)


def init(hp: NAGHparams, params: PyTree) -> NAGState:
    zeros = tree.zeros_like(params)
    none = _numeric.start(jnp.zeros((), jnp.result_type(*jax.tree.leaves(params))))
    return NAGState(zeros, zeros, zeros, none, none)


@own_name("normalized_adagrad")
def predict(hp: NAGHparams, state: NAGState, context: PyTree) -> Float[Array, ""]:
    check.same_shape("the context", context, "`params`", state.v)
    return jnp.asarray(tree.vdot(state.v, _scaled(context, _larger(state, context))))


def update(hp: NAGHparams, state: NAGState, feedback: Feedback) -> NAGState:
    x, slope = feedback.context, feedback.grad
    largest = _larger(state, x)
    units = _scaled(x, largest)
    own = jnp.asarray(feedback.weight, state.weight.value.dtype)
    norms = _numeric.add(state.norms, own * tree.vdot(units, units))
    weight = _numeric.add(state.weight, own)
    squares = jax.tree.map(lambda past, x: past + own * (slope * x) ** 2, state.squares, x)
    level = safe.sqrt(safe.divide(weight.value, norms.value))
    steps = jax.tree.map(lambda x, g: level * safe.divide(x, safe.sqrt(g)), x, squares)  # c s
    q = jnp.asarray(tree.vdot(steps, units))
    size = slope * safe.divide(
        -jnp.expm1(-hp.curvature * hp.eta * own * q), hp.curvature * q, otherwise=hp.eta * own
    )
    v = jax.tree.map(lambda v, step: v - size * step, state.v, steps)
    return NAGState(v, largest, squares, norms, weight)


def weights(state: NAGState) -> PyTree:
    """The weights of the linear predictor."""
    return _scaled(state.v, state.largest)


def _larger(state: NAGState, context: PyTree) -> PyTree:
    return jax.tree.map(lambda s, x: jnp.maximum(s, jnp.abs(x)), state.largest, context)


def _scaled(values: PyTree, largest: PyTree) -> PyTree:
    return jax.tree.map(safe.divide, values, largest)
