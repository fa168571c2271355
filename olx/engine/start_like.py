"""Find the shape of the decision from a state and a row."""

from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx._cache import cached, result_shapes
from olx.core import Learner, Rounds
from olx.engine import contexts
from olx.engine.boundary import check_state


def start_like(owner: str, learner: Learner, state: PyTree, row: PyTree) -> PyTree:
    """Zeros in the shape of the `params` that `state` was made from; None if that is not known.

    A decision has the shape of a row, or that shape after one more axis, such as classes. Refuses a
    row whose length cannot be that of the decision, and the state of another learner.

    row: the shapes and dtypes of one context.
    """
    leaves, structure = jax.tree.flatten((learner, state, row))
    kinds = tuple((np.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)
    found, fits = _found(structure, kinds)
    if not fits:
        _refuse_state(owner, learner, state, row)
        _refuse_row(owner, row)
    return found


def _refuse_row(owner: str, row: PyTree) -> NoReturn:
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(row)]
    if isinstance(row, Rounds):
        raise TypeError(f"{owner}: got rounds where rows are wanted; give `rounds.context`.")
    if isinstance(row, list):
        raise TypeError(f"{owner}: a row is a list; give an array, as np.array(row).")
    raise TypeError(
        f"{owner}: a row has shape {shapes[0] if len(shapes) == 1 else shapes}; the learner was "
        "trained on rows of another shape. Give the same columns, in the same order"
        + (", and many rows as a matrix, one row as `row[None]`." if shapes == [()] else ".")
    )


def _refuse_state(owner: str, learner: Learner, state: PyTree, row: PyTree) -> None:
    """Refuse a state that is not one of this learner, whatever the shape of its decision."""
    kind = jnp.zeros(()).dtype
    for above in [(), (2,)]:
        start = jax.tree.map(lambda x, a=above: jax.ShapeDtypeStruct((*a, *x.shape), kind), row)
        like = _quietly(Learner.init, learner, start)
        if type(like) is type(state) and type(like) is not jax.ShapeDtypeStruct:
            return
    if like is not None:
        check_state(owner, state, like)
    check_state(owner, state, ())  # a Run, or nothing


@cached
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
            start = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), start)
            act = lambda learner, state, x, w=start: learner.predict(state, contexts.cast(x, w))
            return start, _quietly(act, learner, state, row) is not None
    return None, _quietly(Learner.predict, learner, state, row) is not None


def _quietly(function: Any, *given: Any) -> Any:
    """The shapes of the result; None if the function does not take these shapes.

    The learner is an argument, since its numbers are shapes here, too.
    """
    try:
        return result_shapes(function, *given)
    except Exception:
        return None


def _same(seen: PyTree, wanted: PyTree) -> bool:
    if seen is None or jax.tree.structure(seen) != jax.tree.structure(wanted):
        return False
    pairs = zip(jax.tree.leaves(seen), jax.tree.leaves(wanted), strict=True)
    return all(a.shape == b.shape for a, b in pairs)


def _is_float(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jnp.floating)
