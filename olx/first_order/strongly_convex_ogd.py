r"""Gradient descent for strongly convex losses, with an output that forgets its beginning.

$$w_{t+1} = \nabla\psi^*\big(\nabla\psi(w_t) - \eta_t g_t\big), \quad
  \eta_t = \frac{2}{\sigma(t+1)}, \qquad \bar w_T = \sum_{t \le T} \frac{2(t+1)}{T(T+3)}\, w_t.$$

Later rounds weigh more, both in the output and in the regret, and the logarithm of
`strongly_convex_md` goes away: for losses $\sigma$-strongly convex with respect to $\psi$ the
weighted regret is at most
$2 \max_t \|g_t\|_*^2 / (\sigma\beta(T+3))$. Printed for the Euclidean norm; the proof asks for no
more than $\eta_t \langle g_t, w_t - u\rangle \le B(u, w_t) - B(u, w_{t+1}) + D_t$ with $D_t =
B_{\psi^*}(\nabla\psi(w_t) - \eta_t g_t, \nabla\psi(w_t))$, which any mirror map gives.

Zhang, Mathematical Analysis of Machine Learning Algorithms, 2023, theorem 14.12.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree
from optax import tree

from olx import _check as check
from olx import _clock as clock
from olx._clock import Clock
from olx._pytree import pytree
from olx.certificate import DOMAIN, Certificate
from olx.convex.sets import ConvexSet
from olx.core import Feedback, Learner, Scalar, Trace
from olx.frameworks.master import divergence
from olx.mirrors.base import MirrorMap
from olx.mirrors.euclidean import euclidean
from olx.mirrors.start import start_inside


@pytree
class StronglyConvexHparams:
    sigma: Scalar
    mirror: MirrorMap


class StronglyConvexState(NamedTuple):
    theta: PyTree
    mean: PyTree  # the output: of the decisions so far, the one of round t weighing t + 1
    clock: Clock


def strongly_convex_ogd(sigma: Scalar, domain: ConvexSet | None = None) -> Learner:
    r"""Steps $2/(\sigma(t+1))$ from `params`; the weighted output is `state.mean`.

    sigma: how strongly convex every loss is with respect to the potential; positive.
    domain: a set of `olx.convex.sets`; everywhere if None.

    >>> import jax.numpy as jnp, olx
    >>> learner = olx.first_order.strongly_convex_ogd(1.0)
    >>> rounds = olx.Rounds(jnp.ones((3, 1)), jnp.array([3.0, 3.0, 3.0]))
    >>> run = olx.rollout(olx.linear(learner), olx.losses.squared, rounds, jnp.zeros(1))
    >>> run.state.theta.tolist(), bool(jnp.allclose(run.state.mean, 7 / 3))
    ([3.0], True)
    """
    sigma = check.positive("strongly_convex_ogd", "sigma", sigma)
    if domain is not None:
        check.instance("strongly_convex_ogd", "domain", domain, ConvexSet)
    hparams = StronglyConvexHparams(sigma, euclidean(domain))
    needs = (start_inside("strongly_convex_ogd"),)
    return Learner(hparams, init, predict, update, bound, needs=needs)


def init(hp: StronglyConvexHparams, params: PyTree) -> StronglyConvexState:
    theta = hp.mirror.to_dual(params)
    return StronglyConvexState(theta, tree.zeros_like(params), clock.start(hp, params))


def predict(hp: StronglyConvexHparams, state: StronglyConvexState, context: PyTree) -> PyTree:
    return hp.mirror.to_primal(state.theta)


def update(
    hp: StronglyConvexHparams, state: StronglyConvexState, feedback: Feedback
) -> StronglyConvexState:
    t = state.clock.now
    share = 2 * (t + 1) / (t * (t + 3))
    mean = jax.tree.map(lambda mean, w: mean + share * (w - mean), state.mean, feedback.action)
    after = tree.add(hp.mirror.retract(state.theta), _move(hp, t, feedback))
    return StronglyConvexState(after, mean, clock.tick(hp, state.clock, feedback))


def bound(hp: StronglyConvexHparams, trace: Trace, u: PyTree) -> Certificate:
    r"""Theorem 14.12 on the losses replaced by the parabolas below them.

    $$\sum_{s \le t} \frac{2(s+1)}{t(t+3)} \big( \langle g_s, w_s - u\rangle - \sigma B_\psi(u, w_s)
      \big) \le \frac{4}{\sigma t(t+3)} \sum_{s \le t} \frac{D_s}{\eta_s^2}, \qquad
      D_s \le \frac{\eta_s^2 \|g_s\|_*^2}{2\beta}.$$
    """
    f = hp.mirror
    u = check.comparator("certify", u, jax.tree.map(lambda leaf: leaf[0], trace.feedback.action))

    def one(state: StronglyConvexState, feedback: Feedback):
        t, w = state.clock.now, feedback.action
        here, z = f.retract(state.theta), _move(hp, t, feedback)
        after = tree.add(here, z)
        ends = f.conjugate(after), f.conjugate(here), tree.vdot(z, w)
        away, apart = divergence(f, u, here)
        below = tree.vdot(z, tree.sub(u, w)) / _eta(hp, t) - hp.sigma * away
        drift = (ends[0] - ends[1] - ends[2]) / _eta(hp, t) ** 2
        size = sum(map(jnp.abs, ends)) / _eta(hp, t) ** 2
        size += (t + 1) * (jnp.abs(below) + hp.sigma * apart)
        energy = f.energy(tree.scale(feedback.weight, feedback.grad))
        return (t + 1) * below, drift, energy, size

    left, drift, energy, size = jax.vmap(one)(trace.state, trace.feedback)
    t = trace.state.clock.now
    share = 2 / (t * (t + 3))
    return Certificate(
        share * jnp.cumsum(left),
        2 * share * jnp.cumsum(drift) / hp.sigma,
        share * jnp.cumsum(size) * (1 + 2 / hp.sigma),
        None if energy is None else 4 * jax.lax.cummax(energy) / (hp.sigma * (t + 3)),
        theorem="Zhang 2023, theorem 14.12",
    ).given(DOMAIN, f.outside(u) == 0)


def _eta(hp: StronglyConvexHparams, t: Array) -> Array:
    return 2 / (hp.sigma * (t + 1))


def _move(hp: StronglyConvexHparams, t: Array, feedback: Feedback) -> PyTree:
    return tree.scale(-_eta(hp, t) * feedback.weight, feedback.grad)
