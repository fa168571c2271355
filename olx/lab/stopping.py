"""Stop a run of the lab at a point where no work is lost.

If a signal raises an exception while native code of JAX is on the stack, that code aborts, or
crashes when the interpreter ends. So SIGINT and SIGTERM are noted, and take effect after the job or
after its next checkpoint.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

from olx.engine.outputs import StopRequest


class Held(StopRequest):
    """Notes a signal; a second signal has its usual effect at once."""

    def __init__(self) -> None:
        super().__init__()
        self._before: dict[int, Any] = {}

    def take(self, number: int, frame: Any = None) -> None:
        if self.by is not None:
            self.release()
            signal.raise_signal(number)
            return
        self.by = signal.Signals(number)
        os.write(2, b"olx: stopping at the next save; a second signal stops at once.\n")

    def hold(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if handler not in (signal.SIG_IGN, None):
                self._before[number] = handler
                signal.signal(number, self.take)

    def release(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def stop_here(self) -> None:
        """Act on a signal that was noted; called where no work is lost."""
        if self.by is not None:
            raise self.error()


@contextlib.contextmanager
def held() -> Iterator[Held]:
    """Hold signals inside the block; does nothing outside the main thread."""
    asked = Held()
    if threading.current_thread() is threading.main_thread():
        asked.hold()
    try:
        yield asked
    finally:
        asked.release()
