"""Handle signals that end a run between two chunks.

An exception in the middle of a chunk would free memory that a device still uses, and would lose the
state. So a signal is noted, and raised after the chunk. A second signal is raised at once, and so
is a signal while the run waits for its stream.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


class Asked:
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
def deferred(saves: bool) -> Iterator[Asked]:
    """Defer SIGINT, and SIGTERM if the run can be saved, unless the user has set a handler.

    If a caller of this run already defers signals, its `Asked` is used.
    """
    present = signal.getsignal(signal.SIGINT)
    around = getattr(present, "__self__", None)
    if saves and isinstance(around, Asked):
        yield around
        return
    asked, before = Asked(), {}
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
