r"""Eager optimistic mirror descent: play after a step along the guess, learn by the gradient.

$$w_t = \nabla\psi^*\big(\nabla\psi(y_t) - \eta m_t\big), \qquad
  y_{t+1} = \nabla\psi^*\big(\nabla\psi(y_t) - \eta g_t\big).$$

The regret depends on the errors $g_t - m_t$ of the guesses:

$$\langle g_t, w_t - u\rangle \le \langle g_t - m_t, w_t - y_{t+1}\rangle + \frac{B_\psi(u, y_t) -
  B_\psi(u, y_{t+1}) - B_\psi(y_{t+1}, w_t) - B_\psi(w_t, y_t)}{\eta},$$

summed over rounds. In norms, the first term minus $B_\psi(y_{t+1}, w_t) / \eta$ is at most
$\eta \|g_t - m_t\|_*^2 / (2\beta)$.

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
from olx.frameworks import approach
from olx.frameworks.approach import Account, divergence
from olx.frameworks.hints import last_gradient
from olx.mirrors.base import MirrorMap, start_inside
from olx.theorem import DOMAIN, Certificate, Theorem


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

    hint: the guess: one of `olx.frameworks.hints`, or any `Process` that gives a gradient; the
        last gradient if None.
    """
    eta = check.positive("eta", eta)
    check.instance("mirror", mirror, MirrorMap)
    hint = last_gradient() if hint is None else hint
    check.instance("hint", hint, Process)
    hint.must_give("hint", HINT)
    hparams = OptimisticMDHparams(eta, mirror, hint)
    needs = (start_inside("optimistic_md"),)
    return Learner(hparams, init, predict, update, needs=needs, theorems=(missed_gradients,))


def init(hp: OptimisticMDHparams, params: PyTree) -> OptimisticMDState:
    return OptimisticMDState(hp.mirror.to_dual(params), hp.hint.init(params))


def predict(hp: OptimisticMDHparams, state: OptimisticMDState, context: PyTree) -> PyTree:
    guess = hp.hint.at(state.hint, context)
    return hp.mirror.to_primal(_step(hp, state.theta, 1.0, guess))


def update(
    hp: OptimisticMDHparams, state: OptimisticMDState, feedback: Feedback
) -> OptimisticMDState:
    theta = _step(hp, state.theta, feedback.weight, feedback.grad)
    return OptimisticMDState(theta, hp.hint.update(state.hint, feedback))


def open_account(hp: OptimisticMDHparams, state: OptimisticMDState, u: PyTree) -> Account:
    return approach.open_account(hp.mirror, hp.mirror.retract(state.theta), u)


def add_round(
    hp: OptimisticMDHparams,
    account: Account,
    state: OptimisticMDState,
    feedback: Feedback,
    u: PyTree,
) -> Account:
    f, eta, w = hp.mirror, hp.eta, feedback.action
    g, hint = tree.scale(feedback.weight, feedback.grad), hp.hint.at(state.hint, feedback.context)
    missed = tree.sub(g, hint)
    start = f.retract(state.theta)
    aimed = f.retract(_step(hp, state.theta, 1.0, hint))
    learned = f.retract(_step(hp, state.theta, 1.0, g))
    after = f.to_primal(learned)
    near, far = divergence(f, u, start), divergence(f, u, learned)
    back, forth = divergence(f, after, aimed), divergence(f, w, start)
    gain = eta * tree.vdot(missed, tree.sub(w, after))
    left = eta * tree.vdot(g, tree.sub(w, u))
    size = jnp.abs(gain) + near[1] + far[1] + back[1] + forth[1]
    drift, norms = gain - (back[0] + forth[0]), f.energy(missed)
    norms = None if norms is None else eta**2 * norms
    return approach.add_round(account, eta, near[0], far[0], left, drift, norms, size)


def both_sides(hp: OptimisticMDHparams, account: Account, u: PyTree) -> Certificate:
    return approach.both_sides(account).given(DOMAIN, hp.mirror.outside(u) == 0)


missed_gradients = Theorem(
    "missed_gradients", "Rakhlin, Sridharan 2013, lemma 1", open_account, add_round, both_sides
)


def _step(hp: OptimisticMDHparams, theta: PyTree, weight: Scalar, slope: PyTree) -> PyTree:
    return tree.add_scale(hp.mirror.retract(theta), -hp.eta * weight, slope)
