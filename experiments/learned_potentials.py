"""Potentials with free numbers, and their training by gradients through games."""

import argparse
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

import olx
from experiments import learned_games as play
from experiments.learned_games import Draw
from olx import mirrors

SPREAD = jnp.array([0.1, 0.3, 1.0])  # the widths of a direction, times one number


class Numbers(NamedTuple):
    """What is learned, as free numbers: any value of them gives a strongly convex potential."""

    levels: Float[Array, "m K1"]  # logarithms
    width: Float[Array, " m"]  # logarithms
    matrix: Float[Array, "m d"]


def start(features: int) -> Numbers:
    """The numbers of the Euclidean potential."""
    levels = jnp.zeros((features, len(SPREAD) + 1))
    return Numbers(levels, jnp.zeros(features), jnp.eye(features))


def network(eta: float, numbers: Numbers) -> olx.MirrorMap:
    """The whole network. A width is in units of weights at the step size `eta`."""
    widths = jnp.exp(numbers.width)[:, None] * SPREAD / eta
    return mirrors.convex_network(eta * jnp.exp(numbers.levels), widths, numbers.matrix)


def separable(eta: float, numbers: Numbers) -> olx.MirrorMap:
    """One learned curve per coordinate."""
    widths = jnp.exp(numbers.width)[:, None] * SPREAD / eta
    return mirrors.convex_network(eta * jnp.exp(numbers.levels), widths)


def quadratic(eta: float, numbers: Numbers) -> olx.MirrorMap:
    """Learned directions with constant curvature: a learned matrix."""
    return network(eta, Numbers(*start(numbers.width.size)[:2], numbers.matrix))


LEARNED = {
    "learned network": network,
    "learned matrix": quadratic,
    "learned curves": separable,
}


def learner(mirror: olx.MirrorMap, eta: float = 1.0) -> olx.Learner:
    """Follow the regularized leader, with the regret bound of this potential."""
    return olx.linear(olx.ftrl(eta, mirror).carrying(olx.theorems.composite_regret(mirror)))


def plain(eta: float) -> olx.Learner:
    return learner(mirrors.euclidean(), eta)


class Trained(NamedTuple):
    numbers: Numbers
    curve: np.ndarray  # the mean total of the games of each step


def trained(shape: Callable, eta: float, draw: Draw, asked: argparse.Namespace) -> Trained:
    """Learn the numbers of a potential by gradients through `steps` times `batch` new games."""
    rates = optax.cosine_decay_schedule(asked.rate, asked.steps)
    adam = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rates))

    def objective(numbers: Numbers, rounds: olx.Rounds) -> tuple[Array, Array]:
        mean = jnp.mean(jnp.sum(play.losses(learner(shape(eta, numbers)), rounds), axis=-1))
        return jnp.log(mean), mean

    @jax.jit
    def step(numbers, memory, key):
        rounds = play.games(draw, asked.batch, asked.rounds, key).rounds
        slope, mean = jax.grad(objective, has_aux=True)(numbers, rounds)
        change, memory = adam.update(slope, memory)
        return optax.apply_updates(numbers, change), memory, mean

    numbers, key = start(asked.features), jax.random.fold_in(jax.random.key(asked.seed), 1)
    memory, curve = adam.init(numbers), []
    for i in range(asked.steps):
        numbers, memory, mean = step(numbers, memory, jax.random.fold_in(key, i))
        curve.append(mean)
    return Trained(numbers, np.asarray(curve))
