"""The loop over the rounds of a chunk, shared by the programs of the engine."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int, PyTree

from olx.engine.protocol import Seen


def over_rounds(
    one: Callable[[PyTree, Array], tuple[PyTree, Seen]],
    state: PyTree,
    span: Int[Array, "2"] | None,
    capacity: int,
) -> tuple[PyTree, Seen]:
    """The state after the rounds of a chunk from `span[0]` up to `span[1]`, and their outputs.

    one: (state, number of the round) -> (next state, output of the round).

    A `span` of None is all rounds. Else it is traced, so streams of any length use one program.
    Rows outside it are neither read nor written. The first axis of the outputs is time.
    """

    def step(i: Int[Array, ""], carry: tuple[PyTree, Seen]) -> tuple[PyTree, Seen]:
        state, out = carry
        state, seen = one(state, i)
        return state, added(lambda rows, row: put(rows, row, i), out, seen)

    low, high = (0, capacity) if span is None else (span[0], span[1])
    shapes = jax.eval_shape(one, state, FIRST)[1]
    return lax.fori_loop(low, high, step, (state, nothing(shapes, capacity)))


def nothing(seen: Seen, capacity: int, rounds: int = 0) -> Seen:
    """The output before the first of `capacity` rounds.

    seen: the shapes of the output of a round; or of `rounds` rounds, if that is not 0.
    """
    own = lambda leaf: leaf.shape[1:] if rounds else leaf.shape
    rows = lambda leaf: jnp.zeros((capacity, *own(leaf)), leaf.dtype)
    paid, kept = jax.tree.map(rows, (seen.paid, seen.kept))
    return Seen(paid, kept, None if seen.alarm is None else jnp.zeros(seen.alarm.shape, bool))


def added(write: Callable[[Array, Array], Array], out: Seen, seen: Seen) -> Seen:
    """The output of a chunk, with that of more rounds; `write` puts their rows in their place."""
    paid, kept = jax.tree.map(write, (out.paid, out.kept), (seen.paid, seen.kept))
    return Seen(paid, kept, jax.tree.map(jnp.logical_or, out.alarm, seen.alarm))


FIRST = jax.ShapeDtypeStruct((), jnp.int32)  # the number of a round


def at(tree: PyTree, i: Int[Array, ""]) -> PyTree:
    """Entry `i` of every leaf; `i` is not negative, which saves a comparison."""
    take = functools.partial(
        lax.dynamic_index_in_dim, index=i, keepdims=False, allow_negative_indices=False
    )
    return jax.tree.map(take, tree)


def put(rows: Array, row: Array, i: Int[Array, ""]) -> Array:
    """The array with another entry `i`, which is not negative."""
    return lax.dynamic_update_index_in_dim(rows, row, i, 0, allow_negative_indices=False)


def alone(function: Callable, *_: Any) -> Callable:
    """Used in place of `jax.vmap` for a single configuration, which has no axis."""
    return function
