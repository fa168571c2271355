"""Failures of a check, the run that the kit for learners checks, and changes of rounds and numbers.

A failure names the broken property and where it is broken.
"""

from typing import NoReturn

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, PyTree

from olx.core import Feedback, Learner, Loss, Rounds, Run
from olx.engine.rollout import rollout


def fail(what: str) -> NoReturn:
    raise AssertionError(f"{what}.")


def close(what: str, seen: PyTree, wanted: PyTree, rtol: float = 0.0) -> None:
    """Fail with `what` unless two trees agree: in every bit, or to `rtol` of the largest entry."""
    seen, wanted = numbers(seen), numbers(wanted)
    try:
        chex.assert_trees_all_equal_structs(seen, wanted)
        chex.assert_trees_all_equal_shapes(seen, wanted)
        if not rtol:
            chex.assert_trees_all_equal(seen, wanted)
            return
        what = f"{what}, in parts of the largest entry"
        sizes = jax.tree.map(_largest, wanted)
        shares = (jax.tree.map(np.divide, each, sizes) for each in (seen, wanted))
        chex.assert_trees_all_close(*shares, rtol=0.0, atol=rtol)
    except AssertionError as error:
        fail(f"{what}: {error}")


def _largest(leaf: np.ndarray) -> np.ndarray | float:
    """The largest finite entry of a leaf of real numbers, at least 1, in its dtype."""
    if leaf.dtype.kind != "f":
        return 1
    return np.max(np.abs(leaf[np.isfinite(leaf)]), initial=leaf.dtype.type(1.0))


def tolerance(done: Run) -> float:
    """The tolerance between two ways to compute a run."""
    return 1e-12 if done.losses.dtype == jnp.float64 else 1e-5


def numbers(tree: PyTree) -> PyTree:
    """The tree with NumPy arrays as leaves; random keys are converted to their data."""
    return jax.tree.map(_array, tree)


def _array(leaf: ArrayLike) -> np.ndarray:
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf)


def study(
    learner: Learner, loss: Loss, rounds: Rounds, params: PyTree
) -> tuple[Run, list, list[PyTree]]:
    """The run with its states, the gradient of its total loss, and the first action, twice."""
    leaves, structure = jax.tree.flatten(learner)

    def total(real: list) -> tuple[jax.Array, Run]:
        mine = iter(real)
        both = [next(mine) if is_real(leaf) else leaf for leaf in leaves]
        run = rollout(
            jax.tree.unflatten(structure, both), loss, rounds, params, record=before_update
        )
        return jnp.sum(run.losses), run

    slope, run = jax.grad(total, has_aux=True)([leaf for leaf in leaves if is_real(leaf)])
    state = learner.init(params)
    context = jax.tree.map(lambda leaf: leaf[0], rounds.context)
    return run, slope, [learner.predict(state, context) for _ in range(2)]


def before_update(state: PyTree, feedback: Feedback) -> PyTree:
    return state


def after(run: Run, count: int) -> PyTree:
    """The state of a run after `count` rounds."""
    if count == len(run.losses):
        return run.state
    return jax.tree.map(lambda leaf: _row(leaf, count), run.trace)


def _row(leaf: jax.Array, at: int) -> ArrayLike:
    """Entry `at` of a leaf; NumPy is faster, but has neither random keys nor weak types."""
    plain = not getattr(leaf, "weak_type", True)  # a key has no `weak_type`
    return np.asarray(leaf)[at] if plain else leaf[at]


def weighed(rounds: Rounds, weight: ArrayLike) -> Rounds:
    """The rounds with the given weight: one number, or one number per round."""
    leaves = jax.tree.leaves(rounds)
    dtype = jnp.result_type(*([leaf for leaf in leaves if leaf.dtype.kind == "f"] or [float]))
    return rounds._replace(weight=np.full(len(leaves[0]), weight, dtype))


def movable(learner: Learner, params: PyTree) -> list[bool]:
    """Which leaves of a learner are real and can all be multiplied by 0.7, `params` still legal.

    The radius of a domain, for example, may not: `params` could lie outside.
    """
    leaves, structure = jax.tree.flatten(learner)

    def starts(moves: list[bool]) -> bool:
        less = [leaf * 0.7 if own else leaf for leaf, own in zip(leaves, moves, strict=True)]
        other = jax.tree.unflatten(structure, less)
        about = [need for need in other.needs if need.where == "params"]
        return all(bool(need.legal_fn(other.hparams, params, None)) for need in about)

    moves = [False] * len(leaves)
    for at, leaf in enumerate(leaves):
        moves[at] = is_real(leaf) and starts([*moves[:at], True, *moves[at + 1 :]])
    return moves


def with_numbers(learner: Learner, factor: float, moves: list[bool] | None = None) -> Learner:
    """The learner with all real numbers, or those that `moves` marks, multiplied by `factor`."""
    leaves, structure = jax.tree.flatten(learner)
    moves = list(map(is_real, leaves)) if moves is None else moves
    scaled = [leaf * factor if own else leaf for leaf, own in zip(leaves, moves, strict=True)]
    return jax.tree.unflatten(structure, scaled)


def is_real(leaf: ArrayLike) -> bool:
    return jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
