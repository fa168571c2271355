r"""Potential-based experts: an expert learner from any convex potential.

The position of an expert is $s = -R$, its loss minus that of the learner. For a family $\Phi_t(s)$
convex and non-increasing in $s$ with $\Phi_t(s - 1) + \Phi_t(s + 1) \le 2 \Phi_{t-1}(s)$,

$$p_{t,i} \propto q_i \big( \Phi_t(s_{t-1,i} - 1) - \Phi_t(s_{t-1,i} + 1) \big)$$

ensures that the mean potential never rises, for all losses:

$$\sum_i q_i \Phi_t(s_{t,i}) \le \sum_i q_i \Phi_{t-1}(s_{t-1,i}) \le \Phi_0(0).$$

So $q_i \Phi_T(s_{T,i}) \le \Phi_0(0)$ for every expert. Hedge, the 2-norm algorithm and
NormalHedge.DT are instances; they have their own files, with weights that do not overflow.

Luo, Optimal and Adaptive Online Learning, 2016, algorithm 3, theorem 2.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx import _clock as clock
from olx._clock import Clock
from olx._pytree import as_tree
from olx._refusal import public
from olx.certificate import Certificate
from olx.core import Learner, Scalar
from olx.experts.account import LIGHT, Account, expert_theorem
from olx.experts.base import ExpertHparams, ExpertState, Seen, Weights, expert_learner
from olx.theorem import ZERO, latest

Potential = Callable[[Array, Array], Array]


class PotentialStats(NamedTuple):
    position: Float[Array, " N"]
    clock: Clock


@public
def potential_experts(
    potential: Potential,
    prior: PyTree = None,
    *,
    low: Scalar | None = None,
    high: Scalar | None = None,
) -> Learner:
    r"""Weigh experts by finite differences of `potential`; its mean never rises.

    potential: $\Phi_t(s)$, called with the number $t$ of the round, 0 before the first, and an
        array of positions; a named function, or a `Partial` that holds numbers. Adding a
        function of $t$ alone changes no weight.
    prior: non-negative weights of the experts; `params` if None.
    low: the least loss; 0 if None.
    high: the largest loss; 1 if None.

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
    check.function("potential", potential)
    own = as_tree(potential)
    parts = start, weigh, learn, mean_potential
    return expert_learner(
        "potential_experts", own, *parts, prior=prior, low=low, high=high, unbounded=True
    )


def start(potential: Partial, prior: Array) -> PotentialStats:
    return PotentialStats(jnp.zeros_like(prior), clock.start(potential, prior))


def weigh(potential: Partial, prior: Array, stats: PotentialStats) -> Weights:
    now, s = stats.clock.now, stats.position
    return Weights(jnp.zeros_like(s), prior * (potential(now, s - 1) - potential(now, s + 1)))


def learn(potential: Partial, prior: Array, stats: PotentialStats, seen: Seen) -> PotentialStats:
    time = clock.tick(potential, stats.clock, seen.feedback)
    return PotentialStats(stats.position - seen.regret, time)


class Means(NamedTuple):
    """Means of the potential before and after the last round, and of its absolute value."""

    after: Float[Array, ""]
    before: Float[Array, ""]  # before the last round
    size: Float[Array, ""]


def open_means(hp: ExpertHparams, prior: Array) -> Means:
    return Means(ZERO, ZERO, ZERO)


def terms(hp: ExpertHparams, account: Account, state: ExpertState, seen: Seen) -> Means:
    stats, prior = state.stats, account.flat_prior
    after = hp.own(stats.clock.now, stats.position - seen.regret)
    before = hp.own(stats.clock.past, stats.position)
    size = (jnp.abs(after) + jnp.abs(before)) @ prior
    return Means(latest(after @ prior), latest(before @ prior), latest(size))


def both_sides(hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    r"""Theorem 2: the mean potential after a round is at most that before the round.

    `published` is $\Phi_0(0)$. `u` is not used.
    """
    own, prior = account.own, account.flat_prior
    first = jnp.sum(prior * hp.own(jnp.zeros((), prior.dtype), jnp.zeros_like(prior)))
    proof = Certificate(own.after, own.before, 1 + own.size + jnp.abs(first), first)
    return proof.given(LIGHT, account.light)


mean_potential = expert_theorem(
    "mean_potential", "Luo 2016, theorem 2", both_sides, terms, open_means, mixtures=False
)
