"""The loop around the program: feed chunks, gather what comes out, show progress, save."""

import contextlib
import functools
import itertools
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import PyTree

from olx._pytree import as_tree
from olx.core import Learner, Loss, Rounds, Run
from olx.engine import feed
from olx.engine.boundary import judge
from olx.engine.checkpoint import Checkpoint, describe
from olx.engine.collect import Collector
from olx.engine.keep import Keep
from olx.engine.kernel import Program
from olx.engine.progress import Progress


def drive(
    owner: str,
    program: Program,
    learner: Learner,
    loss: Loss,
    stream: Rounds | Iterable[Rounds],
    params: PyTree,
    state: PyTree,
    *,
    configurations: int = 1,
    keep: Keep | None,
    progress: bool | None,
    checkpoint: Checkpoint | None,
    explain: bool,
) -> Run:
    """Play a stream through a program."""
    _refuse_tracers(owner, (learner, state, stream if isinstance(stream, Rounds) else None))
    check = functools.partial(judge, owner, learner, loss, params)
    pieces = feed.pieces(owner, stream)
    first = next(pieces)
    plan = feed.plan(first, params, configurations, isinstance(stream, Rounds))
    learner, loss = jax.tree.map(jnp.asarray, (learner, as_tree(loss)))
    state = jax.tree.map(jnp.array, state)  # a copy: the program consumes it
    collector = Collector(keep)
    if checkpoint is not None:
        one = next(
            feed.chunks(owner, iter([feed.take(first, 0, 1)]), plan._replace(capacity=1), 0, check)
        )
        traced = jax.jit(program.function).trace(state, learner, loss, *one[:2])
        collector.structure = traced.out_info[1]
        sample = feed.take(first, 0, plan.capacity)
        described = describe(learner, loss, state, sample, keep, traced)
        state = checkpoint.restore(owner, described, state, collector)
    length = feed.len_of(stream) if isinstance(stream, Rounds) else None
    bar = Progress(progress, length, collector.played)
    call, pending = None, None
    with contextlib.closing(bar):
        everything = itertools.chain([first], pieces)
        for chunk in feed.chunks(owner, everything, plan, collector.played, check):
            arguments = (state, learner, loss, chunk.rounds, np.int32(chunk.count))
            if call is None:
                call, path = program.choose(_width(state), *arguments)
                if explain:
                    print(f"{owner}: {path}; chunks of {plan.capacity} rounds on {_device()}.")
            state, out = call(*arguments)
            if pending is not None:  # the device works on this chunk while the last is put away,
                # and no longer reads where the next is to be written
                _put_away(collector, bar, *pending)
            pending = chunk, out
            if checkpoint is not None and checkpoint.due():
                _put_away(collector, bar, *pending)
                pending = None
                checkpoint.save(state, collector)
        if pending is not None:
            _put_away(collector, bar, *pending)
        if checkpoint is not None:
            checkpoint.save(state, collector)
    losses, trace, curve = collector.result()
    return Run(state, losses, trace, curve=curve, axes=learner.axes)


def _refuse_tracers(owner: str, given: PyTree) -> None:
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(given)):
        raise TypeError(
            f"{owner}: compiles for itself, so it cannot be called inside jit, vmap or grad; "
            "`olx.rollout` can."
        )


def _put_away(collector: Collector, bar: Progress, chunk: feed.Chunk, out: Any) -> None:
    collector.add(chunk, out)
    bar.advance(chunk.count, float(np.fmin.reduce(collector.total[0], None)) / collector.played)


def _width(state: PyTree) -> int:
    return max((np.shape(leaf)[-1] for leaf in jax.tree.leaves(state) if np.ndim(leaf)), default=1)


def _device() -> str:
    return jax.devices()[0].device_kind
