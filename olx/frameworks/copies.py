"""Copies of one learner that see the same rows and are taught different things.

The copies share the numbers of the learner, but not its random keys: copy i has key i of n, split
from each key in the hparams, of a learner inside too, and from each key in the first state. So
copies that draw their first weights start apart. The states are stacked. All copies act at once,
with the states from before the round, and all learn at once.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx.core import Feedback, Learner
from olx.facts import Refresh


def start(learner: Learner, n: int, params: PyTree) -> PyTree:
    """The stacked states of `n` copies before the first round; each has its own random keys."""
    one = jax.tree.map(jnp.asarray, learner.init(params))
    stacked = each(learner, n, lambda own: jax.tree.map(jnp.asarray, own.init(params)))
    own_keys = lambda leaf, leaves: _split(leaf, n) if _is_key(leaf) else leaves
    return jax.tree.map(own_keys, one, stacked)


def each(learner: Learner, n: int, call: Callable[..., PyTree], *stacked: PyTree) -> PyTree:
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
) -> PyTree:
    """The states after a round in which copy i pays `losses[i]` with importance `weights[i]`.

    learner: if it has a refresh, every copy computes it in every round. A wrapper that states the
        refresh of its copies, `refresh_of`, teaches `without_refresh(learner)`.
    losses: a `Partial` of an action. Its leaves are stacked: one loss per copy.
    """

    def learn(own: Learner, state: PyTree, action: PyTree, loss: Partial, weight: Array) -> PyTree:
        value, grad = jax.value_and_grad(loss)(action)
        seen = feedback._replace(action=action, loss=loss, value=value, grad=grad, weight=weight)
        return own.update(state, seen)

    return each(learner, _count(states), learn, states, actions, losses, weights)


def refresh_of(learner: Learner) -> Refresh | None:
    """The refresh of copies, for a wrapper with the learner and the states in fields `inner`."""
    return None if learner.facts.refresh is None else Refresh(_due, _refreshed, _sums)


def _due(hp: PyTree, state: PyTree) -> Array:
    """Whether one of the copies needs a refresh."""
    due = lambda own, state: own.facts.refresh.due_fn(own.hparams, state)
    return jnp.any(each(hp.inner, _count(state.inner), due, state.inner))


def _sums(hp: PyTree, state: PyTree) -> PyTree:
    sums = lambda own, state: own.facts.refresh.sums(own.hparams, state)
    return each(hp.inner, _count(state.inner), sums, state.inner)


def _refreshed(hp: PyTree, state: PyTree, sums: PyTree) -> PyTree:
    """The state with those copies that need it in better coordinates."""

    def better(own: Learner, state: PyTree, sums: PyTree) -> PyTree:
        refresh = own.facts.refresh
        assert refresh is not None  # `refresh_of` has checked
        now, new = refresh.due_fn(own.hparams, state), refresh.apply_fn(own.hparams, state, sums)
        return jax.tree.map(lambda new, old: jnp.where(now, new, old), new, state)

    return state._replace(inner=each(hp.inner, _count(state.inner), better, state.inner, sums))


def _count(states: PyTree) -> int:
    return jax.tree.leaves(states)[0].shape[0]


def _is_key(leaf: PyTree) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _split(keys: Array, n: int) -> Array:
    """`n` keys from each of `keys`, along a new first axis."""
    split = jax.vmap(lambda key: jax.random.split(key, n), out_axes=1)
    return split(keys.reshape(-1)).reshape(n, *keys.shape)
