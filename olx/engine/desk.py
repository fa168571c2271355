"""What happens to the output of a chunk: it is collected, shown in the progress bar and saved."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from olx.engine.checkpoint import Checkpoint
from olx.engine.collect import Collector, fetched
from olx.engine.feed import Chunk
from olx.engine.progress import Progress
from olx.engine.signals import Asked
from olx.engine.team import parts, whole


class Desk:
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

    def __enter__(self) -> "Desk":
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(Exception):  # the first error is being raised already
            jax.block_until_ready(self._pending and self._pending[1])

    def wait_for(self, chunks: Iterator[Chunk], asked: Asked, state: PyTree) -> Chunk | None:
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
            self._checkpoint.save(whole(state), self._collector, self.digest)

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
        outs = fetched(parts(out))
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
