r"""Bandits: only the loss of the arm pulled is seen.

Draw $i_t \sim p_t$ from an expert learner, pay and see $\ell_{t, i_t}$ alone, and tell the expert
learner the estimates

$$\hat\ell_{t,i} = \frac{\mathbb 1\{i = i_t\}}{p_{t,i_t}}\, \ell_{t,i_t}, \qquad
  E_t[\hat\ell_{t,i}] = \ell_{t,i}, \qquad \langle p_t, \hat\ell_t \rangle = \ell_{t,i_t}.$$

Estimates are not bounded by 1. With exponential weights this is EXP3 (`exp3`); with the potential
`olx.convex.tsallis(0.5)` in `olx.omd` it is poly-INF; an expert learner that insists on losses in
$[0, 1]$ is not for bandits.

Luo, Optimal and Adaptive Online Learning, 2016, appendix A.2, algorithm 24.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import pytree
from olx.core import Feedback, Learner, Rounds
from olx.experts.sampled import draw
from olx.losses.points import linear, linear_feedback
from olx.needs import Need, within


@pytree
class BanditHparams:
    experts: Learner
    key: Array


class BanditState(NamedTuple):
    experts: PyTree
    key: Array  # of this round's draw; predicting twice draws the same


def bandit(experts: Learner, key: Array) -> Learner:
    """Pull an arm drawn from what `experts` plays, and tell it importance-weighted estimates.

    The action is the vertex of the arm. Of the feedback only `value`, the loss of that arm, is
    read; play it with `expected_loss`, which reads no other loss either.

    experts: a learner whose action is a distribution and that takes losses of any size from 0.
    key: of `jax.random`; a batch over keys repeats the game.

    >>> import jax, jax.numpy as jnp, olx
    >>> from olx.experts.base import expected_loss
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 16))
    >>> learner = bandit(olx.omd(1.0, olx.convex.tsallis(0.5)), jax.random.key(0))
    >>> run = olx.rollout(learner, expected_loss, rounds, jnp.ones(2) / 2)
    >>> bool(run.losses[8:].sum() < 4)
    True
    """
    check.instance("bandit", "experts", experts, Learner)
    needs = (*within(experts, "experts", "params", "context", "weight"), _KNOWN)
    return Learner(BanditHparams(experts, key), init, predict, update, needs=needs)


def _are_known(hparams: BanditHparams, params: PyTree, rounds: Rounds) -> PyTree:
    """NaN is a loss that nobody knows, of an arm that is not pulled."""
    return jax.tree.map(lambda loss: (abs(loss) < jnp.inf) | (loss != loss), rounds.outcome)


_KNOWN = Need("outcome", _are_known, "losses must be finite, or NaN where unknown", "bandit")


def init(hp: BanditHparams, params: PyTree) -> BanditState:
    return BanditState(hp.experts.init(params), hp.key)


def predict(hp: BanditHparams, state: BanditState, context: PyTree) -> Float[Array, " N"]:
    return draw(state.key, hp.experts.predict(state.experts, context))


def update(hp: BanditHparams, state: BanditState, feedback: Feedback) -> BanditState:
    p = hp.experts.predict(state.experts, feedback.context)
    seen = linear_feedback(p, estimate(p, feedback), feedback.weight, feedback.context)
    return BanditState(hp.experts.update(state.experts, seen), jax.random.split(state.key, 1)[0])


def estimate(p: Float[Array, " N"], feedback: Feedback) -> Float[Array, " N"]:
    """Unbiased losses of all arms, from that of the arm pulled."""
    chance = linear(feedback.action, p)
    return feedback.action * (feedback.value / jnp.where(chance > 0, chance, 1.0))
