r"""Text that leaves for a terminal.

Labels, columns, classes and messages that quote data may hold anything. A terminal obeys control
characters, such as those of ANSI escapes, so they are shown as what they are: `\x1b[31m`.
"""

import sys
import unicodedata

_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # categories: control, format, surrogate, separators
_JOINERS = "\u200c\u200d"  # parts of words in some scripts, and of emoji


def say(text: str) -> None:
    """Print lines of results."""
    print(as_lines(text))


def say_aside(text: str) -> None:
    """Print lines about the work, or an error, beside the results."""
    print(as_lines(text), file=sys.stderr)


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
