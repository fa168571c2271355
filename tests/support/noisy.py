"""A learner whose state holds a key of a random generator."""

import jax
import jax.numpy as jnp

import olx


def init(_, params):
    return params, jax.random.key(3)


def predict(_, state, x):
    return jnp.vdot(state[0], x) + 0.1 * jax.random.normal(state[1])


def update(_, state, feedback):
    w = state[0] - 0.01 * feedback.grad * feedback.context
    return w, jax.random.split(state[1], 1)[0]


LEARNER = olx.Learner(None, init, predict, update)
