"""Copies of one learner that see the same rows and are taught different things.

The copies share the numbers of the learner, but not its random keys: copy i has key i of n, split
from each key in the hparams, of a learner inside too, and from each key in the first state. So
copies that draw their first weights start apart. The states are stacked. All copies act at once,
with the states from before the round, and all learn at once.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx.core import Feedback, Learner


def start(learner: Learner, n: int, params: PyTree) -> PyTree:
    """The stacked states of `n` copies before the first round; each has its own random keys."""
    one = jax.tree.map(jnp.asarray, learner.init(params))
    stacked = each(learner, n, lambda own: jax.tree.map(jnp.asarray, own.init(params)))
    own_keys = lambda leaf, leaves: _split(leaf, n) if _is_key(leaf) else leaves
    return jax.tree.map(own_keys, one, stacked)


def each(learner: Learner, n: int, call: Callable[..., Any], *stacked: PyTree) -> PyTree:
    """`call(own, *parts)` for every copy: the learner with the keys of the copy, and its parts."""
    leaves, structure = jax.tree.flatten(learner)
    keys = {at: _split(leaf, n) for at, leaf in enumerate(leaves) if _is_key(leaf)}

    def one(own: dict[int, Array], *parts: PyTree) -> PyTree:
        mine = [own.get(at, leaf) for at, leaf in enumerate(leaves)]
        return call(jax.tree.unflatten(structure, mine), *parts)

    return jax.vmap(one, axis_size=n)(keys, *stacked)


def act(learner: Learner, states: PyTree, context: PyTree) -> PyTree:
    """The action of every copy."""
    predict = lambda own, state: own.predict(state, context)
    return each(learner, _count(states), predict, states)


def teach(
    learner: Learner,
    states: PyTree,
    actions: PyTree,
    losses: Partial,
    feedback: Feedback,
    weights: Float[Array, " n"],
    refreshing: bool = True,
) -> PyTree:
    """The states after a round in which copy i pays `losses[i]` with importance `weights[i]`.

    losses: a `Partial` of an action. Its leaves are stacked: one loss per copy.
    refreshing: False for a learner that states the `Refresh` of its copies, by the functions below;
        else every copy computes a refresh in every round.
    """

    def learn(own: Learner, state: PyTree, action: PyTree, loss: Partial, weight: Array) -> PyTree:
        value, grad = jax.value_and_grad(loss)(action)
        seen = feedback._replace(action=action, loss=loss, value=value, grad=grad, weight=weight)
        return own.update(state, seen) if refreshing else own.step(state, seen)

    return each(learner, _count(states), learn, states, actions, losses, weights)


def due(learner: Learner, states: PyTree) -> Array:
    """Whether one of the copies needs a refresh."""
    return jnp.any(each(learner, _count(states), lambda own, state: own.due(state, 1.0), states))


def sums(learner: Learner, states: PyTree) -> PyTree:
    """What the refreshes of the copies need to know about all coordinates."""
    return each(learner, _count(states), Learner.sums, states)


def refreshed(learner: Learner, states: PyTree, sums: PyTree) -> PyTree:
    """The states of the copies, those that need it in better coordinates."""

    def refresh(own: Learner, state: PyTree, sums: PyTree) -> PyTree:
        now, better = own.due(state, 1.0), own.refreshed(state, sums)
        return jax.tree.map(lambda new, old: jnp.where(now, new, old), better, state)

    return each(learner, _count(states), refresh, states, sums)


def _count(states: PyTree) -> int:
    return jax.tree.leaves(states)[0].shape[0]


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _split(keys: Array, n: int) -> Array:
    """`n` keys from each of `keys`, along a new first axis."""
    split = jax.vmap(lambda key: jax.random.split(key, n), out_axes=1)
    return split(keys.reshape(-1)).reshape(n, *keys.shape)
