r"""Optimistic learners: act as if the next gradient were already known, by a guess $m_t$ of $g_t$.

Follow the regularized leader, the lazy form, with $f_t$ a mirror map or a regularizer that changes:

$$w_t = \nabla f_t^*(\theta_t - \eta m_t), \qquad \theta_{t+1} = \theta_t - \eta g_t.$$

Eager mirror descent plays after a step along the guess, and learns by the gradient:

$$w_t = \nabla\psi^*\big(\nabla\psi(y_t) - \eta m_t\big), \qquad
  y_{t+1} = \nabla\psi^*\big(\nabla\psi(y_t) - \eta g_t\big).$$

The regret depends on the errors of the guesses. For the lazy form it is the master inequality,

$$\eta \sum_t \langle g_t, w_t - u\rangle \le f_T(u) + \sum_t \Big( B_{f_t^*}(\theta_{t+1},
  \theta_t - \eta m_t) + f_t^*(\theta_t) - f_{t-1}^*(\theta_t) \Big), \qquad
  B \le \frac{\eta^2 \|g_t - m_t\|_*^2}{2 \beta_t},$$

and for the eager one, summed over rounds,

$$\langle g_t, w_t - u\rangle \le \langle g_t - m_t, w_t - y_{t+1}\rangle + \frac{B_\psi(u, y_t) -
  B_\psi(u, y_{t+1}) - B_\psi(y_{t+1}, w_t) - B_\psi(w_t, y_t)}{\eta},$$

where the first term minus $B_\psi(y_{t+1}, w_t) / \eta$ is at most $\eta \|g_t - m_t\|_*^2 /
(2\beta)$.

Rakhlin, Sridharan, Online Learning with Predictable Sequences, 2013, lemma 1.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import PyTree
from optax import tree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import public
from olx.core import HINT, Feedback, Learner, Process, Scalar
from olx.frameworks import accounts
from olx.frameworks.accounts import Approach, Step
from olx.frameworks.hints import last_gradient
from olx.mirrors.base import MirrorMap, curved_start, start_inside
from olx.regularizers.growing import as_regularizer
from olx.theorem import Theorem


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
    hint = _checked_hint(hint)
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


master_inequality = accounts.master_inequality(step)


def _played(hp: OptimisticHparams, state: OptimisticState, context: PyTree) -> PyTree:
    return tree.add_scale(state.theta, -hp.eta, hp.hint.at(state.hint, context))


def _move(hp: OptimisticHparams, feedback: Feedback) -> PyTree:
    return tree.scale(-hp.eta * feedback.weight, feedback.grad)


@pytree
class OptimisticMDHparams:
    eta: Scalar
    mirror: MirrorMap
    hint: Process


class OptimisticMDState(NamedTuple):
    theta: PyTree  # the dual of y
    hint: PyTree


@public
def optimistic_md(eta: Scalar, mirror: MirrorMap, hint: Process | None = None) -> Learner:
    """Mirror descent from `params` with a guess of the next gradient.

    hint: as in `optimistic`.
    """
    eta = check.positive("eta", eta)
    check.instance("mirror", mirror, MirrorMap)
    hint = _checked_hint(hint)
    hparams = OptimisticMDHparams(eta, mirror, hint)
    needs = (start_inside("optimistic_md"), curved_start("optimistic_md"))
    return Learner(
        hparams, md_init, md_predict, md_update, needs=needs, theorems=(missed_gradients,)
    )


def md_init(hp: OptimisticMDHparams, params: PyTree) -> OptimisticMDState:
    return OptimisticMDState(hp.mirror.to_dual(params), hp.hint.init(params))


def md_predict(hp: OptimisticMDHparams, state: OptimisticMDState, context: PyTree) -> PyTree:
    guess = hp.hint.at(state.hint, context)
    return hp.mirror.to_primal(_step(hp, state.theta, 1.0, guess))


def md_update(
    hp: OptimisticMDHparams, state: OptimisticMDState, feedback: Feedback
) -> OptimisticMDState:
    theta = _step(hp, state.theta, feedback.weight, feedback.grad)
    return OptimisticMDState(theta, hp.hint.update(state.hint, feedback))


def add_round(
    hp: OptimisticMDHparams,
    account: Approach,
    state: OptimisticMDState,
    feedback: Feedback,
    u: PyTree,
) -> Approach:
    f, eta, w = hp.mirror, hp.eta, feedback.action
    g, hint = tree.scale(feedback.weight, feedback.grad), hp.hint.at(state.hint, feedback.context)
    missed = tree.sub(g, hint)
    start = f.retract(state.theta)
    aimed = f.retract(_step(hp, state.theta, 1.0, hint))
    learned = f.retract(_step(hp, state.theta, 1.0, g))
    after = f.to_primal(learned)
    near, far = accounts.divergence(f, u, start), accounts.divergence(f, u, learned)
    back, forth = accounts.divergence(f, after, aimed), accounts.divergence(f, w, start)
    gain = eta * tree.vdot(missed, tree.sub(w, after))
    left = eta * tree.vdot(g, tree.sub(w, u))
    size = jnp.abs(gain) + near[1] + far[1] + back[1] + forth[1]
    drift, norms = gain - (back[0] + forth[0]), f.energy(missed)
    norms = None if norms is None else eta**2 * norms
    return accounts.add_approach(account, eta, near[0], far[0], left, drift, norms, size)


missed_gradients = Theorem(
    "missed_gradients",
    "Rakhlin, Sridharan 2013, lemma 1",
    accounts.open_approach,
    add_round,
    accounts.approach_sides,
)


def _step(hp: OptimisticMDHparams, theta: PyTree, weight: Scalar, slope: PyTree) -> PyTree:
    return tree.add_scale(hp.mirror.retract(theta), -hp.eta * weight, slope)


def _checked_hint(hint: Process | None) -> Process:
    """The guess; the last gradient if None."""
    hint = last_gradient() if hint is None else hint
    check.instance("hint", hint, Process)
    return hint.must_give("hint", HINT)
