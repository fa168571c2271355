r"""Mechanic: the scale of the steps of a learner, tuned by bets on that scale.

The base learner decides on $w_t$ and sees the linear loss of $g_t$; only its offsets $\Delta_t =
w_t - w_1$ are used. Play $x_t = w_1 + S_t \Delta_t$ with the sum $S_t$ of the scales $s_{t,i}$ of
$n$ bettors, each with a discount $\beta_i = 1 - 10^{-i}$. All bet on

$$h_t = \Big\langle \Delta_t,\; g_t + \lambda\, S_t \|g_t\| \frac{x_t}{\|x_t\| + \epsilon}
  \Big\rangle.$$

With $\bar h_t = h_t$ clipped to $[-m_{t-1}, m_{t-1}]$, and all starting at 0,

$$m_t = \max(\beta m_{t-1}, |h_t| + \epsilon), \quad v_t = \beta^2 v_{t-1} + h_t^2, \quad
  r_t = \beta r_{t-1} - \bar h_t s_t, \quad
  s_{t+1} = \frac{\frac{s_1}{n} m_t + \max(0, r_t)}{\sqrt{v_t} + \epsilon}.$$

Whatever the scales are, for every $u$

$$\sum_s \langle g_s, x_s - u\rangle = \sum_s \langle g_s, \Delta_s\rangle (S_s - 1) + \sum_s
  \langle g_s, w_s - u\rangle,$$

the regret of the scale to the scale 1, and that of the base learner to $u$. Apply this to $w_1 + (u
- w_1) / S$ for any other scale $S$. The sum that the bettors made is computed, not bounded.

Cutkosky, Defazio, Mehta, Mechanic: A Learning Rate Tuner, 2023. The clipping, the absolute value in
$m$ and an $r$ that may be negative are those of the authors' `optax.contrib.mechanize`; the paper
has $m_t = \max(\beta m_{t-1}, h_t)$ and $r_t = \max(0, \beta r_{t-1} - h_t s_t)$. Optax computes
$\Delta_t$ from the params as $(x_t - w_1) / (S_t + \epsilon)$, so all of its offsets shrink by
$S_t / (S_t + \epsilon)$ in each round, at first by $\epsilon / s_1 = 1\%$; here they are exact.
Apart from that, actions are the same if $\epsilon$ is small.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree, static
from olx._refusal import own_name, public
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Scalar
from olx.losses.points import linear_feedback
from olx.theorem import Theorem
from olx.wrapper import WrapperView, decide_alone, lift_needs


@pytree
class MechanicHparams:
    inner: Learner
    decay: Scalar
    first_scale: Scalar
    eps: Scalar
    bettors: int = static()


class MechanicState(NamedTuple):
    start: PyTree  # the first decision of the base learner
    inner: PyTree
    largest: Float[Array, " n"]  # m
    squares: Float[Array, " n"]  # v
    reward: Float[Array, " n"]  # r
    scales: Float[Array, " n"]  # s


@public
def mechanic(
    inner: Learner,
    decay: Scalar = 0.01,
    first_scale: Scalar = 1e-6,
    bettors: int = 6,
    eps: Scalar = 1e-8,
) -> Learner:
    r"""Play `inner` with a scale of its steps that is learned.

    inner: a learner of points anywhere, with a step size of 1, such as `olx.ogd(1.0)`; for a
        predictor, lift the result: `olx.linear(mechanic(inner))`.
    decay: $\lambda$; it pulls the scale down. 0 for none.
    first_scale: $s_1$; much too small is fine.
    bettors: $n$.
    eps: $\epsilon$.

    >>> import jax.numpy as jnp, olx
    >>> square = lambda w, y: (w - y) ** 2
    >>> rounds = olx.Rounds(None, jnp.full(100, 3.0))
    >>> play = lambda learner: olx.rollout(learner, square, rounds, jnp.zeros(())).losses[-1]
    >>> bool(play(mechanic(olx.ogd(1e-3))) < 0.1 < play(olx.ogd(1e-3)))
    True
    """
    check.instance("inner", inner, Learner)
    decay = check.non_negative("decay", decay)
    first_scale = check.positive("first_scale", first_scale)
    check.count("bettors", bettors)
    eps = check.positive("eps", eps)
    needs = lift_needs(WrapperView(parts=("params", "weight")), inner)
    theorems = (_regret(inner.theorems[0]),) if inner.theorems else ()
    hparams = MechanicHparams(inner, decay, first_scale, eps, int(bettors))
    return Learner(hparams, init, predict, update, needs=needs, theorems=theorems)


@own_name("mechanic")
def init(hp: MechanicHparams, params: PyTree) -> MechanicState:
    inner = hp.inner.init(params)
    start = decide_alone(hp.inner, inner, "mechanic(olx.ogd(1.0))")
    zeros = jnp.zeros(hp.bettors, jnp.result_type(*jax.tree.leaves(params)))
    return MechanicState(start, inner, zeros, zeros, zeros, zeros + hp.first_scale)


def predict(hp: MechanicHparams, state: MechanicState, context: PyTree) -> PyTree:
    scale, w = jnp.sum(state.scales), hp.inner.predict(state.inner)
    return jax.tree.map(lambda start, w: start + scale * (w - start), state.start, w)


def update(hp: MechanicHparams, state: MechanicState, feedback: Feedback) -> MechanicState:
    told = _told(hp, state, feedback)
    g, x = tree.scale(feedback.weight, feedback.grad), feedback.action
    pull = hp.decay * jnp.sum(state.scales) * _length(g) / (_length(x) + hp.eps)
    h = tree.vdot(tree.add_scale(g, pull, x), tree.sub(told.action, state.start))
    powers = jnp.arange(1, hp.bettors + 1, dtype=state.scales.dtype)
    betas = 1 - 10.0**-powers
    clipped = jnp.clip(h, -state.largest, state.largest)
    largest = jnp.maximum(betas * state.largest, jnp.abs(h) + hp.eps)
    squares = betas**2 * state.squares + h**2
    reward = betas * state.reward - clipped * state.scales
    wealth = hp.first_scale / hp.bettors * largest + jnp.maximum(reward, 0.0)
    scales = wealth / (safe.sqrt(squares) + hp.eps)
    inner = hp.inner.update(state.inner, told)
    return MechanicState(state.start, inner, largest, squares, reward, scales)


class Account(NamedTuple):
    inner: PyTree  # the account of the base learner
    left: Float[Array, ""]
    bets: Float[Array, ""]  # the regret of the scale to 1
    size: Float[Array, ""]  # the sum of absolute values of the terms


def open_account(hp: MechanicHparams, state: MechanicState, u: PyTree) -> Account:
    zero = jnp.zeros((), state.scales.dtype)
    return Account(_main(hp).init_fn(hp.inner.hparams, state.inner, u), zero, zero, zero)


def add_round(
    hp: MechanicHparams, account: Account, state: MechanicState, feedback: Feedback, u: PyTree
) -> Account:
    told = _told(hp, state, feedback)
    inner = _main(hp).add_fn(hp.inner.hparams, account.inner, state.inner, told, u)
    g, w, start = tree.scale(feedback.weight, feedback.grad), told.action, state.start
    further, absolute = jnp.sum(state.scales) - 1, lambda one: jax.tree.map(jnp.abs, one)
    points = tree.add(absolute(feedback.action), absolute(u))
    offsets = tree.scale(jnp.abs(further), tree.add(absolute(w), absolute(start)))
    return Account(
        inner,
        account.left + tree.vdot(g, tree.sub(feedback.action, u)),
        account.bets + further * tree.vdot(g, tree.sub(w, start)),
        account.size + tree.vdot(absolute(g), tree.add(points, offsets)),
    )


def both_sides(hp: MechanicHparams, account: Account, u: PyTree) -> Certificate:
    proof = _main(hp).sides_fn(hp.inner.hparams, account.inner, u)
    size = proof.scale + account.size
    return Certificate(account.left, proof.right + account.bets, size).under(proof.conditions)


def _regret(one: Theorem) -> Theorem:
    source = f"Cutkosky, Defazio, Mehta 2023; {one.source}"
    return Theorem("tuned_scale_regret", source, open_account, add_round, both_sides)


def _main(hp: MechanicHparams) -> Theorem:
    """The first theorem of the base learner, which is about its regret."""
    return hp.inner.theorems[0]


def _told(hp: MechanicHparams, state: MechanicState, feedback: Feedback) -> Feedback:
    """The feedback of the base learner: a linear loss at its own decision."""
    return linear_feedback(hp.inner.predict(state.inner), feedback.grad, feedback.weight)


def _length(w: PyTree) -> Array:
    return safe.sqrt(tree.norm(w, squared=True))
