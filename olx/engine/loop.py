"""The loop over the rounds of a chunk, shared by the programs of the engine."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int, PyTree


def over_rounds(
    one: Callable[[PyTree, Array], tuple[PyTree, PyTree]],
    state: PyTree,
    count: Int[Array, ""],
    capacity: int,
) -> tuple[PyTree, PyTree]:
    """The state after the first `count` rounds, and the outputs of these rounds.

    one: (state, number of the round) -> (next state, output of the round).

    `count` is traced, so streams of any length use one program. Rows after `count` are neither read
    nor written. The first axis of the outputs is time.
    """

    def step(i: Int[Array, ""], carry: tuple[PyTree, PyTree]) -> tuple[PyTree, PyTree]:
        state, out = carry
        state, kept = one(state, i)
        write = lambda rows, row: lax.dynamic_update_index_in_dim(rows, row, i, 0)
        return state, jax.tree.map(write, out, kept)

    shapes = jax.eval_shape(one, state, count)[1]
    empty = jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype), shapes)
    return lax.fori_loop(0, count, step, (state, empty))


def at(tree: PyTree, i: Int[Array, ""]) -> PyTree:
    """Entry `i` of every leaf."""
    return jax.tree.map(lambda leaf: lax.dynamic_index_in_dim(leaf, i, keepdims=False), tree)


def alone(function: Callable, *_: Any) -> Callable:
    """Used in place of `jax.vmap` for a single configuration, which has no axis."""
    return function
