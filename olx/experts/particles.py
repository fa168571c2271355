r"""Online learning over a set of points, for losses of any shape.

Keep a distribution $p_t$ over fixed points $w^1, \dots, w^P$ of the decision set (a grid, a
quasi-random set, draws from a prior), an expert each, with losses $f_t(w^i)$.

- `particles` plays the mean $\sum_i p_{t,i} w^i$. Where $f_t$ is convex it pays at most
  $\langle p_t, \ell_t \rangle$, so what the expert learner guarantees to any distribution over the
  points holds for the mean.
- `gibbs` plays a point drawn from $p_t(w) \propto p_0(w) \exp(-\eta \sum_{s<t} f_s(w))$, for
  losses that need not be convex. With $\rho_t$ the range of $f_t$, for every distribution $u$,

$$\sum_t E_{p_t} f_t - E_u f_t \le \frac{RE(u \| p_0)}{\eta} + \frac\eta8 \sum_t \rho_t^2.$$

Luo, Optimal and Adaptive Online Learning, 2016, appendix A.3, algorithm 25; Zhang, Mathematical
Analysis of Machine Learning Algorithms, 2023, chapter 14.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.nn import log_softmax
from jax.scipy.special import logsumexp, xlogy
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import pytree
from olx.certificate import DOMAIN, Certificate
from olx.convex import _domain
from olx.core import Feedback, Learner, Scalar, Trace
from olx.experts._needs import prior_need
from olx.experts.sampled import draw
from olx.losses.points import linear_feedback
from olx.needs import within


@pytree
class ParticlesHparams:
    inner: Learner
    points: PyTree


@pytree
class GibbsHparams:
    eta: Scalar
    points: PyTree
    key: Array


class GibbsState(NamedTuple):
    log_weights: Float[Array, " P"]  # normalized
    key: Array


def particles(inner: Learner, points: PyTree) -> Learner:
    """Play the mean of `points` under what `inner` plays; `params` is the prior over the points.

    inner: any learner whose action is a distribution; losses must be in the range it asks for.
    points: decisions, a leading axis of length P on every leaf.

    >>> import jax.numpy as jnp, olx
    >>> points, prior = jnp.linspace(-1.0, 1.0, 41), jnp.full(41, 1 / 41)
    >>> rounds = olx.Rounds(None, jnp.full(60, 0.3))
    >>> learner = particles(olx.hedge(4.0), points)
    >>> bool(olx.rollout(learner, olx.losses.squared, rounds, prior).losses[-1] < 1e-2)
    True
    """
    check.instance("particles", "inner", inner, Learner)
    bound = None if inner.bound_fn is None else particles_bound
    needs = within(inner, "inner", "params", "weight")
    return Learner(ParticlesHparams(inner, points), init, predict, update, bound, needs=needs)


def init(hp: ParticlesHparams, params: Float[Array, " P"]) -> PyTree:
    return hp.inner.init(params)


def predict(hp: ParticlesHparams, state: PyTree, context: PyTree) -> PyTree:
    return _mean(hp.points, hp.inner.predict(state))


def update(hp: ParticlesHparams, state: PyTree, feedback: Feedback) -> PyTree:
    return hp.inner.update(state, as_experts(hp, state, feedback))


def particles_bound(hp: ParticlesHparams, trace: Trace, u: Float[Array, " P"]) -> Certificate:
    """The bound of the expert learner to a distribution `u` over the points, for convex losses."""
    seen = jax.vmap(lambda *one: as_experts(hp, *one))(trace.state, trace.feedback)
    u = check.comparator("certify", u, seen.outcome[0])
    proof = hp.inner.bound(Trace(trace.state, seen), u)
    value, weight = trace.feedback.value, trace.feedback.weight
    left = jnp.cumsum(weight * (value - seen.outcome @ u))
    scale = proof.scale + jnp.cumsum(jnp.abs(weight * value))
    return dataclasses.replace(proof, left=left, scale=scale)


def gibbs(eta: Scalar, points: PyTree, key: Array) -> Learner:
    r"""Play a point drawn from the Gibbs distribution; `params` is the prior over the points.

    eta: positive; for losses of range M over T rounds, $\sqrt{8 \ln P / (T M^2)}$.
    points: decisions, a leading axis of length P on every leaf.
    key: of `jax.random`; a batch over keys repeats the game.

    >>> import jax, jax.numpy as jnp, olx
    >>> points, prior = jnp.linspace(-1.0, 1.0, 41), jnp.full(41, 1 / 41)
    >>> wavy = lambda w, y: jnp.sin(20 * (w - y)) ** 2 + jnp.abs(w - y)
    >>> rounds = olx.Rounds(None, jnp.full(60, 0.3))
    >>> run = olx.rollout(gibbs(1.0, points, jax.random.key(0)), wavy, rounds, prior)
    >>> bool(run.losses[-10:].mean() < 0.3)
    True
    """
    eta = check.positive("gibbs", "eta", eta)
    hparams = GibbsHparams(eta, points, key)
    needs = (prior_need("gibbs"),)
    return Learner(hparams, gibbs_init, gibbs_predict, gibbs_update, gibbs_bound, needs=needs)


def gibbs_init(hp: GibbsHparams, params: Float[Array, " P"]) -> GibbsState:
    return GibbsState(log_softmax(jnp.log(params)), hp.key)


def gibbs_predict(hp: GibbsHparams, state: GibbsState, context: PyTree) -> PyTree:
    return _mean(hp.points, draw(state.key, jnp.exp(state.log_weights)))


def gibbs_update(hp: GibbsHparams, state: GibbsState, feedback: Feedback) -> GibbsState:
    losses = jax.vmap(feedback.loss)(hp.points)
    moved = state.log_weights - hp.eta * feedback.weight * losses
    return GibbsState(log_softmax(moved), jax.random.split(state.key, 1)[0])


def gibbs_bound(hp: GibbsHparams, trace: Trace, u: Float[Array, " P"]) -> Certificate:
    r"""The expected regret to a distribution `u` over the points, for losses of any shape.

    The expectation is over the draw of each round. On the right stands the exact sum
    $\frac1\eta RE(u\|p_0) + \sum_s E_{p_s} f_s + \frac1\eta \ln E_{p_s} e^{-\eta f_s}$, printed as
    in the module's head.
    """
    log_weights, weight = trace.state.log_weights, trace.feedback.weight
    u = check.comparator("certify", u, log_weights[0])
    losses = jax.vmap(lambda feedback: jax.vmap(feedback.loss)(hp.points))(trace.feedback)
    losses = losses * jnp.broadcast_to(weight, losses.shape[:1])[:, None]
    expected = jnp.sum(jnp.exp(log_weights) * losses, axis=1)
    mixed = logsumexp(log_weights - hp.eta * losses, axis=1) / hp.eta
    away = jnp.sum(xlogy(u, u) - jnp.where(u > 0, u * log_weights[0], 0.0)) / hp.eta
    spread = jnp.max(losses, axis=1) - jnp.min(losses, axis=1)
    size = jnp.abs(losses) @ u + jnp.abs(expected) + jnp.abs(mixed)
    return Certificate(
        jnp.cumsum(expected - losses @ u),
        away + jnp.cumsum(expected + mixed),
        jnp.abs(away) + jnp.cumsum(size),
        away + hp.eta / 8 * jnp.cumsum(spread**2),
        "Zhang 2023, chapter 14, Gibbs distribution",
    ).given(DOMAIN, _domain.simplex(0.0, 1.0, u))


def _mean(points: PyTree, p: Float[Array, " P"]) -> PyTree:
    return jax.tree.map(lambda leaf: jnp.tensordot(p, leaf, axes=1), points)


def as_experts(hp: ParticlesHparams, state: PyTree, feedback: Feedback) -> Feedback:
    losses = jax.vmap(feedback.loss)(hp.points)
    return linear_feedback(hp.inner.predict(state), losses, feedback.weight)
