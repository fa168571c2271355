r"""Ader: small regret to every sequence of points, the smaller the shorter its path.

Projected gradient descent with step sizes $\eta_i = 2^{i-1} \frac DG \sqrt{\frac7{2T}}$, $i = 1,
\dots, N$, in a set of diameter $D$. All copies take the gradient $g_t$ at the point that is played,
which is their mean with the weights of Hedge on $\langle g_t, x_t^i\rangle$:

$$x_t = \sum_i p_t^i x_t^i, \qquad x_{t+1}^i = \Pi(x_t^i - \eta_i g_t), \qquad p_{t+1}^i \propto
  p_t^i e^{-\alpha \langle g_t, x_t^i \rangle}, \qquad \alpha = \frac1{G D} \sqrt{\frac2T},$$

from $p_1^i \propto 1 / i (i + 1)$. For every sequence $u_1, \dots, u_t$ of points in the set, with
the path length $P_t = \sum_{s < t} \|u_{s+1} - u_s\|$ and the mixability gap $\delta_s$ of Hedge,

$$\sum_{s \le t} \langle g_s, x_s - u_s\rangle \le \min_i\; \frac{\ln(1 / p_1^i)}\alpha +
  \sum_{s \le t} \Big( \delta_s + \frac{\|x_s^i - u_s\|^2 - \|x_{s+1}^i - u_s\|^2}{2 \eta_i} +
  \frac{\eta_i \|g_s\|^2}2 \Big)$$
$$\le \min_i\; \frac{\ln(1 / p_1^i)}\alpha + \frac{\alpha D^2}8 \sum_{s \le t} \|g_s\|^2 +
  \frac{D^2 + 2 D P_t}{2 \eta_i} + \frac{\eta_i}2 \sum_{s \le t} \|g_s\|^2.$$

One of the step sizes is within a factor of 2 of the best for every path, so the regret is of order
$G \sqrt{T (D^2 + D P_T)}$ for gradients up to $G$, which no learner can improve.

Zhang, Lu, Zhou, Adaptive Online Learning in Dynamic Environments, 2018, algorithms 3 and 4.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import log_softmax
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import public
from olx.certificate import Certificate
from olx.convex.sets import ConvexSet
from olx.core import Feedback, Learner, Scalar
from olx.meta import _paths as paths
from olx.meta.mix import mean
from olx.theorem import About, Theorem


@pytree
class AderHparams:
    domain: ConvexSet
    diameter: Scalar
    lipschitz: Scalar
    rounds: int = static()


class AderState(NamedTuple):
    points: PyTree  # of all copies, along a first axis
    log_weights: Float[Array, " N"]


@public
def ader(domain: ConvexSet, diameter: Scalar, rounds: int, lipschitz: Scalar = 1.0) -> Learner:
    """Mix gradient descents of several step sizes, to track points that move by any amount.

    domain: a bounded set of `olx.convex.sets`; the first point is the one next to `params`.
    diameter: $D$, the largest distance of two points of it; 2 for a ball of radius 1.
    rounds: $T$, the number of rounds, about; it sets the step sizes, whose number grows as its
        logarithm.
    lipschitz: $G$, the largest norm of a gradient, about.

    `olx.theorems.path_regret` is the theorem; its `u` has a row for every round.

    >>> import jax.numpy as jnp, numpy as np, olx
    >>> path = np.linspace([-1.0, 0.0], [0.0, 1.0], 200) / 2
    >>> learner = olx.meta.ader(olx.convex.sets.ball(1.0), diameter=2.0, rounds=200)
    >>> game = lambda w, y: jnp.sum((w - y) ** 2) / 4, olx.Rounds(None, path), jnp.zeros(2)
    >>> proof = olx.certify(learner, *game, path, theorems=(olx.theorems.path_regret,))
    >>> bool(proof.holds)
    True
    """
    check.instance("domain", domain, ConvexSet)
    diameter = check.positive("diameter", diameter)
    check.count("rounds", rounds)
    lipschitz = check.positive("lipschitz", lipschitz)
    return Learner(AderHparams(domain, diameter, lipschitz, int(rounds)), init, predict, update)


def init(hp: AderHparams, params: PyTree) -> AderState:
    first, copies = hp.domain.project(params), _copies(hp)
    points = jax.tree.map(lambda leaf: jnp.stack([jnp.asarray(leaf)] * copies), first)
    return AderState(points, _log_prior(hp, paths.dtype_of(params)))


def predict(hp: AderHparams, state: AderState, context: PyTree) -> PyTree:
    return mean(jnp.exp(log_softmax(state.log_weights)), state.points)


def update(hp: AderHparams, state: AderState, feedback: Feedback) -> AderState:
    g = tree.scale(feedback.weight, feedback.grad)
    step = lambda eta, x: hp.domain.project(tree.add_scale(x, -eta, g))
    points = jax.vmap(step)(_steps(hp, state.log_weights.dtype), state.points)
    lost = _rate(hp) * paths.products(state.points, g)
    return AderState(points, log_softmax(state.log_weights - lost))


class Account(NamedTuple):
    path: paths.Path
    gaps: Float[Array, ""]  # of Hedge
    squares: Float[Array, ""]  # of the norms of gradients
    nearer: Float[Array, " N"]  # the sums of differences of squared distances


def open_account(hp: AderHparams, state: AderState, u: PyTree) -> Account:
    none = jnp.zeros_like(state.log_weights)
    return Account(paths.open_path(u, state.points), none[0], none[0], none)


def add_round(
    hp: AderHparams, account: Account, state: AderState, feedback: Feedback, u: PyTree
) -> Account:
    g, new = tree.scale(feedback.weight, feedback.grad), update(hp, state, feedback)
    before, after = paths.squares(state.points, u), paths.squares(new.points, u)
    lost, rate = paths.products(state.points, g), _rate(hp)
    log_p = log_softmax(state.log_weights)
    gap = jnp.exp(log_p) @ lost + logsumexp(log_p - rate * lost) / rate
    farthest = jnp.maximum(jnp.max(before), jnp.max(after))
    return Account(
        paths.add_path(hp, account.path, feedback, u, farthest, jnp.max(jnp.abs(lost))),
        account.gaps + gap,
        account.squares + tree.norm(g, squared=True),
        account.nearer + (before - after),
    )


def both_sides(hp: AderHparams, account: Account, u: PyTree) -> Certificate:
    dtype, rate, d = account.gaps.dtype, _rate(hp), hp.diameter
    steps = _steps(hp, dtype)
    chosen = -_log_prior(hp, dtype) / rate + steps / 2 * account.squares
    right = chosen + account.gaps + account.nearer / (2 * steps)
    far = (d**2 + 2 * d * account.path.length) / (2 * steps)
    published = jnp.min(chosen + rate * d**2 / 8 * account.squares + far)
    best = jnp.argmin(right)
    return paths.proof(account.path, right[best], published, chosen[best] + far[best])


path_regret = Theorem(
    "path_regret",
    "Zhang, Lu, Zhou 2018, theorem 4",
    open_account,
    add_round,
    both_sides,
    about=About("an `ader`", lambda one: isinstance(one.hparams, AderHparams)),
    sequence=True,
)


def _copies(hp: AderHparams) -> int:
    return int(np.ceil(0.5 * np.log2(1 + 4 * hp.rounds / 7))) + 1


def _steps(hp: AderHparams, dtype: jnp.dtype) -> Float[Array, " N"]:
    powers = jnp.asarray(2.0 ** np.arange(_copies(hp)) * np.sqrt(3.5 / hp.rounds), dtype)
    return hp.diameter / hp.lipschitz * powers


def _rate(hp: AderHparams) -> Scalar:
    return float(np.sqrt(2 / hp.rounds)) / (hp.lipschitz * hp.diameter)


def _log_prior(hp: AderHparams, dtype: jnp.dtype) -> Float[Array, " N"]:
    i, copies = np.arange(1, _copies(hp) + 1), _copies(hp)
    return jnp.asarray(np.log((1 + 1 / copies) / (i * (i + 1))), dtype)
