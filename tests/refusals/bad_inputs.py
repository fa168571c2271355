"""What a row of the tables of bad inputs holds."""

from collections.abc import Callable
from typing import NamedTuple


class Bad(NamedTuple):
    call: Callable[[], object]  # gives the library something it must refuse
    error: type[BaseException]
    says: str  # a regular expression: the message names the owner, the thing and the remedy
    remedy: str = ""  # a regular expression for what to do, where it is tested by itself
