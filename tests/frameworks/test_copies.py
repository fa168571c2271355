"""Copies of a learner: shared numbers, own random keys."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from olx import boosting, losses
from olx.core import Learner
from olx.frameworks import copies

N, PARAMS = 4, np.zeros(3)


class State(NamedTuple):
    first: jax.Array  # drawn with the key of the hparams
    given: jax.Array  # the key of the hparams
    fresh: jax.Array  # a key that the learner makes by itself
    drawn: jax.Array  # in the last round, with the key of the hparams


def init(key, params):
    return State(jax.random.normal(key, params.shape), key, jax.random.key(7), jnp.zeros(()))


def predict(key, state, context):
    return jnp.vdot(state.first, context) + jax.random.normal(key)


def update(key, state, feedback):
    return state._replace(drawn=jax.random.normal(key))


DRAWS = Learner(jax.random.key(3), init, predict, update)
NETWORK = boosting.clipped(boosting.sigmoid_network(olx.ogd(0.1), 2, jax.random.key(3)))


def different(leaf):
    """Whether the entries along the first axis differ from each other."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return len(np.unique(np.asarray(leaf).reshape(len(leaf), -1), axis=0)) == len(leaf)


def test_each_copy_has_keys_of_its_own():
    """In the hparams and in the state, where they are given on and where they are made."""

    @jax.jit
    def play():
        states = copies.start(DRAWS, N, PARAMS)
        actions = copies.act(DRAWS, states, jnp.zeros(3))
        feedback = olx.Feedback(jnp.zeros(3), None, None, None, None, None, 1.0)
        paid = jax.tree_util.Partial(jnp.multiply, jnp.ones(N))
        return actions, copies.teach(DRAWS, states, actions, paid, feedback, jnp.ones(N))

    actions, states = play()
    assert all(map(different, (actions, *states)))
    own = jax.random.split(jax.random.key(3), N)
    assert np.array_equal(*map(jax.random.key_data, (states.given, own)))
    np.testing.assert_array_equal(states.drawn, jax.vmap(jax.random.normal)(own))


def test_copies_of_a_network_start_apart():
    makes = (
        lambda: boosting.gradient_boost(NETWORK, N, 0.5, losses.squared),
        lambda: boosting.gradient_boost_hull(boosting.greedy(NETWORK, 0.5), N, losses.squared),
        lambda: boosting.boost(NETWORK, N, boosting.osboost(0.1), losses.squared),
        lambda: olx.multiclass.one_vs_rest(NETWORK, N),
    )
    for make in makes:
        weights = jax.tree.leaves(make().init(PARAMS))
        assert different(next(leaf for leaf in weights if leaf.shape == (N, 2, 3)))


def test_copies_of_copies_start_apart():
    inner = olx.multiclass.one_vs_rest(NETWORK, 2)
    weights = jax.tree.leaves(copies.start(inner, N, PARAMS))[0]
    assert weights.shape == (N, 2, 2, 3)
    assert different(weights.reshape(2 * N, -1))


def test_copies_without_keys_start_alike():
    start = copies.start(olx.linear(olx.ogd(0.1)), N, np.arange(3.0))
    for leaf in jax.tree.leaves(start):
        np.testing.assert_array_equal(leaf, np.broadcast_to(leaf[0], leaf.shape))
