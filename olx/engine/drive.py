"""The loop around a program: feed chunks, collect outputs, show progress, save."""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx._not_kept import NOT_KEPT
from olx.core import Rounds, Run
from olx.engine import feed, launches, place, signals, team
from olx.engine.checkpoint import Checkpoint, check_checkpoint
from olx.engine.checks import Checks
from olx.engine.collect import Collector
from olx.engine.cut import ALONE, Cut
from olx.engine.describe import describe
from olx.engine.desk import Desk
from olx.engine.game import Known, refuse_tracers
from olx.engine.history import History
from olx.engine.kernel import Program
from olx.engine.many import Crew
from olx.engine.progress import Progress
from olx.engine.shows import Shows, candidates
from olx.keep import Keep


def drive(
    owner: str,
    known: Known,
    program_of: Callable[[tuple[str, ...]], Program],
    shows: Callable[..., Shows],
    stream: Rounds | Iterable[Rounds],
    params: PyTree,
    state: PyTree,
    *,
    cut: Cut = ALONE,
    threads: int = 1,
    crew: Crew | None = None,
    light: bool = False,
    keep: Keep | None,
    progress: bool | None,
    checkpoint: Checkpoint | None,
    explain: bool,
) -> Run:
    """Play a stream through a program.

    program_of: the program that watches the given fields of the feedback.
    shows: (game, state, plan, leaves) -> which leaves of the rounds need not be checked before they
        are played.
    cut: how the configurations are cut into shares, which `threads` play.
    crew: the processes that play the configurations; the run is then the part of this one.
    light: whether at most one number is recorded per round and configuration.
    """
    whole = isinstance(stream, Rounds)
    given = jax.tree.leaves(stream) if whole else []
    refuse_tracers(owner, [*jax.tree.leaves(state), *given])
    check_checkpoint(owner, checkpoint)
    game, pieces = place.there(known.game), feed.pieces(owner, stream)
    first = next(pieces)
    ready = whole and all(isinstance(leaf, jax.Array) for leaf in given)
    plan = feed.plan(first, params, cut.configurations, whole, ready, light)
    shown = shows(game, state, plan, candidates(plan, known.parts))
    program = program_of(shown.fields)
    checks = Checks(owner, known.needs, params, shown.leaves)
    collector = Collector(keep)
    width = _width(state)
    if crew is not None or checkpoint is not None:
        row = iter([feed.take(first, 0, 1)])
        one = next(feed.chunks(owner, row, plan._replace(capacity=1), checks))[:2]
    if crew is not None:
        state, game, cut = crew.deal(program, width, cut, state, game, *one)
        progress = progress if jax.process_index() == 0 else False
    with contextlib.ExitStack() as stack:
        asked = stack.enter_context(signals.deferred(checkpoint is not None))
        told = crew is not None and crew.peers is not None  # they compare what they played
        history, before = History({}, lambda *_: ValueError()) if told else None, {}
        if checkpoint is not None:
            checkpoint = checkpoint.of_process(owner)
            stack.enter_context(checkpoint.held(owner))
            traced = jax.jit(program.function).trace(state, *game.parts(), *one)
            collector.structure = traced.out_info[1][:2]
            learner, loss = jax.tree.map(jnp.asarray, game.parts())
            described = describe(learner, loss, state, first, keep, traced)
            state, before = checkpoint.restore(owner, described, state, collector)
            history = History(before, functools.partial(checkpoint.changed, owner))
        length = feed.len_of(first) if whole else None
        bar = stack.enter_context(contextlib.closing(Progress(progress, length, collector.played)))
        desk = stack.enter_context(Desk(owner, collector, bar, checkpoint))
        desk.digest = before.get(collector.played, b"")
        chunks = feed.chunks(owner, itertools.chain([first], pieces), plan, checks, history)
        call, numbers = None, game.numbers
        while (chunk := desk.wait_for(chunks, asked, state)) is not None:
            rest = place.placed(chunk.rounds, chunk.span, plan.capacity)
            if call is None:
                form = program, cut, threads, width
                state, call, path = team.chosen(*form, state, game, *rest)
                stack.callback(team.close, state)
                if explain:
                    path += "" if crew is None else crew.words
                    print(f"{owner}: {path}; chunks of {plan.capacity} rounds on {_device()}.")
                    launches.explain(owner, call, cut.configurations, state, numbers, rest[0])
            (state, out), _ = call(state, numbers, *rest)
            desk.put(chunk, out)
            if asked.by is not None:
                desk.stop(state)
                raise asked.error()
            if crew is not None and crew.lost():
                desk.stop(state)
                crew.refuse_lost()
            if checkpoint is not None and checkpoint.due():
                desk.save(state)
        desk.save(state)
        if asked.by is not None:
            raise asked.error()
        if crew is not None:
            crew.tell(collector.played, desk.digest)
    losses, trace, curve = collector.result()
    return Run(team.whole(state), losses if curve is None else NOT_KEPT, trace, curve=curve)


def _width(state: PyTree) -> int:
    return max((np.shape(leaf)[-1] for leaf in jax.tree.leaves(state) if np.ndim(leaf)), default=1)


def _device() -> str:
    return jax.devices()[0].device_kind
