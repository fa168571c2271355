r"""Regret on the losses themselves, with an optional penalty $F$, as the left side of a theorem.

$$\sum_{s \le t} c_s \big(\ell_s(w_s) + F(w_s) - \ell_s(u) - F(u)\big),$$

for rounds of weight 1. The proofs pass from linearized losses to losses by

$$\ell_s(u) \ge \ell_s(w_s) + \langle g_s, u - w_s\rangle + \text{bend}_s,$$

which is convexity, or strong convexity if the bend is not 0. The account checks this inequality in
every round. If a round violates it, the theorem does not apply.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _clock as clock
from olx._clock import Clock
from olx.core import Feedback, Scalar
from olx.theorem import UNIT_WEIGHTS, Certificate

CONVEX = "losses must be convex: not below their linearizations at `u`"
STRONGLY_CONVEX = "losses must be `sigma`-strongly convex: not below their parabolas at `u`"


class Regret(NamedTuple):
    left: Float[Array, ""]
    size: Float[Array, ""]  # the sum of |loss|, for the rounding error of `left`
    rounds: Clock
    unit: Bool[Array, ""]  # whether all weights were 1
    convex: Bool[Array, ""]  # whether the inequality above held at u in all rounds


def open_regret(decision: PyTree, u: PyTree) -> Regret:
    """The account before the first round; `u` must be shaped like `decision`."""
    check.comparator(u, decision)
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(decision)))
    yes = jnp.ones((), bool)
    return Regret(zero, zero, clock.start(None, decision), yes, yes)


def add_regret(
    account: Regret,
    feedback: Feedback,
    u: PyTree,
    *,
    other: Array | None = None,
    penalty: Callable[[PyTree], Array] | None = None,
    bend: tuple[Scalar, ...] = (0.0, 0.0),
    share: Scalar = 1.0,
) -> Regret:
    """Add a round.

    other: the loss charged to `u`; the loss of the round at `u` if None.
    penalty: $F$; no penalty if None.
    bend: how far above its linearization the loss must be at `u`, and the size of its terms.
    share: $c_s$.
    """
    own, w = feedback.value, feedback.action
    other = feedback.loss(u) if other is None else other
    along = jnp.asarray(tree.vdot(feedback.grad, tree.sub(u, w)))
    length = lambda g, u, w: jnp.abs(g) * (jnp.abs(u) + jnp.abs(w))
    around = tree.sum(jax.tree.map(length, feedback.grad, u, w))
    size = jnp.abs(own) + jnp.abs(other) + around + bend[1]
    rounding = 64 * jnp.finfo(along.dtype).eps * size
    below = other < own + along + bend[0] - rounding  # False for a NaN loss: NaN must show
    if penalty is not None:
        own, other = own + penalty(w), other + penalty(u)
    return Regret(
        account.left + share * (own - other),
        account.size + share * (jnp.abs(own) + jnp.abs(other)),
        clock.advance(account.rounds, True),
        account.unit & (jnp.asarray(feedback.weight) == 1),
        account.convex & ~below,
    )


def regret_sides(
    account: Regret,
    right: Array,
    published: Array | None = None,
    *,
    share: Scalar = 1.0,
    convex: str = CONVEX,
) -> Certificate:
    """Both sides.

    share: a factor of the left side.
    convex: the name of the condition on the losses.
    """
    size = share * account.size + jnp.where(jnp.isfinite(right), jnp.abs(right), 0.0)
    proof = Certificate(share * account.left, right, size, published)
    return proof.under({UNIT_WEIGHTS: account.unit, convex: account.convex})


def logarithmic(largest: Array, regret: Regret) -> Array:
    r"""$\max_{s \le t} \|g_s\|_*^2 \,(1 + \ln t) / (2\beta)$."""
    return largest * (1 + jnp.log(regret.rounds.past))
