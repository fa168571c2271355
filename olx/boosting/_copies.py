"""Copies of one learner that see the same rows and are taught different things.

The copies share the numbers of the learner; their states are stacked. All copies act at once, with
the states from before the round, and all learn at once.
"""

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx.core import Feedback, Learner


def start(learner: Learner, n: int, params: PyTree) -> PyTree:
    """The stacked states of `n` copies before the first round; each has its own random keys."""

    def widen(leaf: Array) -> Array:
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            split = jax.vmap(lambda key: jax.random.split(key, n), out_axes=1)
            return split(leaf.reshape(-1)).reshape(n, *leaf.shape)
        return jnp.broadcast_to(leaf, (n, *jnp.shape(leaf)))

    return jax.tree.map(widen, jax.tree.map(jnp.asarray, learner.init(params)))


def act(learner: Learner, states: PyTree, context: PyTree) -> PyTree:
    """The action of every copy."""
    return jax.vmap(lambda own: learner.predict(own, context))(states)


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

    def learn(own: PyTree, action: PyTree, loss: Partial, weight: Array) -> PyTree:
        value, grad = jax.value_and_grad(loss)(action)
        seen = feedback._replace(action=action, loss=loss, value=value, grad=grad, weight=weight)
        return learner.update(own, seen) if refreshing else learner.step(own, seen)

    return jax.vmap(learn)(states, actions, losses, weights)


def due(learner: Learner, states: PyTree) -> Array:
    """Whether one of the copies needs a refresh."""
    return jnp.any(jax.vmap(lambda own: learner.due(own, 1.0))(states))


def sums(learner: Learner, states: PyTree) -> PyTree:
    """What the refreshes of the copies need to know about all coordinates."""
    return jax.vmap(learner.sums)(states)


def refreshed(learner: Learner, states: PyTree, sums: PyTree) -> PyTree:
    """The states of the copies, those that need it in better coordinates."""

    def one(own: PyTree, sums: PyTree) -> PyTree:
        now = learner.due(own, 1.0)
        better = learner.refreshed(own, sums)
        return jax.tree.map(lambda new, old: jnp.where(now, new, old), better, own)

    return jax.vmap(one)(states, sums)
