"""The programs of the engine for dense rows: play a chunk of up to `capacity` rounds."""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, PartitionSpec
from jaxtyping import Array, Int, PyTree

from olx._cache import cached
from olx.core import Learner, Loss, Rounds
from olx.engine.held import parted, renewed
from olx.engine.kernel import Program, unavailable
from olx.engine.loop import alone, at, over_rounds
from olx.engine.protocol import Seen, Watch, feedback_of, settle
from olx.engine.refresh import refreshed


@cached
def single_program(watch: Watch) -> Program:
    """Play one learner on a chunk."""
    return Program(functools.partial(_play, alone, watch))


@cached
def sweep_program(watch: Watch, share: Callable | None = None) -> Program:
    """Play a batch of learners on the same chunk."""
    return Program(functools.partial(_play, jax.vmap, watch), share=share)


@cached
def turns_program(watch: Watch, share: Callable | None = None) -> Program:
    """Play a batch of learners on the same chunk, one learner after the other."""
    return Program(functools.partial(_in_turn, watch), share=share)


def takes_turns(state: PyTree) -> bool:
    """Whether learners with these states are faster one after the other than side by side.

    So it is on the CPU if each keeps a matrix: the matrix of one learner stays in the cache for a
    chunk, and its rows fill the SIMD lanes. The matrices of all learners would not fit.
    """
    shapes = [leaf.shape[1:] for leaf in jax.tree.leaves(state)]
    matrices = [shape for shape in shapes if len(shape) > 1 and math.prod(shape) >= _MATRIX]
    return bool(matrices) and not unavailable()


_MATRIX = 1024  # entries
_LONG = 64  # numbers of an action; to copy fewer of them costs less than to wait for the loss
_NAME = "configurations"
mine, later, alike = PartitionSpec(_NAME), PartitionSpec(None, _NAME), PartitionSpec()
last = PartitionSpec(None, None, _NAME)


@functools.cache
def spread(devices: int, state: Any = mine) -> Callable | None:
    """Give each device an equal part of the configurations; None for one device.

    state: where the axis of configurations is in the state; the first axis unless told otherwise.
    """
    if devices == 1:
        return None
    mesh = jax.make_mesh(
        (devices,), (_NAME,), (AxisType.Auto,), devices=jax.local_devices()[:devices]
    )
    out: Any = Seen(later, later, mine)  # pyright: ignore[reportArgumentType]
    return functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(state, mine, alike, alike, alike),
        out_specs=((state, out), alike),
        check_vma=False,
    )


def _round(
    watch: Watch, learner: Learner, state: PyTree, loss: Loss, here: Rounds
) -> tuple[PyTree, Array | None, Seen]:
    """The new state before its refresh, whether the refresh is due, and the output."""
    action = learner.predict(state, here.context)
    weight = 1.0 if here.weight is None else here.weight
    feedback = feedback_of(loss, here.context, action, here.outcome, weight)
    if sum(jnp.size(leaf) for leaf in jax.tree.leaves(action)) >= _LONG:
        feedback = feedback._replace(grad=_after(feedback.value, feedback.grad))
    new, seen = settle(learner, learner.step, watch, state, feedback)
    return new, None if learner.facts.refresh is None else learner.due(new, weight), seen


def _after(value: Array, grad: PyTree) -> PyTree:
    """The same gradient, known only after the loss.

    The gradient of a linear loss needs no action. An update could then come before the decision is
    used, so XLA would copy the state in every round. It does not know that nothing is above
    infinity.
    """
    one = jnp.where(value > jnp.inf, 2, 1)
    return jax.tree.map(lambda leaf: leaf * one.astype(leaf.dtype), grad)


def _play(
    over: Callable,
    watch: Watch,
    state: PyTree,
    learner: Learner,
    loss: Loss,
    rounds: Rounds,
    span: Int[Array, "2"] | None,
) -> tuple[PyTree, Seen]:
    """The state after the rounds of `span`, and the output of each round."""
    one = over(functools.partial(_round, watch), (0, 0, None, None))
    capacity = jax.tree.leaves(rounds)[0].shape[0]

    def play(state: PyTree, i: Int[Array, ""]) -> tuple[PyTree, Seen]:
        new, due, seen = one(learner, state, loss, at(rounds, i))
        return refreshed(over, learner, new, due), seen

    holds = over is alone and learner.facts.conservative and not unavailable()
    row = jax.tree.map(lambda leaf: leaf[0], rounds)  # for its shapes
    parts = parted(one, (learner, state), (loss, row)) if holds else None
    if parts is None:
        return over_rounds(play, state, span, capacity)

    def hold(carry: tuple[PyTree, list], i: Int[Array, ""]) -> tuple[tuple[PyTree, list], Seen]:
        state, held = carry
        new, due, seen = parts.rest(held, (learner, state), (loss, at(rounds, i)))
        new = refreshed(over, learner, new, due)
        return (new, renewed(parts, held, (learner, state), (learner, new))), seen

    start = state, parts.held((learner, state))
    (state, _), out = over_rounds(hold, start, span, capacity)
    return state, out


def _in_turn(
    watch: Watch,
    state: PyTree,
    learner: Learner,
    loss: Loss,
    rounds: Rounds,
    span: Int[Array, "2"] | None,
) -> tuple[PyTree, Seen]:
    play = lambda own: _play(alone, watch, own[0], own[1], loss, rounds, span)
    state, out = lax.map(play, (state, learner))
    paid, kept = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), (out.paid, out.kept))
    return state, Seen(paid, kept, out.alarm)
