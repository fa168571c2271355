r"""Bandits: a learner sees only the loss of the arm that it pulls.

Draw $i_t \sim p_t$ from an expert learner, pay and see only $\ell_{t, i_t}$, and give the expert
learner the estimates

$$\hat\ell_{t,i} = \frac{\mathbb 1\{i = i_t\}}{p_{t,i_t}}\, \ell_{t,i_t}, \qquad
  E_t[\hat\ell_{t,i}] = \ell_{t,i}, \qquad \langle p_t, \hat\ell_t \rangle = \ell_{t,i_t}.$$

Estimates may exceed 1. With exponential weights this is EXP3 (`exp3`); with the potential
`olx.mirrors.tsallis(0.5)` in `olx.omd` it is poly-INF. With `potential_experts` it is algorithm 24:
for a potential that is twice continuously differentiable and convex with a second derivative that
does not increase, and for all losses in $[0, 1]$,

$$E_t \sum_i q_i \Phi_t(s_{t,i}) \le \sum_i q_i \Big( \big(\tfrac12 + N \alpha_t\big)
  \Phi_t(s_{t-1,i} - 1) + \big(\tfrac12 - N \alpha_t\big) \Phi_t(s_{t-1,i} + 1) \Big), \qquad
  \alpha_t = \frac12 \max_i \frac{\Phi_t''(s_{t-1,i} - 1)}{\Phi_t(s_{t-1,i} - 1) -
  \Phi_t(s_{t-1,i} + 1)}.$$

Luo, Optimal and Adaptive Online Learning, 2016, appendix A.2, algorithm 24, theorem 20.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree
from olx._refusal import own_name, public
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Rounds, Scalar
from olx.experts.account import LIGHT
from olx.experts.base import ExpertHparams, for_estimates
from olx.experts.needs import clip_to_unit
from olx.experts.potential_experts import learn as learn_positions
from olx.experts.sampled import draw
from olx.losses.points import linear_feedback, linear_loss
from olx.needs import Need
from olx.theorem import MET, latest, summed
from olx.wrapper import WrapperView, lift_needs


@pytree
class BanditHparams:
    inner: Learner
    key: Array


class BanditState(NamedTuple):
    inner: PyTree
    key: Array  # for the draw of this round; predicting twice draws the same arm


@public
def bandit(inner: Learner, key: Array) -> Learner:
    """Pull an arm drawn from the distribution of `inner`; give it importance-weighted estimates.

    The action is the unit vector of the arm. Only `value`, the loss of that arm, is read from the
    feedback. Play it with `expected_loss`, which reads no other loss either.

    inner: a learner whose action is a distribution and that accepts losses of any size above 0,
        or above its `low`: `olx.hedge`, `anytime_hedge`, `potential_experts`.
    key: a key of `jax.random`; a batch over keys repeats the game with new draws.

    >>> import jax, jax.numpy as jnp, olx
    >>> from olx.experts.base import expected_loss
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 16))
    >>> learner = bandit(olx.omd(1.0, olx.mirrors.tsallis(0.5)), jax.random.key(0))
    >>> run = olx.rollout(learner, expected_loss, rounds, jnp.ones(2) / 2)
    >>> bool(run.losses[8:].sum() < 4)
    True
    """
    check.key(key)
    check.instance("inner", inner, Learner)
    inner = for_estimates(inner)
    hp = inner.hparams
    proven = isinstance(hp, ExpertHparams) and hp.learn_fn is learn_positions
    needs = (*lift_needs(WrapperView(parts=("params", "context", "weight")), inner), _KNOWN)
    hparams, theorems = BanditHparams(inner, key), (bandit_potential,) if proven else ()
    return Learner(hparams, init, predict, update, needs=needs, theorems=theorems)


def _are_known(hparams: BanditHparams, params: PyTree, rounds: Rounds) -> PyTree:
    """NaN stands for the unknown loss of an arm that is not pulled."""
    return jax.tree.map(lambda loss: (abs(loss) < jnp.inf) | (loss != loss), rounds.outcome)


_KNOWN = Need(
    "outcome",
    _are_known,
    "losses must be finite, or NaN where unknown",
    "bandit",
    "give the losses of all arms that may be pulled, and play `olx.experts.expected_loss`, which "
    "reads no other one",
    unknown="the loss of the arm that is pulled must be known",
)


def init(hp: BanditHparams, params: PyTree) -> BanditState:
    return BanditState(hp.inner.init(params), hp.key)


def predict(hp: BanditHparams, state: BanditState, context: PyTree) -> Float[Array, " N"]:
    return draw(state.key, hp.inner.predict(state.inner, context))


def update(hp: BanditHparams, state: BanditState, feedback: Feedback) -> BanditState:
    p = hp.inner.predict(state.inner, feedback.context)
    low, paid = _paid(hp, feedback)
    outcome = estimate(p, feedback._replace(value=paid), low)
    seen = linear_feedback(p, outcome, feedback.weight, feedback.context)
    return BanditState(hp.inner.update(state.inner, seen), jax.random.split(state.key, 1)[0])


def estimate(p: Float[Array, " N"], feedback: Feedback, low: Scalar = 0.0) -> Float[Array, " N"]:
    """Unbiased estimates of all losses, from the loss of the arm pulled; `low` for the others."""
    chance = linear_loss(feedback.action, p)
    return low + feedback.action * ((feedback.value - low) / safe.or_one(chance))


class Account(NamedTuple):
    left: Float[Array, ""]  # the left side after the last round
    right: Float[Array, ""]
    before: Float[Array, ""]  # the mean potential before the last round
    falls: Bool[Array, ""]  # whether (A.3) held in every round
    bends: Bool[Array, ""]  # whether the second derivative never increased
    light: Bool[Array, ""]


def start(hp: BanditHparams, state: BanditState, u: PyTree) -> Account:
    zero = jnp.zeros((), ravel_pytree(state.inner.prior)[0].dtype)
    return Account(zero, zero, zero, MET, MET, MET)


def terms(hp: BanditHparams, state: BanditState, feedback: Feedback, u: PyTree) -> Account:
    inner: ExpertHparams = hp.inner.hparams
    stats, (q, _) = state.inner.stats, ravel_pytree(state.inner.prior)
    now, s = stats.clock.now, stats.position
    p = hp.inner.predict(state.inner, feedback.context)
    awake = jnp.ones_like(p) if feedback.context is None else feedback.context
    low, high = (0.0, 1.0) if inner.span is None else inner.span
    losses = (jnp.where(awake == 0, low, feedback.outcome) - low) / (high - low)
    phi = lambda s: inner.own(now, s)
    bend = _second(phi, s - 1)

    def pulled(arm: Array, chance: Array, loss: Array) -> tuple[Array, Array]:
        move = arm * (loss / safe.or_one(chance)) - loss
        after = s + feedback.weight * awake * move
        grew = jnp.any((chance > 0) & (_second(phi, after) > bend * (1 + 1e-6)))
        return jnp.where(chance > 0, jnp.vdot(q, phi(after)), 0.0), grew

    means, grew = jax.vmap(pulled)(jnp.eye(p.size, dtype=p.dtype), p, losses)
    drawn = predict(hp, state, feedback.context)
    fall = phi(s - 1) - phi(s + 1)
    flat = jnp.where(bend > 0, jnp.inf, 0.0)
    alpha = jnp.max(safe.divide(bend, fall, flat)) / 2
    right = jnp.vdot(q, (phi(s - 1) + phi(s + 1)) / 2) + p.size * alpha * jnp.vdot(q, fall)
    before = jnp.vdot(q, inner.own(stats.clock.past, s))
    left = jnp.vdot(p, means) + jnp.vdot(feedback.action - drawn, means)
    rises = right > before + 64 * jnp.finfo(right.dtype).eps * _scale(left, right, before)
    sides = latest(left), latest(right), latest(before)
    return Account(*sides, ~rises, ~jnp.any(grew), jnp.asarray(feedback.weight <= 1))


def both_sides(hp: BanditHparams, account: Account, u: PyTree) -> Certificate:
    r"""Theorem 20: the mean potential after a round, in expectation over the draw of that round.

    What the arm pulled makes of the potential, beyond what the arm drawn does, is added; it is 0
    for a learner that pulls the arm drawn. `published` is the mean potential before the round, as
    condition (A.3) on the potential implies; it is infinite once (A.3) fails. Needs the losses of
    all arms. `u` is not used.
    """
    published = jnp.where(account.falls, account.before, jnp.inf)
    scale = _scale(account.left, account.right, account.before)
    proof = Certificate(account.left, account.right, scale, published)
    grows = "the second derivative of the potential must not grow"
    return proof.given(grows, account.bends).given(LIGHT, account.light)


bandit_potential = summed("bandit_potential", "Luo 2016, theorem 20", terms, both_sides, start)


def _scale(left: Array, right: Array, before: Array) -> Array:
    return 1 + jnp.abs(left) + jnp.abs(right) + jnp.abs(before)


def _paid(hp: BanditHparams, feedback: Feedback) -> tuple[Scalar, Array]:
    """The lowest legal loss, and the loss of the arm pulled, refused if out of range."""
    inner = hp.inner.hparams
    if not isinstance(inner, ExpertHparams):
        return 0.0, feedback.value
    low, high = (0.0, 1.0) if inner.span is None else inner.span
    name = "value" if inner.span is None else "(value - low) / (high - low)"
    with own_name(inner.owner):
        paid = clip_to_unit(name, (feedback.value - low) / (high - low), inner.span)
    return low, low + (high - low) * paid


def _second(function: Callable[[Array], Array], s: Array) -> Array:
    along = lambda f: lambda s: jax.jvp(f, (s,), (jnp.ones_like(s),))[1]
    return along(along(function))(s)
