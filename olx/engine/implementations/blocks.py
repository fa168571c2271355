r"""Sweeps played in blocks of rounds: matrix products in place of inner products.

If an update adds a multiple $a_t$ of the row $x_t$ to the weights and the score is their inner
product, the scores of a block of rounds depend on the weights at the start of the block only:

$$s_t = \langle w_1, x_t\rangle + \sum_{j < t} a_j \langle x_j, x_t\rangle, \qquad
  w_{B+1} = w_1 + \sum_{t \le B} a_t x_t.$$

Over $N$ configurations the first term and the last sum are matrix products, and all configurations
share the Gram matrix of the block. The result is exact up to the order of sums.
"""

# Strict, but for what a tree holds: `PyTree` is of no known type.
# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PyTree

from olx._cache import cached
from olx.core import Learner, Loss, Rounds
from olx.engine import tuning
from olx.engine.compile import FIRST, Program, added, as_kernel, at, nothing, put
from olx.engine.finite import visible_leaves
from olx.engine.game import Game
from olx.engine.implementations.base import Implementation
from olx.engine.implementations.dense import spread
from olx.engine.round import Output, Recorder, feedback_of
from olx.engine.view import View, arrays_map
from olx.facts import AddsContext
from olx.record import actions


def _cannot(game: Game) -> str:
    if not isinstance(game.numbers.learner.facts.adds, AddsContext):
        return "the learner does not state that an update adds a multiple of the row"
    if game.recorder.record not in (None, actions):
        return "`record` may see the state after each round"
    if not isinstance(game.rounds, Rounds):
        return "the rounds come in pieces"
    x = game.rounds.context
    shapes = [leaf.shape[1:] for leaf in jax.tree.leaves(game.state)]
    if not hasattr(x, "shape") or len(x.shape) != 2 or shapes != [x.shape[1:]]:
        return "the state is not one vector as long as a row"
    return (
        ""
        if x.shape[0] >= tuning.BLOCK_ROUNDS
        else f"there are fewer than {tuning.BLOCK_ROUNDS} rounds"
    )


def _slower(game: Game) -> str:
    least = tuning.BLOCK_CONFIGURATIONS
    return "" if (game.configurations or 1) >= least else f"fewer than {least} configurations"


@cached
def block_program(recorder: Recorder, layout: None, batched: bool, devices: int) -> Program:
    """Play a batch of learners on the same chunk, a block of rounds at a time."""
    one = functools.partial(_one, recorder)
    each = jax.vmap(one, in_axes=(0, None, 0, None))
    fast = functools.partial(_triangle, each, _added_in_turn)
    slow = functools.partial(_triangle, each, _added_at_once)
    kernels = functools.partial(_play_kernels, fast)
    return Program(functools.partial(_play, slow), kernels, spread(devices))


def _play_kernels(triangle: Callable[..., PyTree], *given: Any) -> tuple[PyTree, Output]:
    """`_play` with one kernel per block, which is forgotten with the program that it is in."""
    kernel = as_kernel(triangle)
    return _play(lambda *block: kernel(*block)[0], *given)


def _one(
    recorder: Recorder, learner: Learner, loss: Loss, product: Array, here: Rounds
) -> tuple[Array, Output]:
    """The coefficient of the row, and the output of the round."""
    weight = 1.0 if here.weight is None else here.weight
    adds = learner.facts.adds
    assert isinstance(adds, AddsContext)  # else `_cannot` says so
    score = adds.score(learner.hparams, product)
    feedback = feedback_of(loss, here.context, score, here.outcome, weight)
    a = adds.coefficient_fn(learner.hparams, feedback)
    a = jnp.where(jnp.asarray(weight) == 0, jnp.zeros_like(score), a)
    return a, recorder.output(None, feedback)


def _added_in_turn(line: Array, coefficients: Array, score: Array, i: Int[Array, ""]) -> Array:
    """The score of round `i` with the terms of the rounds before it; for one kernel.

    Some terms at a time: a pass over the scores reads and writes all of them.
    """
    before = jnp.where(jnp.arange(line.size, dtype=i.dtype) < i, line, 0.0)

    def some(k: Int[Array, ""], score: Array) -> Array:
        for j in range(tuning.BLOCK_TERMS):
            place = k * tuning.BLOCK_TERMS + j
            score = score + at(before, place) * at(coefficients, place)
        return score

    return lax.fori_loop(0, (i + tuning.BLOCK_TERMS - 1) // tuning.BLOCK_TERMS, some, score)


def _added_at_once(line: Array, coefficients: Array, score: Array, i: Int[Array, ""]) -> Array:
    """The same by a product, for devices that launch every step of a loop."""
    before = jnp.arange(line.size, dtype=i.dtype) < i
    return score + product(jnp.where(before, line, 0.0), coefficients)


def _triangle(
    one: Callable[..., PyTree],
    add: Callable[..., Array],
    learner: Learner,
    loss: Loss,
    gram: Float[Array, "B B"],
    scores: Float[Array, "B N"],
    rounds: Rounds,
    span: tuple[Any, Any],
) -> tuple[Float[Array, "B N"], Output]:
    """Play the rounds of a block one by one: their coefficients and their outputs.

    The coefficients of rows outside `span` are 0.
    """

    def play(i: Int[Array, ""], score: Float[Array, " N"]) -> tuple[Array, Output]:
        return one(learner, loss, score, at(rounds, i))

    def step(i: Int[Array, ""], carry: tuple[Array, Output]) -> tuple[Array, Output]:
        coefficients, out = carry
        a, seen = play(i, add(at(gram, i), coefficients, at(scores, i), i))
        return put(coefficients, a, i), added(lambda rows, row: put(rows, row, i), out, seen)

    empty = nothing(jax.eval_shape(play, FIRST, scores[0])[1], len(gram))
    return lax.fori_loop(*span, step, (jnp.zeros_like(scores), empty))


def _play(
    triangle: Callable[..., PyTree],
    state: PyTree,
    learner: Learner,
    loss: Loss,
    rounds: Rounds,
    span: Int[Array, "2"] | None,
) -> tuple[PyTree, Output]:
    (start,), structure = jax.tree.flatten(state)
    size = min(tuning.BLOCK_ROUNDS, rounds.context.shape[0])
    if span is not None:
        rounds = arrays_map(lambda leaf: _filled(leaf, -leaf.shape[0] % size), rounds)
    capacity = rounds.context.shape[0]

    def solve(k: Any, here: Rounds, w: Float[Array, "d N"]) -> tuple[Array, Output]:
        x = here.context
        own = (0, len(x)) if span is None else tuple(jnp.clip(span - k * size, 0, size))
        a, seen = triangle(learner, loss, product(x, x.T), product(x, w), here, own)
        return w + product(x.T, a), seen

    def rows(k: Int[Array, ""], leaf: Array | View) -> Array:
        if isinstance(leaf, View):
            return leaf.block(k * size, size, capacity if span is None else span[1])
        return lax.dynamic_slice_in_dim(leaf, k * size, size)

    def block(k: Int[Array, ""]) -> Rounds:
        return arrays_map(functools.partial(rows, k), rounds)

    def step(
        k: Any, carry: tuple[Array, Output], here: Rounds | None = None
    ) -> tuple[Array, Output]:
        w, out = carry
        w, seen = solve(k, block(k) if here is None else here, w)
        write = lambda rows, part: lax.dynamic_update_slice_in_dim(rows, part, k * size, 0)
        return w, added(write, out, seen)

    shapes = jax.eval_shape(lambda k, w: solve(k, block(k), w)[1], FIRST, start.T)
    low, high = 0, capacity // size
    if span is not None:
        low, high = span[0] // size, (span[1] + size - 1) // size
    carry = lax.fori_loop(low, high, step, (start.T, nothing(shapes, capacity, size)))
    if capacity % size:  # the last block is shorter
        carry = step(high, carry, jax.tree.map(lambda leaf: leaf[-(capacity % size) :], rounds))
    return jax.tree.unflatten(structure, [carry[0].T]), carry[1]


def _filled(leaf: Any, short: int) -> Any:
    return jnp.pad(leaf, [(0, short), *[(0, 0)] * (leaf.ndim - 1)]) if short else leaf


product = functools.partial(jnp.matmul, precision=lax.Precision.HIGHEST)

BLOCKS = Implementation(
    "blocks",
    block_program,
    visible_leaves,
    sweeps=True,
    cannot=_cannot,
    slower=_slower,
    least=lambda: tuning.SHARE_BLOCKS,
)
