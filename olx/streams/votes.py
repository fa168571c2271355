r"""Votes of weak learners, as in the lower bound for online boosting.

Labels are $\pm 1$ with equal chance. Each of $n$ votes is right with chance $\frac12$ in the first
rounds and with chance $\frac12 + 2 \gamma$ later, independently of all others. No booster of these
votes beats their majority, whose error is about $e^{-8 n \gamma^2}$; so an error of $\varepsilon$
needs $\Omega(\ln(1 / \varepsilon) / \gamma^2)$ votes.

Luo, Optimal and Adaptive Online Learning, 2016, theorem 10.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from olx import _check as check
from olx.core import Rounds, Scalar
from olx.streams.stream import Stream, coins, whole


def weak_votes(key: Array, rounds: int, n: int, gamma: Scalar, blind: int = 0) -> Stream:
    r"""Rounds whose context is the votes of `n` weak learners with the edge $\gamma$.

    gamma: between 0 and 1/4.
    blind: the number of first rounds in which votes are coins. With $S / (4 \gamma)$ of them the
        learners keep an excess loss of $S$.

    The truth gives all votes the same factor: its score is the majority vote.

    >>> rounds, u = weak_votes(jax.random.key(0), rounds=1000, n=99, gamma=0.1)
    >>> bool(jnp.mean(rounds.outcome * (rounds.context @ u) <= 0) < 0.01)
    True
    """
    check.key("weak_votes", key)
    check.count("weak_votes", "rounds", rounds)
    check.count("weak_votes", "n", n)
    gamma = check.inside("weak_votes", "gamma", gamma, 0.0, 0.25)
    whole("weak_votes", "blind", blind, 0, rounds)
    for_labels, for_votes = jax.random.split(key)
    y = 2 * coins(for_labels, 0.5, (rounds,)) - 1
    chance = jnp.where(jnp.arange(rounds) < blind, 0.5, 0.5 + 2 * gamma)
    right = coins(for_votes, chance[:, None], (rounds, n))
    return Stream(Rounds((2 * right - 1) * y[:, None], y), jnp.full(n, 1 / n))
