"""Where the output of the chunks is put away: gathered, shown and saved."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from olx.engine.checkpoint import Checkpoint
from olx.engine.collect import Collector
from olx.engine.feed import Chunk
from olx.engine.progress import Progress
from olx.engine.signals import Asked


class Desk:
    """Holds the output of one chunk, which a device may still be at work on.

    Whatever ends a run, the device is waited for: it reads memory that Python would give back.
    """

    def __init__(
        self, owner: str, collector: Collector, bar: Progress, checkpoint: Checkpoint | None
    ):
        self._owner, self._collector = owner, collector
        self._bar, self._checkpoint = bar, checkpoint
        self._pending: tuple[Chunk, Any] | None = None
        self._digest = b""  # of the rounds put away

    def __enter__(self) -> "Desk":
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(Exception):  # what went wrong is on its way already
            jax.block_until_ready(self._pending and self._pending[1])

    def wait_for(self, chunks: Iterator[Chunk], asked: Asked, state: PyTree) -> Chunk | None:
        """The next chunk; None at the end. An interruption meanwhile loses nothing."""
        try:
            with asked.waiting():
                return next(chunks, None)
        except (KeyboardInterrupt, SystemExit):
            self.stop(state)
            raise

    def put(self, chunk: Chunk, out: Any) -> None:
        """Put the chunk before away: the device works on this one meanwhile, and no longer reads
        where the next is to be written."""
        self._clear()
        self._pending = chunk, out

    def save(self, state: PyTree) -> None:
        """Save what was played, where that was asked for; in any case it is put away."""
        self._clear()
        if self._checkpoint is not None:
            self._checkpoint.save(state, self._collector, self._digest)

    def stop(self, state: PyTree) -> None:
        """Save, and say where."""
        self.save(state)
        if self._checkpoint is not None:
            print(
                f"{self._owner}: interrupted after {self._collector.played} rounds, saved in "
                f"{self._checkpoint.directory}; the same call goes on from there.",
                file=sys.stderr,
                flush=True,
            )

    def _clear(self) -> None:
        if self._pending is None:
            return
        (chunk, out), self._pending = self._pending, None
        collector = self._collector
        collector.add(chunk, out)
        self._digest = chunk.digest
        lowest = float(np.fmin.reduce(collector.total[0], None))
        self._bar.advance(chunk.count, lowest / collector.played)
