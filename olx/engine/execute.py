"""The loop around a program: read chunks, play them, collect outputs, show progress, save.

An exception in the middle of a chunk would free memory that a device still uses, and would lose the
state. So a signal is noted, and raised after the chunk. A second signal is raised at once, and so
is a signal while the run waits for its stream.
"""

import contextlib
import functools
import itertools
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree
from tqdm import tqdm

from olx._pytree import NOT_KEPT
from olx.core import Rounds, Run
from olx.engine import device
from olx.engine.checkpoint import Checkpoint, check_checkpoint, describe
from olx.engine.chunks import Checks, Chunk, History, chunks_of, len_of, pieces_of, plan_of, take
from olx.engine.compile import Program
from olx.engine.compile import explain_launches as explain_launches
from olx.engine.finite import Visible, candidates
from olx.engine.game import Known, refuse_tracers
from olx.engine.outputs import Collector, fetch
from olx.engine.processes import ProcessGroup
from olx.engine.threads import ALONE, Shares, choose_program, close, joined_state, outputs_of
from olx.keep import Keep


def execute(
    owner: str,
    known: Known,
    program_of: Callable[[tuple[str, ...]], Program],
    shows: Callable[..., Visible],
    stream: Rounds | Iterable[Rounds],
    params: PyTree,
    state: PyTree,
    *,
    cut: Shares = ALONE,
    threads: int = 1,
    crew: ProcessGroup | None = None,
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
    game, pieces = device.put_on_device(known.game), pieces_of(owner, stream)
    first = next(pieces)
    ready = whole and all(isinstance(leaf, jax.Array) for leaf in given)
    plan = plan_of(first, params, cut.configurations, whole, ready, light)
    shown = shows(game, state, plan, candidates(plan, known.parts))
    program = program_of(shown.fields)
    checks = Checks(owner, known.needs, params, shown.leaves)
    collector = Collector(keep)
    width = _width(state)
    if crew is not None or checkpoint is not None:
        row = iter([take(first, 0, 1)])
        one = next(chunks_of(owner, row, plan._replace(capacity=1), checks))[:2]
    if crew is not None:
        state, game, cut = crew.deal(program, width, cut, state, game, *one)
        progress = progress if jax.process_index() == 0 else False
    with contextlib.ExitStack() as stack:
        asked = stack.enter_context(defer_signals(checkpoint is not None))
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
        length = len_of(first) if whole else None
        bar = stack.enter_context(contextlib.closing(Progress(progress, length, collector.played)))
        desk = stack.enter_context(PendingChunk(owner, collector, bar, checkpoint))
        desk.digest = before.get(collector.played, b"")
        ahead = chunks_of(owner, itertools.chain([first], pieces), plan, checks, history)
        call, numbers = None, game.numbers
        while (chunk := desk.wait_for(ahead, asked, state)) is not None:
            rest = device.put_rounds(chunk.rounds, chunk.span, plan.capacity)
            if call is None:
                form = program, cut, threads, width
                state, call, path = choose_program(*form, state, game, *rest)
                stack.callback(close, state)
                if explain:
                    path += "" if crew is None else crew.words
                    print(f"{owner}: {path}; chunks of {plan.capacity} rounds on {_device()}.")
                    explain_launches(owner, call, cut.configurations, state, numbers, rest[0])
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
    return Run(joined_state(state), losses if curve is None else NOT_KEPT, trace, curve=curve)


def _width(state: PyTree) -> int:
    return max((np.shape(leaf)[-1] for leaf in jax.tree.leaves(state) if np.ndim(leaf)), default=1)


def _device() -> str:
    return jax.devices()[0].device_kind


class Progress:
    """A progress bar; if `show` is None, it is shown on a terminal only."""

    def __init__(self, show: bool | None, total: int | None, done: int):
        hidden = not sys.stderr.isatty() if show is None else not show
        self._bar: Any = None
        if not hidden:
            self._bar = tqdm(total=total, initial=done, unit=" rounds", smoothing=0.1)

    def advance(self, rounds: int, mean_loss: float) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str(f"loss {mean_loss:.4g}", refresh=False)
            self._bar.update(rounds)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class StopRequest:
    """Whether a signal has asked the run to end."""

    def __init__(self) -> None:
        self.by: signal.Signals | None = None
        self._waiting = False

    def take(self, number: int, frame: Any = None) -> None:
        """The handler of the signal."""
        at_once = self._waiting or self.by is not None
        self.by = signal.Signals(number)
        if at_once:
            raise self.error()

    def error(self) -> BaseException:
        """The exception that the signal usually raises; the process then ends with 130 or 143."""
        if self.by == signal.SIGTERM:
            return SystemExit(128 + signal.SIGTERM)
        return KeyboardInterrupt()

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """While the run waits for its stream, a signal may raise at once."""
        self._waiting = True
        try:
            yield
        finally:
            self._waiting = False


@contextlib.contextmanager
def defer_signals(saves: bool) -> Iterator[StopRequest]:
    """Defer SIGINT, and SIGTERM if the run can be saved, unless the user has set a handler.

    If a caller of this run already defers signals, its `StopRequest` is used.
    """
    present = signal.getsignal(signal.SIGINT)
    around = getattr(present, "__self__", None)
    if saves and isinstance(around, StopRequest):
        yield around
        return
    asked, before = StopRequest(), {}
    usual: dict[signal.Signals, Any] = {signal.SIGINT: signal.default_int_handler}
    if saves:
        usual[signal.SIGTERM] = signal.SIG_DFL
    if threading.current_thread() is threading.main_thread():
        now = lambda number: present if number == signal.SIGINT else signal.getsignal(number)
        before = {number: handler for number, handler in usual.items() if now(number) == handler}
    for number in before:
        signal.signal(number, asked.take)
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class PendingChunk:
    """Holds the output of one chunk, which a device may still be computing.

    Rounds with bad numbers are refused before their output is collected or saved.

    When a run ends, also by an error, it waits for the device, which may still read the arrays.
    """

    def __init__(
        self, owner: str, collector: Collector, bar: Progress, checkpoint: Checkpoint | None
    ):
        self._owner, self._collector = owner, collector
        self._bar, self._checkpoint = bar, checkpoint
        self._pending: tuple[Chunk, Any] | None = None
        self.digest = b""  # of the collected rounds

    def __enter__(self) -> "PendingChunk":
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(Exception):  # the first error is being raised already
            jax.block_until_ready(self._pending and self._pending[1])

    def wait_for(self, chunks: Iterator[Chunk], asked: StopRequest, state: PyTree) -> Chunk | None:
        """The next chunk; None at the end. An interruption while it waits saves the run first."""
        try:
            with asked.waiting():
                return next(chunks, None)
        except (KeyboardInterrupt, SystemExit):
            self.stop(state)
            raise
        except Exception:
            self._clear()  # a bad number of the chunk before is named first
            raise

    def put(self, chunk: Chunk, out: Any) -> None:
        """Collect the chunk before, while the device computes this one. The device has then
        finished with the memory that the next chunk is written to."""
        self._clear()
        self._pending = chunk, out

    def save(self, state: PyTree) -> None:
        """Collect the last output, and save if there is a checkpoint."""
        self._clear()
        if self._checkpoint is not None:
            self._checkpoint.save(joined_state(state), self._collector, self.digest)

    def stop(self, state: PyTree) -> None:
        """Save, and print the directory."""
        self.save(state)
        if self._checkpoint is not None:
            print(
                f"{self._owner}: interrupted after {self._collector.played} rounds, saved in "
                f"{self._checkpoint.directory}; repeat the same call to continue.",
                file=sys.stderr,
                flush=True,
            )

    def _clear(self) -> None:
        if self._pending is None:
            return
        (chunk, out), self._pending = self._pending, None
        outs = fetch(outputs_of(out))
        collector = self._collector
        if chunk.look is not None:
            before = collector.total
            finite = before is None or np.any(np.isfinite(before[0]))
            losses = [np.asarray(out.paid[0])[slice(*chunk.span)] for out in outs if finite]
            chunk.look.after([np.all(np.asarray(out.alarm)) for out in outs], losses)
        collector.add(chunk, outs)
        self.digest = chunk.digest
        lowest = float(np.fmin.reduce(collector.total[0], None))
        self._bar.advance(chunk.count, lowest / collector.played)
