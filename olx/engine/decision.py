"""`decision`: the weights of a trained learner, and the shape of them from a state and a row."""

from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx import _check as check
from olx._cache import cached
from olx._compiled import result_shapes
from olx._refusal import RefusedType, public
from olx.core import Batch, Learner, Rounds, Run
from olx.engine import round
from olx.engine.arguments import check_state
from olx.frameworks.lift import as_linear, is_affine


@public
def decision(learner: Learner, state: PyTree, context: PyTree = None) -> PyTree:
    r"""The decision $w$ of a learner in `state`, such as the weights of a linear predictor.

    For a point learner it is the action. For a predictor whose score is $\langle w, x\rangle$, it
    is the slope of the score, whatever the algorithm keeps in its state; scores of several classes
    give one row each. A predictor with another score is refused.

    context: one row, for a predictor; only its shape and dtype are used.

    >>> import jax.numpy as jnp, olx
    >>> rows, labels = jnp.array([[1.0, 0.0], [0.0, 1.0]]), jnp.array([1.0, -1.0])
    >>> learner = olx.classification.passive_aggressive()
    >>> run = olx.rollout(learner, olx.losses.hinge, olx.Rounds(rows, labels), jnp.zeros(2))
    >>> olx.decision(learner, run.state, rows[0]).tolist()
    [1.0, -1.0]
    """
    if isinstance(learner, Batch):
        raise RefusedType("`learner` is a batch; give one of its learners, as in batch[0].")
    check.instance("learner", learner, Learner)
    if isinstance(state, Run) or state is None:
        check_state(state, ())
    if context is None:
        return _point(learner, state)
    if is_affine(learner):  # its last weight is the intercept
        learner, context = as_linear(learner), np.append(np.asarray(context), 1.0)
    zero = jax.tree.map(lambda leaf: jnp.zeros(np.shape(leaf), _real(leaf)), context)
    start_like(learner, state, zero)  # refuses other states and rows
    score = lambda x: learner.predict(state, x)
    slope = jax.jacobian(score)(zero)
    for seed in range(3):  # a linear score is linear everywhere
        x = jax.tree.map(lambda leaf, s=seed: _drawn(s, leaf), zero)
        seen, wanted = score(x), _linear(slope, x, score(zero))
        if not np.allclose(seen, wanted, rtol=1e-3, atol=1e-5):
            raise RefusedType(
                "the score of this learner is not a linear function of the row, so it "
                "has no weights; `olx.predict` gives its scores."
            )
    return slope


def _point(learner: Learner, state: PyTree) -> PyTree:
    try:
        return learner.predict(state, None)
    except (TypeError, AttributeError):
        raise RefusedType(
            "this learner acts on a context; give one row, of which only the shape is "
            "used: `olx.decision(learner, state, row)`."
        ) from None


def _linear(slope: PyTree, x: PyTree, zero: PyTree) -> PyTree:
    """The linear function with this slope that is 0 at 0; NaN if the score at 0 is not 0."""
    terms = jax.tree.map(lambda w, leaf: jnp.tensordot(w, leaf, jnp.ndim(leaf)), slope, x)
    total = sum(jax.tree.leaves(terms))
    return jnp.where(jnp.all(jnp.asarray(zero) == 0), total, jnp.nan)


def _drawn(seed: int, leaf: jax.Array) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), leaf.shape, leaf.dtype)


def _real(leaf) -> jnp.dtype:
    kind = jnp.result_type(leaf)
    return kind if jnp.issubdtype(kind, jnp.floating) else jnp.zeros(()).dtype


def start_like(learner: Learner, state: PyTree, row: PyTree) -> PyTree:
    """Zeros in the shape of the `params` that `state` was made from; None if that is not known.

    A decision has the shape of a row, or that shape after one more axis, such as classes. Refuses a
    row whose length cannot be that of the decision, and the state of another learner.

    row: the shapes and dtypes of one context.
    """
    leaves, structure = jax.tree.flatten((learner, state, row))
    kinds = tuple((np.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)
    found, fits = _found(structure, kinds)
    if not fits:
        _refuse_state(learner, state, row)
        _refuse_row(row)
    return found


def _refuse_row(row: PyTree) -> NoReturn:
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(row)]
    if isinstance(row, Rounds):
        raise RefusedType("got rounds where rows are wanted; give `rounds.context`.")
    if isinstance(row, list):
        raise RefusedType("a row is a list; give an array, as np.array(row).")
    raise RefusedType(
        f"a row has shape {shapes[0] if len(shapes) == 1 else shapes}; the learner was "
        "trained on rows of another shape. Give the same columns, in the same order"
        + (", and many rows as a matrix, one row as `row[None]`." if shapes == [()] else ".")
    )


def _refuse_state(learner: Learner, state: PyTree, row: PyTree) -> None:
    """Refuse a state that is not one of this learner, whatever the shape of its decision."""
    kind = jnp.zeros(()).dtype
    for above in [(), (2,)]:
        start = jax.tree.map(lambda x, a=above: jax.ShapeDtypeStruct((*a, *x.shape), kind), row)
        like = _quietly(Learner.init, learner, start)
        if type(like) is type(state) and type(like) is not jax.ShapeDtypeStruct:
            return
    if like is not None:
        check_state(state, like)
    check_state(state, ())  # a Run, or nothing


@cached
def _found(structure: object, kinds: tuple) -> tuple[PyTree, bool]:
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
            act = lambda learner, state, x, w=start: learner.predict(
                state, round.cast_context(x, w)
            )
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
