r"""Sword: as Ader, and better where the losses are smooth and change slowly, or are small.

Copies of gradient descent with steps $\eta_i = \min(\frac1{8L}, \frac{2^{i-1} D}{G\sqrt{8T}})$, $i
= 1, \dots, N$, in a set of diameter $D$, for $L$-smooth losses. The gradient $g_t$ at the point
that is played is the only one. The last one is the guess of the next, $m_t = g_{t-1}$, $m_1 = 0$:

$$x_t^i = \Pi(\hat x_t^i - \eta_i m_t), \qquad x_t = \sum_i p_t^i x_t^i, \qquad
  \hat x_{t+1}^i = \Pi(\hat x_t^i - \eta_i g_t).$$

The weights are those of Hedge with the guess. A copy pays for its moves $d_t^i = \|x_t^i -
x_{t-1}^i\|^2$ too, $d_1^i = 0$, since the moves of the mixture spoil the guess. With $V_t =
\sum_{s \le t} \|g_s - g_{s-1}\|^2$, where $g_0 = 0$,

$$p_t^i \propto \exp\Big(-\epsilon_t \Big(\sum_{s<t} \ell_s^i + \langle m_t, x_t^i\rangle + 2 L
  d_t^i\Big)\Big), \quad \ell_t^i = \langle g_t, x_t^i\rangle + 2 L d_t^i, \quad \epsilon_t =
  \min\Big(\frac1{8 D^2 L}, \frac1D \sqrt{\frac{\ln N}{V_{t-1}}}\Big).$$

Let $q_t^i \propto \exp(-\epsilon_t \sum_{s<t} \ell_s^i)$, and let $\delta_t = \langle p_t,
\ell_t\rangle + \frac1{\epsilon_t} \ln E_{q_t} e^{-\epsilon_t \ell_t}$, which is at most
$\frac{\epsilon_t}8 D^2 \|g_t - m_t\|^2$. For every sequence $u_1, \dots, u_t$ of points in the set,
with the path length $P_t = \sum_{s<t} \|u_{s+1} - u_s\|$,

$$\sum_{s \le t} \langle g_s, x_s - u_s\rangle \le \min_i\; \frac{\ln N}{\epsilon_t} + \sum_{s \le
  t} \Big( \delta_s + 2 L (d_s^i - \langle p_s, d_s\rangle) + \langle g_s - m_s, x_s^i - \hat
  x_{s+1}^i\rangle$$
$$\qquad + \frac{\|\hat x_s^i - u_s\|^2 - \|\hat x_{s+1}^i - u_s\|^2 - \|\hat x_{s+1}^i - x_s^i\|^2
  - \|x_s^i - \hat x_s^i\|^2}{2 \eta_i} \Big)$$
$$\le \min_i\; \frac{\ln N}{\epsilon_t} + \frac{D^2}8 \sum_{s \le t} \epsilon_s \|g_s - g_{s-1}\|^2
  + \frac{D^2 + 2 D P_t}{2 \eta_i} + \eta_i V_t.$$

The second form uses that $1 / 4 \eta_i \ge 2 L$: the copies pay for their own moves. Neither form
needs that the losses are smooth. If they are, $V_t$ is at most the variation of the gradients at
fixed points, and the moves that $2 L \langle p_s, d_s\rangle$ and a gap of Hedge pay for. It is
also at most a constant times the losses of the learner, if these are not negative. So the regret is
of order $\sqrt{(1 + P_T + \min(V, F)) (1 + P_T)}$ with that variation $V$, and the losses $F$ of
the comparators.

Zhao, Zhang, Zhang, Zhou, Dynamic Regret of Convex and Smooth Functions, 2020; Zhao, Zhang, Zhang,
Zhou, Adaptivity and Non-stationarity, 2024, for one gradient per round (Sword++).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import log_softmax, softmax
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._numeric import Sum
from olx._pytree import pytree, static
from olx._refusal import public
from olx.certificate import Certificate
from olx.convex.sets import ConvexSet
from olx.core import Feedback, Learner, Scalar
from olx.meta import _paths as paths
from olx.meta.mix import mean
from olx.theorem import About, Theorem


@pytree
class SwordHparams:
    domain: ConvexSet
    diameter: Scalar
    smooth: Scalar
    lipschitz: Scalar
    rounds: int = static()


class SwordState(NamedTuple):
    centers: PyTree  # of all copies, along a first axis
    played: PyTree  # the points of the copies in the round before
    guess: PyTree  # the last gradient
    lost: Float[Array, " N"]  # by the copies, minus the smallest
    variation: Sum  # V


@public
def sword(
    domain: ConvexSet, diameter: Scalar, rounds: int, smooth: Scalar, lipschitz: Scalar = 1.0
) -> Learner:
    """Mix gradient descents that guess the next gradient, to track points that move by any amount.

    domain: a bounded set of `olx.convex.sets`; the first point is the one next to `params`.
    diameter: $D$, the largest distance of two points of it; 2 for a ball of radius 1.
    rounds: $T$, the number of rounds, about; it sets the step sizes, whose number grows as its
        logarithm.
    smooth: $L$, the constant of the gradients: they differ by at most $L$ times the distance of
        the points. The theorem holds for any number.
    lipschitz: $G$, the largest norm of a gradient, about.

    `olx.theorems.path_variation_regret` is the theorem; its `u` has a row for every round.

    >>> import jax.numpy as jnp, numpy as np, olx
    >>> path = np.linspace([-1.0, 0.0], [0.0, 1.0], 200) / 2
    >>> learner = olx.meta.sword(olx.convex.sets.ball(1.0), diameter=2.0, rounds=200, smooth=0.5)
    >>> game = lambda w, y: jnp.sum((w - y) ** 2) / 4, olx.Rounds(None, path), jnp.zeros(2)
    >>> proof = olx.certify(learner, *game, path, theorems=(olx.theorems.path_variation_regret,))
    >>> bool(proof.holds)
    True
    """
    check.instance("domain", domain, ConvexSet)
    diameter = check.positive("diameter", diameter)
    check.count("rounds", rounds)
    smooth = check.positive("smooth", smooth)
    lipschitz = check.positive("lipschitz", lipschitz)
    hparams = SwordHparams(domain, diameter, smooth, lipschitz, int(rounds))
    return Learner(hparams, init, predict, update)


def init(hp: SwordHparams, params: PyTree) -> SwordState:
    first, zero = hp.domain.project(params), jnp.zeros((), paths.dtype_of(params))
    points = jax.tree.map(lambda leaf: jnp.stack([jnp.asarray(leaf)] * _copies(hp)), first)
    none = tree.zeros_like(first)
    return SwordState(points, points, none, jnp.zeros(_copies(hp), zero.dtype), safe.start(zero))


def predict(hp: SwordHparams, state: SwordState, context: PyTree) -> PyTree:
    now = _copies_now(hp, state)
    return mean(now.weights, now.points)


def update(hp: SwordHparams, state: SwordState, feedback: Feedback) -> SwordState:
    g, now = tree.scale(feedback.weight, feedback.grad), _copies_now(hp, state)
    lost = state.lost + paths.products(now.points, g) + 2 * hp.smooth * now.moves
    change = tree.norm(tree.sub(g, state.guess), squared=True)
    centers = _descent(hp, state, g)
    variation = safe.add(state.variation, change)
    return SwordState(centers, now.points, g, lost - jnp.min(lost), variation)


class Copies(NamedTuple):
    """What the copies play in a round."""

    points: PyTree
    moves: Float[Array, " N"]  # squared, since the round before
    weights: Float[Array, " N"]


class Account(NamedTuple):
    path: paths.Path
    gaps: Float[Array, ""]  # of Hedge
    own: Float[Array, " N"]  # the terms of each copy
    energy: Float[Array, ""]  # the sum of rates times squared changes of the gradient
    variation: Float[Array, ""]
    rate: Float[Array, ""]  # of the last round


def open_account(hp: SwordHparams, state: SwordState, u: PyTree) -> Account:
    none = jnp.zeros_like(state.lost)
    zero = none[0]
    return Account(paths.open_path(u, state.centers), zero, none, zero, zero, _rate(hp, state))


def add_round(
    hp: SwordHparams, account: Account, state: SwordState, feedback: Feedback, u: PyTree
) -> Account:
    g, now = tree.scale(feedback.weight, feedback.grad), _copies_now(hp, state)
    rate = _rate(hp, state)
    steps, new = _steps(hp, rate.dtype), update(hp, state, feedback)
    change = tree.sub(g, state.guess)
    paid = 2 * hp.smooth * now.moves
    lost = paths.products(now.points, g) + paid
    gap = now.weights @ lost + logsumexp(log_softmax(-rate * state.lost) - rate * lost) / rate
    before, after = paths.squares(state.centers, u), paths.squares(new.centers, u)
    stays = _moves(new.centers, now.points) + _moves(now.points, state.centers)
    ahead = jax.vmap(lambda x, y: tree.vdot(change, tree.sub(x, y)))(now.points, new.centers)
    own = paid - now.weights @ paid + ahead + (before - after - stays) / (2 * steps)
    near = jnp.maximum(jnp.max(before), jnp.max(after))
    square = tree.norm(change, squared=True)
    return Account(
        paths.add_path(hp, account.path, feedback, u, near, jnp.max(jnp.abs(lost))),
        account.gaps + gap,
        account.own + own,
        account.energy + rate * square,
        account.variation + square,
        rate,
    )


def both_sides(hp: SwordHparams, account: Account, u: PyTree) -> Certificate:
    d, steps = hp.diameter, _steps(hp, account.rate.dtype)
    chosen = float(np.log(_copies(hp))) / account.rate
    far = (d**2 + 2 * d * account.path.length) / (2 * steps)
    right = chosen + account.gaps + account.own
    published = jnp.min(chosen + d**2 / 8 * account.energy + far + steps * account.variation)
    best = jnp.argmin(right)
    return paths.proof(account.path, right[best], published, chosen + far[best])


path_variation_regret = Theorem(
    "path_variation_regret",
    "Zhao, Zhang, Zhang, Zhou 2024",
    open_account,
    add_round,
    both_sides,
    about=About("a `sword`", lambda one: isinstance(one.hparams, SwordHparams)),
    sequence=True,
)


def _copies_now(hp: SwordHparams, state: SwordState) -> Copies:
    points = _descent(hp, state, state.guess)
    moves = _moves(points, state.played)
    guessed = paths.products(points, state.guess) + 2 * hp.smooth * moves
    weights = softmax(-_rate(hp, state) * (state.lost + guessed))
    return Copies(points, moves, weights)


def _descent(hp: SwordHparams, state: SwordState, g: PyTree) -> PyTree:
    step = lambda eta, x: hp.domain.project(tree.add_scale(x, -eta, g))
    return jax.vmap(step)(_steps(hp, state.lost.dtype), state.centers)


def _moves(points: PyTree, others: PyTree) -> Float[Array, " N"]:
    return jax.vmap(lambda x, y: tree.norm(tree.sub(x, y), squared=True))(points, others)


def _copies(hp: SwordHparams) -> int:
    return int(np.ceil(0.5 * np.log2(8 * hp.rounds))) + 1


def _steps(hp: SwordHparams, dtype: jnp.dtype) -> Float[Array, " N"]:
    powers = jnp.asarray(2.0 ** np.arange(_copies(hp)) / np.sqrt(8 * hp.rounds), dtype)
    return jnp.minimum(1 / (8 * hp.smooth), hp.diameter / hp.lipschitz * powers)


def _rate(hp: SwordHparams, state: SwordState) -> Float[Array, ""]:
    seen = state.variation.value
    root = jnp.sqrt(float(np.log(_copies(hp))) / safe.or_one(seen)) / hp.diameter
    most = 1 / (8 * hp.smooth * hp.diameter**2)
    return jnp.where(seen > 0, jnp.minimum(root, most), most).astype(seen.dtype)
