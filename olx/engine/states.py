"""The states that a sweep starts from: those of `init`, or those of an earlier sweep."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx._cache import compiled, result_shapes
from olx.core import Learner
from olx.engine.boundary import check_state, first_states
from olx.engine.collect import is_key
from olx.engine.game import Known


def states_of(
    owner: str,
    known: Known,
    params: PyTree,
    state: PyTree,
    arrange: Callable[[PyTree], PyTree] | None = None,
    axes: PyTree = 0,
) -> PyTree:
    """The states of a batch; refuses `state` if it is not one of these learners.

    state: of an earlier sweep; None to begin.
    arrange: a function of one state, applied to the state of every configuration.
    axes: where the result has the axis of configurations.
    """
    if state is None:
        return first_states(owner, known, params, arrange, axes)
    check_state(owner, state, result_shapes(_init, known.learner, params))
    count = np.shape(jax.tree.leaves(known.learner)[0])[0]
    short = np.shape(known.game.own[0])[0] - count
    state = jax.tree.map(lambda leaf: padding(_copy(leaf), short), state)
    return state if arrange is None else _arranged(arrange, axes, state)


def padding(leaf: jax.Array, short: int) -> jax.Array:
    """Repeat the last configuration `short` times, so that all devices get the same number."""
    return jnp.concatenate([leaf, jnp.repeat(leaf[-1:], short, axis=0)]) if short else leaf


def _copy(leaf: Any) -> jax.Array:
    """A copy; it does not lie on the devices of the earlier sweep, which may be others."""
    if jax.local_device_count() == 1:
        return jnp.array(leaf)
    if is_key(leaf):
        data = jnp.asarray(np.asarray(jax.random.key_data(leaf)))
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(leaf))
    return jnp.asarray(np.array(leaf))


def _init(learners: Learner, params: PyTree) -> PyTree:
    return jax.vmap(lambda one: one.init(params))(learners)


@functools.partial(compiled, static=(0, 1))
def _arranged(arrange: Callable, axes: PyTree, state: PyTree) -> PyTree:
    return jax.vmap(arrange, out_axes=axes)(state)
