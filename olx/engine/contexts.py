"""Cast contexts to the dtype of the decision.

Integers, booleans and half precision overflow in a product such as <x, x>. A context with the shape
of the decision, or of its last axes, is a vector of the same space. It is cast to the dtype of the
decision once, before a learner uses it. A context of another shape, such as an index into a table,
is not changed.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx.streams.numbers import dtype_of


def dtypes(context: PyTree, params: PyTree, lead: int) -> list[Any]:
    """The dtype of each leaf of the context after the cast.

    lead: the number of axes of a leaf of the context before those of a decision.
    """
    leaves, structure = jax.tree.flatten(context)
    decision, like = jax.tree.flatten(params)
    own = [leaf.dtype for leaf in leaves]
    if structure != like:
        return own
    shapes = [(np.shape(x)[lead:], np.shape(w)) for x, w in zip(leaves, decision, strict=True)]
    if not all(x == w or (x and x == w[-len(x) :]) for x, w in shapes):
        return own
    return [_wider(a, dtype_of(w)) for a, w in zip(own, decision, strict=True)]


def cast(context: PyTree, params: PyTree) -> PyTree:
    """The context of one round, cast for a learner that starts from `params`."""
    context = jax.tree.map(jnp.asarray, context)
    leaves, structure = jax.tree.flatten(context)
    wanted = dtypes(context, params, 0)
    return jax.tree.unflatten(structure, map(_as, leaves, wanted))


def _as(leaf: jax.Array, dtype: np.dtype) -> jax.Array:
    return leaf if leaf.dtype == dtype else leaf.astype(dtype)


def _wider(own: np.dtype, wanted: np.dtype) -> Any:
    """The wider dtype. A float wider than `wanted` stays; the check of the update reports it."""
    if own == wanted or not jnp.issubdtype(wanted, jnp.floating):
        return own
    if jnp.issubdtype(own, jnp.floating):
        return wanted if own.itemsize < wanted.itemsize else own
    whole = jnp.issubdtype(own, jnp.integer) or jnp.issubdtype(own, jnp.bool_)
    return wanted if whole else own
