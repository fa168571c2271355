"""The call that makes a record, as a label of it; `olx._words` finds it and says it.

All labels are equal: two records that differ only in the call that made them have one structure.
They stack, share a compiled program, and a theorem about one is a theorem about the other.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

Path = tuple[str | int, ...]


class Argument(NamedTuple):
    """An argument of a call.

    source: where its value is: the path to it in the record, a function of the record that computes
        it, the call that makes it of parts of the record, or its text.
    default: the text of its default; empty if it has none.
    named: whether it is given by name, as a number is, and what follows a number.
    """

    name: str
    source: "Path | Callable[[Any], Any] | Call | str"
    default: str = ""
    named: bool = False


class Call(NamedTuple):
    """The call that makes a record; without `arguments`, the name of a constant.

    parts: the paths to records that the factory made itself, and the name of each. If another one
        is there now, the call is not shown.
    """

    name: str = ""
    arguments: tuple[Argument, ...] | None = None
    parts: tuple[tuple[Path, str], ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Call)

    def __ne__(self, other: object) -> bool:
        return not isinstance(other, Call)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:  # as a part of a printed structure
        return "<call>"

    def __str__(self) -> str:
        return self.name
