r"""Text that leaves for a terminal.

Labels, columns, classes and messages that quote data may hold anything. A terminal obeys control
characters, such as those of ANSI escapes, so they are shown as what they are: `\x1b[31m`.
"""

import sys
import time
import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm

_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # categories: control, format, surrogate, separators
_JOINERS = "\u200c\u200d"  # parts of words in some scripts, and of emoji


def say(text: str) -> None:
    """Print lines of results."""
    print(as_lines(text))


def say_aside(text: str) -> None:
    """Print lines about the work, or an error, beside the results."""
    print(as_lines(text), file=sys.stderr)


def progress_bar(
    show: bool | None, total: int | None, done: int, unit: str
) -> "tqdm[Any] | MinuteLines":
    """A progress bar; if `show` is None and there is no terminal, a line each minute."""
    if show is None and not sys.stderr.isatty():
        return MinuteLines(total, done, unit)
    from tqdm import tqdm

    return tqdm(total=total, initial=done, unit=unit, smoothing=0.1, disable=show is False)


class MinuteLines:
    """A progress bar for logs: a line each minute, so that short work prints nothing."""

    EVERY = 60.0  # seconds

    def __init__(self, total: int | None, done: int, unit: str):
        self._total, self._done, self._unit, self._about = total, done, unit, ""
        self._start = self._last = time.monotonic()

    def set_postfix_str(self, about: str, refresh: bool = True) -> None:
        self._about = about

    def update(self, count: int = 1) -> None:
        self._done += count
        now = time.monotonic()
        if now - self._last >= self.EVERY:
            self._last = now
            of = "" if self._total is None else f" of {self._total:,}"
            minutes = round((now - self._start) / 60)
            about = f"; {self._about}" if self._about else ""
            say_aside(f"olx: {self._done:,}{of} {self._unit.strip()} after {minutes} min{about}")

    def close(self) -> None:
        """Nothing to close."""

    def __enter__(self) -> "MinuteLines":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def as_lines(text: str) -> str:
    """The text with all control characters but ends of lines as escapes."""
    return "\n".join(map(as_line, text.split("\n")))


def as_line(text: str) -> str:
    """The text as one line, with all control characters as escapes."""
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character in _JOINERS or unicodedata.category(character) not in _UNSEEN:
        return character
    return character.encode("unicode_escape").decode()
