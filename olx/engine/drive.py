"""The loop around a program: feed chunks, collect outputs, show progress, save."""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import PyTree

from olx._not_kept import NOT_KEPT
from olx._pytree import as_tree
from olx.core import Learner, Loss, Rounds, Run
from olx.engine import feed, signals
from olx.engine.checkpoint import Checkpoint, check_checkpoint
from olx.engine.checks import Checks
from olx.engine.collect import Collector
from olx.engine.describe import describe
from olx.engine.desk import Desk
from olx.engine.history import History
from olx.engine.kernel import Program
from olx.engine.progress import Progress
from olx.engine.shows import Shows, candidates
from olx.keep import Keep
from olx.streams.judge import needs_of


def drive(
    owner: str,
    program_of: Callable[[tuple[str, ...]], Program],
    learner: Learner,
    loss: Loss,
    stream: Rounds | Iterable[Rounds],
    params: PyTree,
    state: PyTree,
    *,
    shows: Callable[..., Shows],
    configurations: int = 1,
    keep: Keep | None,
    progress: bool | None,
    checkpoint: Checkpoint | None,
    explain: bool,
) -> Run:
    """Play a stream through a program.

    program_of: the program that watches the given fields of the feedback.
    shows: (learner, loss, state, plan, leaves) -> which leaves of the rounds need not be checked
        before they are played.
    """
    _refuse_tracers(owner, (learner, state, stream if isinstance(stream, Rounds) else None))
    check_checkpoint(owner, checkpoint)
    needs = needs_of(learner, loss)
    pieces = feed.pieces(owner, stream)
    first = next(pieces)
    plan = feed.plan(first, params, configurations, isinstance(stream, Rounds))
    learner, loss = jax.tree.map(_argument, (learner, as_tree(loss)))
    leaves = candidates(plan, {need.where for need, _ in needs})
    shown = shows(learner, loss, state, plan, leaves)
    program = program_of(shown.fields)
    checks = Checks(owner, needs, params, shown.leaves)
    collector = Collector(keep)
    with contextlib.ExitStack() as stack:
        asked = stack.enter_context(signals.deferred(checkpoint is not None))
        history = None
        if checkpoint is not None:
            stack.enter_context(checkpoint.held(owner))
            row = iter([feed.take(first, 0, 1)])
            one = next(feed.chunks(owner, row, plan._replace(capacity=1), checks))
            traced = jax.jit(program.function).trace(state, learner, loss, *one[:2])
            collector.structure = traced.out_info[1][:2]
            numbers = [jax.tree.map(jnp.asarray, tree) for tree in (learner, loss)]
            described = describe(numbers[0], numbers[1], state, first, keep, traced)
            state, known = checkpoint.restore(owner, described, state, collector)
            history = History(known, functools.partial(checkpoint.changed, owner))
        length = feed.len_of(stream) if isinstance(stream, Rounds) else None
        bar = stack.enter_context(contextlib.closing(Progress(progress, length, collector.played)))
        desk = stack.enter_context(Desk(owner, collector, bar, checkpoint))
        chunks = feed.chunks(owner, itertools.chain([first], pieces), plan, checks, history)
        call = None
        while (chunk := desk.wait_for(chunks, asked, state)) is not None:
            arguments = (state, learner, loss, chunk.rounds, np.int32(chunk.count))
            if call is None:
                call, path = program.choose(_width(state), *arguments)
                if explain:
                    print(f"{owner}: {path}; chunks of {plan.capacity} rounds on {_device()}.")
            state, out = call(*arguments)
            desk.put(chunk, out)
            if asked.by is not None:
                desk.stop(state)
                raise asked.error()
            if checkpoint is not None and checkpoint.due():
                desk.save(state)
        desk.save(state)
        if asked.by is not None:
            raise asked.error()
    losses, trace, curve = collector.result()
    return Run(state, losses if curve is None else NOT_KEPT, trace, curve=curve)


def _argument(leaf: Any) -> Any:
    """An array, or a Python number as it is: a compiled call converts numbers faster."""
    return leaf if isinstance(leaf, int | float | jax.Array) else jnp.asarray(leaf)


def _refuse_tracers(owner: str, given: PyTree) -> None:
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(given)):
        raise TypeError(
            f"{owner}: compiles for itself, so it cannot be called inside jit, vmap or grad; "
            "`olx.rollout` can."
        )


def _width(state: PyTree) -> int:
    return max((np.shape(leaf)[-1] for leaf in jax.tree.leaves(state) if np.ndim(leaf)), default=1)


def _device() -> str:
    return jax.devices()[0].device_kind
