r"""Potential-based experts: any convex potential of the chips' positions plays the game.

An expert's position is $s = -R$, its loss less that of the learner. For a family $\Phi_t(s)$ convex
and non-increasing in $s$ with $\Phi_t(s - 1) + \Phi_t(s + 1) \le 2 \Phi_{t-1}(s)$,

$$p_{t,i} \propto q_i \big( \Phi_t(s_{t-1,i} - 1) - \Phi_t(s_{t-1,i} + 1) \big)$$

keeps the mean potential from rising, whatever the losses:

$$\sum_i q_i \Phi_t(s_{t,i}) \le \sum_i q_i \Phi_{t-1}(s_{t-1,i}) \le \Phi_0(0).$$

So an expert with prior $q_i$ ends where $q_i \Phi_T(s_{T,i}) \le \Phi_0(0)$. Hedge, the 2-norm
algorithm and NormalHedge.DT are instances; those have files of their own, with weights that do not
overflow.

Luo, Optimal and Adaptive Online Learning, 2016, algorithm 3, theorem 2.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx import _clock as clock
from olx._clock import Clock
from olx._pytree import as_tree
from olx.certificate import Certificate
from olx.core import Learner, Scalar, Trace
from olx.experts.base import ExpertHparams, Seen, Weights, expert_learner
from olx.experts.history import LIGHT, history

Potential = Callable[[Array, Array], Array]


class PotentialStats(NamedTuple):
    position: Float[Array, " N"]
    clock: Clock


def potential_experts(
    potential: Potential,
    prior: PyTree = None,
    *,
    low: Scalar | None = None,
    high: Scalar | None = None,
) -> Learner:
    r"""Play the finite differences of `potential`, and certify that its mean never rises.

    potential: $\Phi_t(s)$ as a function of the number of the round, 0 before the first, and of an
        array of positions; a named function, or a `Partial` with numbers of its own. A function of
        the round alone may be added to it freely: it changes no weight.
    prior: non-negative, of any sum; `params` if None.
    low, high: the range of losses, 0 and 1 if None.

    >>> import jax.numpy as jnp, olx
    >>> quadratic = lambda t, s: jnp.minimum(s, 0.0) ** 2 - t
    >>> learner = potential_experts(quadratic)
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 4))
    >>> run = olx.rollout(
    ...     learner, olx.losses.linear_loss, rounds, jnp.ones(2), record=olx.record.trace
    ... )
    >>> run.losses.round(3).tolist(), bool(olx.certify(learner, run, None).holds)
    ([0.5, 0.1, 0.0, 0.0], True)
    """
    check.function("potential_experts", "potential", potential)
    own = as_tree(potential)
    return expert_learner(
        "potential_experts",
        own,
        start,
        weigh,
        learn,
        bound,
        prior=prior,
        low=low,
        high=high,
        unbounded=True,
    )


def start(potential: Partial, prior: Array) -> PotentialStats:
    return PotentialStats(jnp.zeros_like(prior), clock.start(potential, prior))


def weigh(potential: Partial, prior: Array, stats: PotentialStats) -> Weights:
    now, s = stats.clock.now, stats.position
    return Weights(jnp.zeros_like(s), prior * (potential(now, s - 1) - potential(now, s + 1)))


def learn(potential: Partial, prior: Array, stats: PotentialStats, seen: Seen) -> PotentialStats:
    time = clock.tick(potential, stats.clock, seen.feedback)
    return PotentialStats(stats.position - seen.regret, time)


def bound(hp: ExpertHparams, trace: Trace, u: PyTree) -> Certificate:
    r"""Theorem 2: the mean potential after a round, at most what it was before the round.

    Printed with $\Phi_0(0)$. No comparator enters: `u` is not looked at.
    """
    past, stats = history(hp, trace), trace.state.stats
    phi = jax.vmap(hp.own)
    after = phi(stats.clock.now, stats.position - past.regret)
    before = phi(stats.clock.past, stats.position)
    first = jnp.sum(past.prior * hp.own(jnp.zeros_like(past.unit), jnp.zeros_like(past.prior)))
    left, right = after @ past.prior, before @ past.prior
    scale = 1 + (jnp.abs(after) + jnp.abs(before)) @ past.prior + jnp.abs(first)
    printed = first + jnp.zeros_like(left)
    proof = Certificate(left, right, scale, printed, theorem="Luo 2016, theorem 2")
    return proof.given(LIGHT, past.light)
