"""Families of games whose targets have a common structure, and players of many games at once.

A game has normal rows, a target that its family draws, and noise. All families have targets with a
mean squared length of 1, so their totals can be compared.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import olx

Draw = Callable[[Array], Array]  # key -> target
NOISE = 0.3


class Games(NamedTuple):
    """Many games; every leaf has a leading axis of games."""

    rounds: olx.Rounds
    target: Float[Array, "n d"]


def families(features: int, seed: int) -> dict[str, Draw]:
    """By name, how a family draws a target; what `seed` decides is common to all its games."""
    rng, d = np.random.default_rng(seed), features
    basis, _ = np.linalg.qr(rng.normal(size=(d, d)))
    basis = jnp.asarray(basis, jnp.float32)
    rank = max(1, d // 5)
    scales = np.exp(rng.uniform(np.log(0.1), np.log(3.0), size=d))
    scales = jnp.asarray(scales / np.linalg.norm(scales) / np.sqrt(0.2), jnp.float32)

    def few(key: Array, share: float) -> Array:
        """Signs at random places, 0 elsewhere."""
        places, signs = jax.random.split(key)
        return jax.random.rademacher(signs, (d,), jnp.float32) * (
            jax.random.uniform(places, (d,)) < share
        )

    return {
        "subspace": lambda key: basis[:, :rank] @ jax.random.normal(key, (rank,)) / rank**0.5,
        "scales": lambda key: scales * few(key, 0.2),
        "rotated scales": lambda key: basis @ (scales * few(key, 0.2)),
        "isotropic": lambda key: jax.random.normal(key, (d,)) / d**0.5,
        "rotated signs": lambda key: basis @ few(key, 0.1) / (0.1 * d) ** 0.5,
    }


def games(draw: Draw, count: int, length: int, key: Array) -> Games:
    """New games of a family."""

    def one(key: Array) -> Games:
        for_target, for_rows, for_noise = jax.random.split(key, 3)
        target = draw(for_target)
        rows = jax.random.normal(for_rows, (length, target.size))
        noise = NOISE * jax.random.normal(for_noise, (length,))
        return Games(olx.Rounds(rows, rows @ target + noise), target)

    return jax.vmap(one)(jax.random.split(key, count))


def losses(learner: olx.Learner, rounds: olx.Rounds) -> Float[Array, "n T"]:
    """What a learner pays in each round of each game."""
    start = jnp.zeros(rounds.context.shape[-1])
    play = lambda rounds: olx.rollout(learner, olx.losses.squared, rounds, start).losses
    return jax.vmap(play)(rounds)


def totals(make: Callable, axes: dict[str, Array], rounds: olx.Rounds) -> Float[Array, "m n"]:
    """The total of each configuration in each game; infinite if it diverged."""
    one = lambda numbers: jnp.sum(losses(make(**numbers), rounds), axis=-1)
    found = jax.jit(jax.vmap(one))(axes)
    return jnp.where(jnp.isfinite(found), found, jnp.inf)


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """The mean over games and its standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))
