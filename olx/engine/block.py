r"""Sweeps played in blocks of rounds: matrix products in place of inner products.

If an update adds a multiple $a_t$ of the row $x_t$ to the weights and the score is their inner
product, the scores of a block of rounds depend on the weights at the start of the block only:

$$s_t = \langle w_1, x_t\rangle + \sum_{j < t} a_j \langle x_j, x_t\rangle, \qquad
  w_{B+1} = w_1 + \sum_{t \le B} a_t x_t.$$

Over $N$ configurations the first term and the last sum are matrix products, and all configurations
share the Gram matrix of the block. The result is exact up to the order of sums.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PyTree

from olx.core import Learner, Loss, Rounds
from olx.engine.kernel import Program, as_kernel
from olx.engine.loop import added, nothing
from olx.engine.protocol import Seen, Watch, feedback_of
from olx.facts import AddsContext
from olx.record import actions

ROWS = 32  # the largest number of rounds per block; a chunk of very wide rows has fewer
LEAST = 65  # configurations; for fewer of them the loop over rounds is faster


def fits(learners: Learner, watch: Watch, rounds: Any, state: PyTree, configurations: int) -> bool:
    """Whether a sweep can be played in blocks, and is faster so."""
    shapes = [leaf.shape[1:] for leaf in jax.tree.leaves(state)]
    return (
        configurations >= LEAST
        and isinstance(learners.facts.adds, AddsContext)
        and watch.record in (None, actions)
        and isinstance(rounds, Rounds)
        and hasattr(rounds.context, "shape")
        and len(rounds.context.shape) == 2
        and shapes == [rounds.context.shape[1:]]
        and rounds.context.shape[0] >= ROWS
    )


@functools.lru_cache(maxsize=256)
def block_program(watch: Watch, share) -> Program:
    """Play a batch of learners on the same chunk, a block of rounds at a time."""
    one = functools.partial(_one, watch)
    triangle = functools.partial(_triangle, jax.vmap(one, in_axes=(0, None, 0, None)))
    fast = as_kernel(triangle)
    slow = functools.partial(_play, triangle)
    return Program(slow, functools.partial(_play, lambda *a: fast(*a)[0]), share)


def _one(
    watch: Watch, learner: Learner, loss: Loss, score: Array, here: Rounds
) -> tuple[Array, Seen]:
    """The coefficient of the row, and the output of the round."""
    weight = 1.0 if here.weight is None else here.weight
    feedback = feedback_of(loss, here.context, score, here.outcome, weight)
    assert isinstance(learner.facts.adds, AddsContext)  # checked by `fits`
    a = learner.facts.adds.coefficient_fn(learner.hparams, feedback)
    a = jnp.where(jnp.asarray(weight) == 0, jnp.zeros_like(score), a)
    return a, watch.see(None, feedback)


def _triangle(
    one,
    learner: Learner,
    loss: Loss,
    gram: Float[Array, "B B"],
    scores: Float[Array, "B N"],
    rounds: Rounds,
    count: Int[Array, ""],
) -> tuple[Float[Array, "B N"], Seen]:
    """Play the rounds of a block one by one: their coefficients and their outputs."""
    at = lambda leaf, i: lax.dynamic_index_in_dim(leaf, i, keepdims=False)
    put = lambda rows, row, i: lax.dynamic_update_index_in_dim(rows, row, i, 0)

    def play(i: Int[Array, ""], score: Float[Array, " N"]) -> tuple[Array, Seen]:
        return one(learner, loss, score, jax.tree.map(lambda leaf: at(leaf, i), rounds))

    def step(i: Int[Array, ""], carry: tuple[Array, Seen]) -> tuple[Array, Seen]:
        coefficients, out = carry
        line = at(gram, i)
        earlier = lambda j, score: score + at(line, j) * at(coefficients, j)
        a, seen = play(i, lax.fori_loop(0, i, earlier, at(scores, i)))
        return put(coefficients, a, i), added(lambda rows, row: put(rows, row, i), out, seen)

    empty = nothing(jax.eval_shape(play, count, scores[0])[1], len(gram))
    return lax.fori_loop(0, count, step, (jnp.zeros_like(scores), empty))


def _play(
    triangle, state: PyTree, learner: Learner, loss: Loss, rounds: Rounds, count: Int[Array, ""]
) -> tuple[PyTree, Seen]:
    (start,), structure = jax.tree.flatten(state)
    product = functools.partial(jnp.matmul, precision=lax.Precision.HIGHEST)
    capacity = rounds.context.shape[0]
    size = min(ROWS, capacity)

    def block(k: Int[Array, ""]) -> Rounds:
        return jax.tree.map(lambda leaf: lax.dynamic_slice_in_dim(leaf, k * size, size), rounds)

    def solve(k: Int[Array, ""], w: Float[Array, "d N"]) -> tuple[Array, Array, Seen]:
        here = block(k)
        x = here.context
        left = jnp.minimum(count - k * size, size)
        a, seen = triangle(learner, loss, product(x, x.T), product(x, w), here, left)
        return x, a, seen

    def step(k: Int[Array, ""], carry: tuple[Array, Seen]) -> tuple[Array, Seen]:
        w, out = carry
        x, a, seen = solve(k, w)
        put = lambda rows, part: lax.dynamic_update_slice_in_dim(rows, part, k * size, 0)
        return w + product(x.T, a), added(put, out, seen)

    empty = nothing(jax.eval_shape(solve, count, start.T)[2], capacity, size)
    w, out = lax.fori_loop(0, (count + size - 1) // size, step, (start.T, empty))
    return jax.tree.unflatten(structure, [w.T]), out
