"""Round after round on dense rows: one learner, a sweep, or the learners of a sweep in turn.

A learner such as the p-norm Perceptron or Winnow changes its state in few rounds, but maps it to a
decision by powers or exponentials. If it states its `Decision`, the decision is kept between the
rounds, and computed again only if a bit of the state has changed: inside one kernel a condition is
a branch. `jax.vmap` would compute both branches, so a batch computes its decisions in every round.
"""

# Strict, but for what a tree holds: `PyTree` is of no known type.
# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, PartitionSpec
from jaxtyping import Array, Bool, Int, PyTree

from olx._cache import cached
from olx.core import Learner, Loss, Rounds, without_refresh
from olx.engine import tuning
from olx.engine.compile import Program, alone, at, over_rounds, unavailable
from olx.engine.finite import visible_leaves
from olx.engine.game import Game
from olx.engine.implementations.base import Implementation
from olx.engine.round import Output, Recorder, feedback_of, finish_round, refresh
from olx.engine.view import capacity_of


@cached
def dense_program(
    recorder: Recorder, layout: None = None, batched: bool = False, devices: int = 1
) -> Program:
    """Play one learner, or a batch of learners side by side, on a chunk."""
    over = jax.vmap if batched else alone
    return Program(functools.partial(_play, over, recorder), share=spread(devices))


@cached
def in_turn_program(recorder: Recorder, layout: None, batched: bool, devices: int) -> Program:
    """Play a batch of learners on the same chunk, one learner after the other."""
    return Program(functools.partial(_in_turn, recorder), share=spread(devices))


def _side_by_side(game: Game) -> str:
    """Why learners are not slower side by side than one after the other.

    On the CPU they are slower if each keeps a matrix: the matrix of one learner stays in the cache
    for a chunk, and its rows fill the SIMD lanes. The matrices of all learners would not fit.
    """
    shapes = [leaf.shape[1:] for leaf in jax.tree.leaves(game.state)]
    least = tuning.MATRIX_ENTRIES
    if not any(len(shape) > 1 and math.prod(shape) >= least for shape in shapes):
        return f"no learner keeps a matrix of {least:,} numbers"
    return unavailable()


_NAME = "configurations"


@functools.cache
def spread(devices: int, axes: PyTree = 0) -> Callable[..., PyTree] | None:
    """Give each device an equal part of the configurations; None for one device.

    axes: where the axis of configurations is in the state, as for `jax.vmap`.
    """
    if devices == 1:
        return None
    mesh = jax.make_mesh(
        (devices,), (_NAME,), (AxisType.Auto,), devices=jax.local_devices()[:devices]
    )
    at = lambda axis: PartitionSpec(*[None] * axis, _NAME)
    state, alike = jax.tree.map(at, axes), PartitionSpec()
    out: Any = Output(at(1), at(1), at(0))  # pyright: ignore[reportArgumentType]
    return functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(state, at(0), alike, alike, alike),
        out_specs=((state, out), alike),
        check_vma=False,
    )


def play_round(
    over: Callable[..., PyTree],
    recorder: Recorder,
    learner: Learner,
    state: PyTree,
    loss: Loss,
    here: Rounds,
) -> tuple[PyTree, Output]:
    """Play one round.

    over: `jax.vmap` for a batch of learners, `alone` for one.
    """
    one = over(functools.partial(_round, recorder), (0, 0, None, None))
    new, due, seen = one(learner, state, loss, here)
    return refresh(over, learner, new, due), seen


def _round(
    recorder: Recorder, learner: Learner, state: PyTree, loss: Loss, here: Rounds
) -> tuple[PyTree, Array | None, Output]:
    """The new state before its refresh, whether the refresh is due, and the output."""
    return _learn(recorder, learner, state, loss, here, learner.predict(state, here.context))


def _learn(
    recorder: Recorder, learner: Learner, state: PyTree, loss: Loss, here: Rounds, action: PyTree
) -> tuple[PyTree, Array | None, Output]:
    """The same, after the action."""
    weight = 1.0 if here.weight is None else here.weight
    feedback = feedback_of(loss, here.context, action, here.outcome, weight)
    if sum(jnp.size(leaf) for leaf in jax.tree.leaves(action)) >= tuning.ACTION_NUMBERS:
        feedback = feedback._replace(grad=_after(feedback.value, feedback.grad))
    new, seen = finish_round(without_refresh(learner), recorder, state, feedback)
    own = learner.facts.refresh
    return new, None if own is None else own.due(learner.hparams, new, weight), seen


def _after(value: Array, grad: PyTree) -> PyTree:
    """The same gradient, known only after the loss.

    The gradient of a linear loss needs no action. An update could then come before the decision is
    used, so XLA would copy the state in every round. It does not know that nothing is above
    infinity.
    """
    one = jnp.where(value > jnp.inf, 2, 1)
    return jax.tree.map(lambda leaf: leaf * one.astype(leaf.dtype), grad)


def _play(
    over: Callable[..., PyTree],
    recorder: Recorder,
    state: PyTree,
    learner: Learner,
    loss: Loss,
    rounds: Rounds,
    span: Int[Array, "2"] | None,
) -> tuple[PyTree, Output]:
    """The state after the rounds of `span`, and the output of each round."""
    capacity = capacity_of(rounds)

    def play(state: PyTree, i: Int[Array, ""]) -> tuple[PyTree, Output]:
        return play_round(over, recorder, learner, state, loss, at(rounds, i))

    decision = learner.facts.decision
    if over is not alone or decision is None or unavailable():
        return over_rounds(play, state, span, capacity)

    def keep(
        carry: tuple[PyTree, PyTree], i: Int[Array, ""]
    ) -> tuple[tuple[PyTree, PyTree], Output]:
        (state, w), here = carry, at(rounds, i)
        action = decision.action_fn(learner.hparams, w, here.context)
        new, due, seen = _learn(recorder, learner, state, loss, here, action)
        new = refresh(over, learner, new, due)
        changed = _differ(decision.part_fn(state), decision.part_fn(new))
        return (new, lax.cond(changed, decide, lambda _: w, new)), seen

    decide = functools.partial(decision.decision_fn, learner.hparams)
    (state, _), out = over_rounds(keep, (state, decide(state)), span, capacity)
    return state, out


def _differ(old: PyTree, new: PyTree) -> Bool[Array, ""]:
    """Whether any bit of two states differs."""
    return jnp.any(jnp.array(jax.tree.leaves(jax.tree.map(_differs, old, new)), bool))


def _differs(old: Array, new: Array) -> Bool[Array, ""]:
    if jnp.issubdtype(old.dtype, jnp.floating):
        kind = np.dtype(f"i{old.dtype.itemsize}")
        old, new = (lax.bitcast_convert_type(leaf, kind) for leaf in (old, new))
    return jnp.any(old != new)


def _in_turn(
    recorder: Recorder,
    state: PyTree,
    learner: Learner,
    loss: Loss,
    rounds: Rounds,
    span: Int[Array, "2"] | None,
) -> tuple[PyTree, Output]:
    play = lambda own: _play(alone, recorder, own[0], own[1], loss, rounds, span)
    state, out = lax.map(play, (state, learner))
    paid, kept = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), (out.sums, out.records))
    return state, Output(paid, kept, out.nonfinite)


DENSE = Implementation("dense", dense_program, visible_leaves, least=lambda: tuning.SHARE_DENSE)
IN_TURN = Implementation(
    "in_turn",
    in_turn_program,
    visible_leaves,
    sweeps=True,
    slower=_side_by_side,
    least=lambda: tuning.SHARE_IN_TURN,
)
