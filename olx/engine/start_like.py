"""Find the shape of the decision from a state and a row."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx.core import Learner


def start_like(owner: str, learner: Learner, state: PyTree, row: PyTree) -> PyTree:
    """Zeros in the shape of the `params` that `state` was made from; None if that is not known.

    A decision has the shape of a row, or that shape after one more axis, such as classes. Refuses a
    row whose length cannot be that of the decision.

    row: the shapes and dtypes of one context.
    """
    leaves, structure = jax.tree.flatten((learner, state, row))
    kinds = tuple((np.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)
    found, fits = _found(structure, kinds)
    if not fits:
        shapes = [np.shape(leaf) for leaf in jax.tree.leaves(row)]
        raise TypeError(
            f"{owner}: a row has shape {shapes[0] if len(shapes) == 1 else shapes}; the learner "
            "was trained on rows of another shape. Give the same columns, in the same order."
        )
    return found


@functools.lru_cache(maxsize=256)
def _found(structure: Any, kinds: tuple) -> tuple[PyTree, bool]:
    """The start, and whether the learner takes such a row; cached, since it traces."""
    shapes = [jax.ShapeDtypeStruct(*kind) for kind in kinds]
    learner, state, row = jax.tree.unflatten(structure, shapes)
    floats = [leaf.dtype for leaf in jax.tree.leaves(state) if _is_float(leaf)]
    dtype = max(floats, key=lambda kind: kind.itemsize, default=jnp.zeros(()).dtype)
    sizes = {size for leaf in jax.tree.leaves(state) for size in leaf.shape}
    for above in [(), *((size,) for size in sorted(sizes))]:
        start = jax.tree.map(lambda x, a=above: jax.ShapeDtypeStruct((*a, *x.shape), dtype), row)
        if jax.tree.leaves(start) and _same(_quietly(Learner.init, learner, start), state):
            return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), start), True
    return None, _quietly(Learner.predict, learner, state, row) is not None


def _quietly(function: Any, *given: Any) -> Any:
    """The shapes of the result; None if the function does not take these shapes.

    The learner is an argument, since its numbers are shapes here, too.
    """
    try:
        return jax.eval_shape(function, *given)
    except (TypeError, ValueError):
        return None


def _same(seen: PyTree, wanted: PyTree) -> bool:
    if seen is None or jax.tree.structure(seen) != jax.tree.structure(wanted):
        return False
    pairs = zip(jax.tree.leaves(seen), jax.tree.leaves(wanted), strict=True)
    return all(a.shape == b.shape for a, b in pairs)


def _is_float(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jnp.floating)
