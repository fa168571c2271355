r"""Losses of experts in $[0, 1]$: no context, the outcome of a round is one loss an expert.

The truth is a distribution that sits on the best expert, one a round where the best changes. Losses
are 0 or 1, with a chance of $\frac12$ unless told.

Cesa-Bianchi, Lugosi, Prediction, Learning, and Games, 2006.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from olx import _check as check
from olx.core import Rounds, Scalar
from olx.streams.stream import Stream, coins, segments, whole


def expert_losses(key: Array, rounds: int, experts: int, gap: Scalar = 0.1) -> Stream:
    r"""One expert, at random, is better than all others by `gap` in the mean.

    Stochastic losses: learners that adapt stop paying once the gap shows.

    gap: from 0 to 1/2.

    >>> expert_losses(jax.random.key(0), rounds=50, experts=4).rounds.outcome.shape
    (50, 4)
    """
    _check("expert_losses", rounds, experts)
    gap = check.between("expert_losses", "gap", gap, 0.0, 0.5)
    for_best, for_losses = jax.random.split(key)
    truth = jax.nn.one_hot(jax.random.randint(for_best, (), 0, experts), experts, dtype=float)
    losses = coins(for_losses, 0.5 - gap * truth, (rounds, experts))
    return Stream(Rounds(None, losses), truth)


def alternating_losses(rounds: int, experts: int) -> Stream:
    """Experts of even and odd index take turns to pay 1, after a first round of 1/2 for the even.

    Whoever follows the leader pays in every round after the first, the best expert in half of them;
    there is no chance in it. Needs two experts.
    """
    check.count("alternating_losses", "rounds", rounds)
    whole("alternating_losses", "experts", experts, 2, 2**31)
    turn = jnp.arange(rounds)[:, None] % 2
    losses = (jnp.arange(experts) % 2 == turn).astype(float).at[0].multiply(0.5)
    best = jax.nn.one_hot(jnp.argmin(jnp.sum(losses, axis=0)), experts, dtype=float)
    return Stream(Rounds(None, losses), best)


def drifting_losses(key: Array, rounds: int, experts: int, speed: Scalar = 0.01) -> Stream:
    r"""Chances that turn like a wheel: $\frac12 (1 - \cos(2 \pi i / N - $ `speed` $t))$.

    The best expert moves on slowly, to its neighbour; tests tracking and changing environments.
    """
    _check("drifting_losses", rounds, experts)
    speed = check.non_negative("drifting_losses", "speed", speed)
    place = 2 * jnp.pi * jnp.arange(experts, dtype=float) / experts
    chances = (1 - jnp.cos(place - speed * jnp.arange(rounds, dtype=float)[:, None])) / 2
    truth = jax.nn.one_hot(jnp.argmin(chances, axis=1), experts, dtype=float)
    return Stream(Rounds(None, coins(key, chances, chances.shape)), truth)


def switching_losses(
    key: Array, rounds: int, experts: int, switches: int = 4, gap: Scalar = 0.25
) -> Stream:
    """Pieces of equal length, each with a best expert other than the one before.

    Tests sharing of weight and sleeping experts: the best fixed expert is a poor comparator. Needs
    two experts.

    gap: how much better the best is in the mean, from 0 to 1/2.
    """
    check.count("switching_losses", "rounds", rounds)
    whole("switching_losses", "experts", experts, 2, 2**31)
    gap = check.between("switching_losses", "gap", gap, 0.0, 0.5)
    piece = segments("switching_losses", rounds, switches)
    for_first, for_moves, for_losses = jax.random.split(key, 3)
    first = jax.random.randint(for_first, (1,), 0, experts)
    moves = jax.random.randint(for_moves, (switches,), 1, experts)
    best = jnp.cumsum(jnp.concatenate([first, moves])) % experts
    truth = jax.nn.one_hot(best[piece], experts, dtype=float)
    return Stream(Rounds(None, coins(for_losses, 0.5 - gap * truth, truth.shape)), truth)


def random_sign_losses(key: Array, rounds: int) -> Stream:
    r"""Linear losses $\sigma_t w$ on $[-1, 1]$ with random signs: a lower bound for every learner.

    Whatever is played loses 0 in expectation, while the truth $u = -\mathrm{sign} \sum_t \sigma_t$
    gains $|\sum_t \sigma_t|$, about $\sqrt{2 T / \pi}$.

    Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, theorem 3.
    """
    check.count("random_sign_losses", "rounds", rounds)
    signs = jax.random.rademacher(key, (rounds,), float)
    return Stream(Rounds(None, signs), jnp.where(jnp.sum(signs) >= 0, -1.0, jnp.ones(())))


def _check(owner: str, rounds: int, experts: int) -> None:
    check.count(owner, "rounds", rounds)
    check.count(owner, "experts", experts)
