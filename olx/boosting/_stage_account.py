r"""The account of gradient boosting: how far each stage is behind the comparator, and why.

A stage moves from $y$ to the projection of $y + e (A(x) - \sigma y)$. For a convex loss with slope
$g$ at $y$, any $f$ and any $W \ge 1$, with $\Delta$ and $\Delta'$ the gaps before and after it,

$$\Delta' \le \Big(1 - \frac eW\Big) \Delta + e \sum_s g_s \Big( A_s - \frac{f_s}W \Big) +
  e \sum_s \Big( \frac1W - \sigma_s \Big) g_s y_s$$
$$+\, \frac{\beta e^2}2 \sum_s (A_s - \sigma_s y_s)^2 + \epsilon \sum_s \text{cut}_s,$$

where the cut is the length of the projection. On the line this needs the smoothness $\beta$ inside
the ball only: a cut point is followed by the slope at the boundary, which is $\epsilon$ at most.
The gap after the last stage is that of the action, as it was played.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _clock as clock
from olx._clock import Clock
from olx.boosting._stages import Stages
from olx.core import Feedback, Scalar
from olx.frameworks.regret import CONVEX
from olx.theorem import UNIT_WEIGHTS, Certificate

BOUNDED = "base predictions must not exceed `bound`"
STEEP = "slopes must not exceed the Lipschitz constant of `loss`"
SMOOTH = "stages must keep the smoothness and the excess of `loss`"


class Terms(NamedTuple):
    """One sum per stage; see above."""

    regret: Float[Array, " n"]  # of g (A - f / W)
    pull: Float[Array, " n"]  # of (1 / W - sigma) g y
    bend: Float[Array, " n"]  # of (A - sigma y)^2
    cut: Float[Array, " n"]


class Numbers(NamedTuple):
    """The numbers of a booster that its account needs."""

    steps: Float[Array, " n"]  # e
    norm: Scalar  # W
    bound: Scalar  # D
    steep: Scalar  # L
    smooth: Scalar  # beta
    excess: Scalar  # epsilon


class Account(NamedTuple):
    gaps: Float[Array, " n+1"]  # Delta_0, ..., Delta_N
    terms: Terms
    size: Float[Array, ""]  # the size of the terms, for rounding errors
    rounds: Clock
    met: dict[str, Bool[Array, ""]]


def open_account(n: int, params: PyTree) -> Account:
    rounds = clock.start(None, params)
    zeros = jnp.zeros(n, rounds.dtype)
    names = UNIT_WEIGHTS, CONVEX, BOUNDED, STEEP, SMOOTH
    met: dict[str, Array] = dict.fromkeys(names, jnp.ones((), bool))
    gaps = jnp.zeros(n + 1, rounds.dtype)
    return Account(gaps, Terms(zeros, zeros, zeros, zeros), gaps[0], rounds, met)


def add_round(
    numbers: Numbers,
    account: Account,
    feedback: Feedback,
    stages: Stages,
    shares: Float[Array, " n"],
    f: Array,
    loss: Callable[[Array], Array],
) -> Account:
    """Add a round.

    shares: sigma.
    f: the prediction of the comparator.
    loss: the loss of the stages, whose slopes the copies got.
    """
    e, w, d, steep, smooth, excess = numbers
    votes, y = stages.votes, stages.before
    here, slopes = jax.vmap(jax.value_and_grad(loss))(y)
    played, other = loss(feedback.action), loss(f)
    after, moved = jnp.append(here[1:], loss(stages.after[-1])), votes - shares * y
    cut = jnp.abs(stages.raw - stages.after)
    new = Terms(slopes * (votes - f / w), (1 / w - shares) * slopes * y, moved**2, cut)
    around = jnp.abs(slopes) * (jnp.abs(votes) + jnp.abs(y) + jnp.abs(f)) + smooth * moved**2
    size = jnp.abs(here) + jnp.abs(after) + jnp.abs(other) + around
    slack = 64 * jnp.finfo(size.dtype).eps * size
    rise = e * slopes * moved + smooth / 2 * (e * moved) ** 2 + excess * cut
    more = 1 + 64 * jnp.finfo(size.dtype).eps
    # Each test is false for NaN, so that a NaN shows in the sides.
    broken = {
        UNIT_WEIGHTS: jnp.asarray(feedback.weight) != 1,
        CONVEX: jnp.any(other < here + slopes * (f - y) - slack),
        BOUNDED: jnp.any(jnp.abs(votes) > d * more),
        STEEP: jnp.any(jnp.abs(slopes) > steep * more),
        SMOOTH: jnp.any(after > here + rise + slack),
    }
    return Account(
        account.gaps + jnp.append(here, played) - other,
        jax.tree.map(jnp.add, account.terms, new),
        account.size + w * jnp.max(size),
        clock.advance(account.rounds, True),
        {name: account.met[name] & ~bad for name, bad in broken.items()},
    )


def regret_sides(
    numbers: Numbers,
    account: Account,
    published: Array,
    ends: tuple[Array, Array] | None = None,
) -> Certificate:
    """The gap of the last stage, and the inequalities of all stages together.

    ends: what replaces the gaps of the first and of the last stage, if not None.
    """
    first, last = (account.gaps[0], account.gaps[-1]) if ends is None else ends
    follow = lambda gap, one: (one[0] * gap + one[1], None)
    right, _ = lax.scan(follow, first, _factors(numbers, account))
    return _sides(account, last, right, published)


def step_sides(numbers: Numbers, account: Account) -> Certificate:
    """The inequality of the stage with the least slack."""
    factors, added = _factors(numbers, account)
    left, right = account.gaps[1:], factors * account.gaps[:-1] + added
    at = jnp.argmin(right - left)
    return _sides(account, left[at], right[at], None)


def worst(account: Account) -> Array:
    """The largest regret of a copy, at least 0."""
    return jnp.maximum(jnp.max(account.terms.regret), 0.0)


def length(u: PyTree) -> Array:
    return jnp.sqrt(jnp.asarray(tree.vdot(u, u)))


def _factors(numbers: Numbers, account: Account) -> tuple[Array, Array]:
    e, terms = numbers.steps, account.terms
    bend = numbers.smooth / 2 * e**2 * terms.bend
    added = e * (terms.regret + terms.pull) + bend + numbers.excess * terms.cut
    return 1 - e / numbers.norm, added


def _sides(account: Account, left: Array, right: Array, published: Array | None) -> Certificate:
    proof = Certificate(left, right, account.size + jnp.abs(right), published)
    return proof.under(account.met)
