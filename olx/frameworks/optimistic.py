r"""Optimistic follow the regularized leader: act as if the next gradient were already known.

$$w_t = \nabla f_t^*(\theta_t - \eta m_t), \qquad \theta_{t+1} = \theta_t - \eta g_t,$$

with a guess $m_t$ of $g_t$. With a mirror map as the regularizer this is optimistic mirror descent
in its lazy form. The regret depends on the errors of the guesses:

$$\eta \sum_t \langle g_t, w_t - u\rangle \le f_T(u) + \sum_t \Big( B_{f_t^*}(\theta_{t+1},
  \theta_t - \eta m_t) + f_t^*(\theta_t) - f_{t-1}^*(\theta_t) \Big), \qquad
  B \le \frac{\eta^2 \|g_t - m_t\|_*^2}{2 \beta_t}.$$

Rakhlin, Sridharan, Online Learning with Predictable Sequences, 2013.
"""

from typing import NamedTuple

from jaxtyping import PyTree
from optax import tree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import public
from olx.core import HINT, Feedback, Learner, Process, Scalar
from olx.frameworks import master
from olx.frameworks.hints import last_gradient
from olx.frameworks.master import Step
from olx.mirrors.base import MirrorMap
from olx.regularizers.growing import as_regularizer


@pytree
class OptimisticHparams:
    eta: Scalar
    regularizer: Process
    hint: Process


class OptimisticState(NamedTuple):
    theta: PyTree
    stats: PyTree
    hint: PyTree


@public
def optimistic(
    eta: Scalar, regularizer: MirrorMap | Process, hint: Process | None = None
) -> Learner:
    """Follow the regularized leader with a guess of the next gradient.

    hint: the guess: one of `olx.frameworks.hints`, or any `Process` that gives a gradient; the
        last gradient if None.

    Only the shape of `params` is used: the first decision is the minimizer of $f_1$.
    """
    eta = check.positive("eta", eta)
    hint = last_gradient() if hint is None else hint
    check.instance("hint", hint, Process)
    hint.must_give("hint", HINT)
    hparams = OptimisticHparams(eta, as_regularizer("regularizer", regularizer), hint)
    return Learner(hparams, init, predict, update, theorems=(master_inequality,))


def init(hp: OptimisticHparams, params: PyTree) -> OptimisticState:
    return OptimisticState(
        tree.zeros_like(params), hp.regularizer.init(params), hp.hint.init(params)
    )


def predict(hp: OptimisticHparams, state: OptimisticState, context: PyTree) -> PyTree:
    f = hp.regularizer.at(state.stats, context)
    return f.to_primal(_played(hp, state, context))


def update(hp: OptimisticHparams, state: OptimisticState, feedback: Feedback) -> OptimisticState:
    f = hp.regularizer.at(state.stats, feedback.context)
    return OptimisticState(
        tree.add(f.center(state.theta), _move(hp, feedback)),
        hp.regularizer.update(state.stats, feedback),
        hp.hint.update(state.hint, feedback),
    )


def step(hp: OptimisticHparams, state: OptimisticState, feedback: Feedback) -> Step:
    """The round in the notation of the lemma."""
    f = hp.regularizer.at(state.stats, feedback.context)
    played, after = _played(hp, state, feedback.context), update(hp, state, feedback).theta
    return Step(f, state.theta, played, _move(hp, feedback), feedback.action, after)


master_inequality = master.inequality(step)


def _played(hp: OptimisticHparams, state: OptimisticState, context: PyTree) -> PyTree:
    return tree.add_scale(state.theta, -hp.eta, hp.hint.at(state.hint, context))


def _move(hp: OptimisticHparams, feedback: Feedback) -> PyTree:
    return tree.scale(-hp.eta * feedback.weight, feedback.grad)
