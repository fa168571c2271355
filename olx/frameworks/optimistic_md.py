r"""Optimistic mirror descent, eager: a step along the guess to act, one down the slope to learn.

$$w_t = \nabla\psi^*\big(\nabla\psi(y_t) - \eta m_t\big), \qquad
  y_{t+1} = \nabla\psi^*\big(\nabla\psi(y_t) - \eta g_t\big).$$

Rakhlin, Sridharan, Online Learning with Predictable Sequences, 2013, lemma 1.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import PyTree
from optax import tree

from olx import _check as check
from olx._pytree import pytree
from olx.certificate import DOMAIN, Certificate
from olx.core import Feedback, Learner, Process, Scalar, Trace
from olx.frameworks.hints import last_gradient
from olx.frameworks.master import approached, divergence
from olx.mirrors.base import MirrorMap
from olx.mirrors.start import start_inside


@pytree
class OptimisticMDHparams:
    eta: Scalar
    mirror: MirrorMap
    hint: Process


class OptimisticMDState(NamedTuple):
    theta: PyTree  # the dual of y
    hint: PyTree


def optimistic_md(eta: Scalar, mirror: MirrorMap, hint: Process | None = None) -> Learner:
    """Mirror descent from `params` with a guess of the next gradient.

    hint: one of `olx.frameworks.hints`, or any `Process` that gives a gradient; the last gradient
        if None.
    """
    eta = check.positive("optimistic_md", "eta", eta)
    check.instance("optimistic_md", "mirror", mirror, MirrorMap)
    hint = last_gradient() if hint is None else hint
    check.instance("optimistic_md", "hint", hint, Process)
    hparams = OptimisticMDHparams(eta, mirror, hint)
    needs = (start_inside("optimistic_md"),)
    return Learner(hparams, init, predict, update, bound, needs=needs)


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


def bound(hp: OptimisticMDHparams, trace: Trace, u: PyTree) -> Certificate:
    r"""The regret is paid for what the guess misses.

    $$\langle g_t, w_t - u\rangle \le \langle g_t - m_t, w_t - y_{t+1}\rangle +
      \frac{B_\psi(u, y_t) - B_\psi(u, y_{t+1}) - B_\psi(y_{t+1}, w_t) - B_\psi(w_t, y_t)}{\eta},$$

    added up over rounds; with norms, the first term less $B_\psi(y_{t+1}, w_t) / \eta$ is at most
    $\eta \|g_t - m_t\|_*^2 / (2\beta)$.
    """
    f = hp.mirror
    u = check.comparator("certify", u, jax.tree.map(lambda leaf: leaf[0], trace.feedback.action))

    def one(state: OptimisticMDState, feedback: Feedback):
        w, g = feedback.action, tree.scale(feedback.weight, feedback.grad)
        missed = tree.sub(g, hp.hint.at(state.hint, feedback.context))
        start = f.retract(state.theta)
        aimed = f.retract(_step(hp, state.theta, 1.0, hp.hint.at(state.hint, feedback.context)))
        learned = f.retract(_step(hp, state.theta, 1.0, g))
        after = f.to_primal(learned)
        near, far = divergence(f, u, start), divergence(f, u, learned)
        back, forth = divergence(f, after, aimed), divergence(f, w, start)
        gain = tree.vdot(missed, tree.sub(w, after))
        exact = gain - (back[0] + forth[0]) / hp.eta
        left = tree.vdot(g, tree.sub(w, u))
        sizes = near[1] + far[1] + back[1] + forth[1]
        size = jnp.abs(gain) + sizes / hp.eta
        norms = f.energy(missed)
        return left, near[0], far[0], exact, None if norms is None else hp.eta * norms, size

    left, near, far, exact, norms, size = jax.vmap(one)(trace.state, trace.feedback)
    moved = approached(near, far, hp.eta * jnp.ones_like(near))
    proof = Certificate(
        jnp.cumsum(left),
        moved + jnp.cumsum(exact),
        jnp.cumsum(size),
        None if norms is None else moved + jnp.cumsum(norms),
        theorem="Rakhlin, Sridharan 2013, lemma 1",
    )
    return proof.given(DOMAIN, f.outside(u) == 0)


def _step(hp: OptimisticMDHparams, theta: PyTree, weight: Scalar, slope: PyTree) -> PyTree:
    return tree.add_scale(hp.mirror.retract(theta), -hp.eta * weight, slope)
