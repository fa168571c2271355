"""What comes back from a program: collected, shown, saved, and given back as a `Run`.

The output of a chunk is held until the next chunk was given to the program: a device may still be
computing it. Rounds with bad numbers are refused before their output is collected or saved.

An exception in the middle of a chunk would free memory that a device still uses, and would lose the
state. So a signal is noted, and raised after the chunk. A second signal is raised at once, and so
is a signal while the run waits for its stream.
"""

# `signal` looks for every handler in an enumeration, which takes 5 microseconds.
import _signal  # pyright: ignore[reportMissingImports]
import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import PyTree

from olx._pytree import NOT_KEPT
from olx._terminal import progress_bar
from olx.core import Run
from olx.engine.checkpoint import Checkpoint
from olx.engine.chunks import Chunk, History, Stream
from olx.engine.collector import Collector, fetch
from olx.engine.processes import ProcessGroup
from olx.keep import Keep

if TYPE_CHECKING:
    from olx.engine.execute import Compiled


class Outputs:
    """Collects what a program gives back for each chunk.

    When a run ends, also by an error, it waits for the device, which may still read the arrays.
    """

    def __init__(
        self,
        name: str,
        program: "Compiled",
        keep: Keep | None,
        checkpoint: Checkpoint | None,
        group: ProcessGroup | None,
    ):
        self.history: History | None = None  # of the stream, if it is compared with another one
        self._name, self._program = name, program
        self._checkpoint, self._group = checkpoint, group
        self._collector = Collector(keep)
        self._pending: tuple[Chunk, Any] | None = None
        self._digest = b""  # of the collected rounds
        self._state: PyTree = None  # after the last chunk
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> "Outputs":
        self._asked = self._stack.enter_context(defer_signals(self._checkpoint is not None))
        return self

    def __exit__(self, *error: object) -> None:
        self._program.close()
        with contextlib.suppress(Exception):  # the first error is being raised already
            jax.block_until_ready(self._pending and self._pending[1])
        self._stack.close()

    def resume(self, stream: Stream, state: PyTree, progress: bool | None) -> PyTree:
        """The state to begin with: that of the checkpoint, if there is one."""
        known: dict[int, bytes] = {}
        if self._group is not None and self._group.peers is not None:
            self.history = History({}, lambda *_: ValueError())  # they compare what they played
        if self._checkpoint is not None:
            self._stack.enter_context(self._checkpoint.lock())
            given = state, self._collector.keep
            described, self._collector.structure = self._program.description(*given)
            state, known = self._checkpoint.restore(described, state, self._collector)
            self.history = History(known, self._checkpoint.changed)
        self._digest = known.get(self._collector.played, b"")
        progress = progress if self._group is None or jax.process_index() == 0 else False
        self._bar = Progress(progress, stream.length, self._collector.played)
        self._stack.callback(self._bar.close)
        self._state = state
        return state

    def read(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """The chunks, as they come. An interruption while it waits saves the run first."""
        while True:
            try:
                self._asked.waiting = True
                try:
                    chunk = next(chunks, None)
                finally:
                    self._asked.waiting = False
            except (KeyboardInterrupt, SystemExit):
                self._stop()
                raise
            except Exception:
                self._clear()  # a bad number of the chunk before is named first
                raise
            if chunk is None:
                return
            yield chunk

    def add(self, chunk: Chunk, out: object, state: PyTree) -> None:
        """Take the output of a chunk and the state after it; save if that is due."""
        self.hold(chunk, out)
        self._state = state
        if self._asked.by is not None:
            self._stop()
            raise self._asked.error()
        if self._group is not None and self._group.lost():
            self._stop()
            self._group.refuse_lost()
        if self._checkpoint is not None and self._checkpoint.due():
            self._save()

    def hold(self, chunk: Chunk, out: object) -> None:
        """Collect the chunk before, while the device computes this one. The device has then
        finished with the memory that the next chunk is written to."""
        self._clear()
        self._pending = chunk, out

    def run(self) -> Run:
        """The run of all chunks, after the last one is collected and saved."""
        self._save()
        if self._asked.by is not None:
            raise self._asked.error()
        if self._group is not None:
            self._group.tell(self._collector.played, self._digest)
        losses, trace, curve = self._collector.result()
        state = self._program.state_of(self._state)
        return Run(state, losses if curve is None else NOT_KEPT, trace, curve=curve)

    def _save(self) -> None:
        """Collect the last output, and save if there is a checkpoint."""
        self._clear()
        if self._checkpoint is not None:
            self._checkpoint.save(
                self._program.state_of(self._state), self._collector, self._digest
            )

    def _stop(self) -> None:
        """Save, and print the directory."""
        self._save()
        if self._checkpoint is not None:
            print(
                f"{self._name}: interrupted after {self._collector.played} rounds, saved in "
                f"{self._checkpoint.directory}; repeat the same call to continue.",
                file=sys.stderr,
                flush=True,
            )

    def _clear(self) -> None:
        """Collect the pending output; refuse bad numbers that it shows."""
        if self._pending is None:
            return
        (chunk, out), self._pending = self._pending, None
        outs = fetch(self._program.outputs_of(out))
        collector = self._collector
        if chunk.look is not None:
            before = collector.total
            finite = before is None or np.any(np.isfinite(before[0]))
            losses = [np.asarray(out.sums[0])[slice(*chunk.span)] for out in outs if finite]
            chunk.look.after([np.all(np.asarray(out.nonfinite)) for out in outs], losses)
        collector.add(chunk, outs)
        self._digest = chunk.digest
        lowest = float(np.fmin.reduce(collector.total[0], None))
        self._bar.advance(chunk.count, lowest / collector.played)


class Progress:
    """A progress bar on a terminal, and elsewhere a line each minute; `show` may hide it."""

    def __init__(self, show: bool | None, total: int | None, done: int):
        self._bar: Any = None
        if show is not False:
            self._bar = progress_bar(show, total, done, " rounds")

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
        self.waiting = False  # for the stream: a signal may raise at once

    def take(self, number: int, frame: object = None) -> None:
        """The handler of the signal."""
        at_once = self.waiting or self.by is not None
        self.by = signal.Signals(number)
        if at_once:
            raise self.error()

    def error(self) -> BaseException:
        """The exception that the signal usually raises; the process then ends with 130 or 143."""
        if self.by == signal.SIGTERM:
            return SystemExit(128 + signal.SIGTERM)
        return KeyboardInterrupt()


@contextlib.contextmanager
def defer_signals(saves: bool) -> Iterator[StopRequest]:
    """Defer SIGINT, and SIGTERM if the run can be saved, unless the user has set a handler.

    If a caller of this run already defers signals, its `StopRequest` is used.
    """
    present = _signal.getsignal(signal.SIGINT)
    around = getattr(present, "__self__", None)
    if saves and isinstance(around, StopRequest):
        yield around
        return
    asked, before = StopRequest(), {}
    usual: dict[signal.Signals, Any] = {signal.SIGINT: signal.default_int_handler}
    if saves:
        usual[signal.SIGTERM] = _signal.SIG_DFL
    if threading.current_thread() is threading.main_thread():
        now = lambda number: present if number == signal.SIGINT else _signal.getsignal(number)
        before = {number: handler for number, handler in usual.items() if now(number) == handler}
    for number in before:
        _signal.signal(number, asked.take)
    try:
        yield asked
    finally:
        for number, handler in before.items():
            _signal.signal(number, handler)
