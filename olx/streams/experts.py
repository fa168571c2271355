r"""Losses of experts in $[0, 1]$: no context, the outcome of a round is one loss per expert.

The truth is a distribution with all weight on the best expert; one per round if the best changes.
Losses are 0 or 1, each with probability $\frac12$ unless stated otherwise.

Cesa-Bianchi, Lugosi, Prediction, Learning, and Games, 2006.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from olx import _check as check
from olx._refusal import public
from olx.core import Rounds, Scalar
from olx.streams.stream import Stream, check_sizes, coins, segments, whole


@public
def expert_losses(key: Array, rounds: int, experts: int, gap: Scalar = 0.1) -> Stream:
    r"""One random expert has a mean loss that is smaller by `gap` than that of all others.

    The losses are stochastic: the regret of an adaptive learner stops growing after some time.

    gap: from 0 to 1/2.

    >>> expert_losses(jax.random.key(0), rounds=50, experts=4).rounds.outcome.shape
    (50, 4)
    """
    check_sizes(key, rounds=rounds, experts=experts)
    gap = check.between("gap", gap, 0.0, 0.5)
    for_best, for_losses = jax.random.split(key)
    truth = jax.nn.one_hot(jax.random.randint(for_best, (), 0, experts), experts, dtype=float)
    losses = coins(for_losses, 0.5 - gap * truth, (rounds, experts))
    return Stream(Rounds(None, losses), truth)


@public
def alternating_losses(rounds: int, experts: int) -> Stream:
    """Experts of even and of odd index lose 1 in turn; in the first round the even ones lose 1/2.

    Following the leader loses in every round after the first, the best expert in half of them. The
    stream is deterministic. Needs at least two experts.
    """
    check.count("rounds", rounds)
    whole("experts", experts, 2, 2**31)
    turn = jnp.arange(rounds)[:, None] % 2
    losses = (jnp.arange(experts) % 2 == turn).astype(float).at[0].multiply(0.5)
    best = jax.nn.one_hot(jnp.argmin(jnp.sum(losses, axis=0)), experts, dtype=float)
    return Stream(Rounds(None, losses), best)


@public
def drifting_losses(key: Array, rounds: int, experts: int, speed: Scalar = 0.01) -> Stream:
    r"""Expert $i$ loses 1 with probability $\frac12 (1 - \cos(2 \pi i / N - $ `speed` $t))$.

    The best expert changes slowly, each time to its neighbour. Tests tracking.
    """
    check_sizes(key, rounds=rounds, experts=experts)
    speed = check.non_negative("speed", speed)
    place = 2 * jnp.pi * jnp.arange(experts, dtype=float) / experts
    chances = (1 - jnp.cos(place - speed * jnp.arange(rounds, dtype=float)[:, None])) / 2
    truth = jax.nn.one_hot(jnp.argmin(chances, axis=1), experts, dtype=float)
    return Stream(Rounds(None, coins(key, chances, chances.shape)), truth)


@public
def switching_losses(
    key: Array, rounds: int, experts: int, switches: int = 4, gap: Scalar = 0.25
) -> Stream:
    """The best expert changes `switches` times, after pieces of equal length.

    Tests fixed share and sleeping experts: the best fixed expert is a poor comparator. Needs at
    least two experts.

    gap: by how much the mean loss of the best expert is smaller, from 0 to 1/2.
    """
    check_sizes(key, rounds=rounds)
    whole("experts", experts, 2, 2**31)
    gap = check.between("gap", gap, 0.0, 0.5)
    piece = segments(rounds, switches)
    for_first, for_moves, for_losses = jax.random.split(key, 3)
    first = jax.random.randint(for_first, (1,), 0, experts)
    moves = jax.random.randint(for_moves, (switches,), 1, experts)
    best = jnp.cumsum(jnp.concatenate([first, moves])) % experts
    truth = jax.nn.one_hot(best[piece], experts, dtype=float)
    return Stream(Rounds(None, coins(for_losses, 0.5 - gap * truth, truth.shape)), truth)


@public
def random_sign_losses(key: Array, rounds: int) -> Stream:
    r"""Linear losses $\sigma_t w$ on $[-1, 1]$ with random signs: a lower bound for every learner.

    Every learner has an expected loss of 0, while the truth $u = -\mathrm{sign} \sum_t \sigma_t$
    gains $|\sum_t \sigma_t|$, about $\sqrt{2 T / \pi}$.

    Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, theorem 3.
    """
    check_sizes(key, rounds=rounds)
    signs = jax.random.rademacher(key, (rounds,), float)
    return Stream(Rounds(None, signs), jnp.where(jnp.sum(signs) >= 0, -1.0, jnp.ones(())))
