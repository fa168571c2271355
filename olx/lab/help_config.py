"""Every key of a config in words, from the records that the parser fills."""

import inspect
import textwrap
import types
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from olx.lab import config, grids
from olx.lab.experiment import Budget, Data, Experiment, Player, Published, Random
from olx.lab.keys import Key, keys

TABLES = {
    "": Experiment,
    "[[data]]": Data,
    "[[learners]]": Player,
    "random, of a learner": Random,
    "[budget]": Budget,
    "[[published]]": Published,
}
WORDS = {str: "word", int: "whole number", float: "number", bool: "true or false", dict: "table"}


def explained() -> str:
    """The format of a config, and all its keys with type, default and meaning."""
    parts = [inspect.getdoc(config) or "", "Values of a grid:\n\n" + _indented(_grids())]
    for title, kind in TABLES.items():
        about = (inspect.getdoc(kind) or "").split("\n")[0]
        head = f"{title}: {about}" if title else about
        parts.append("\n".join([head, *map(_row, keys(kind).values())]))
    return "\n\n".join(parts)


def _row(key: Key) -> str:
    default = "" if key.default is msgspec.NODEFAULT else _default(key.default)
    must = ", must be given" if key.default is msgspec.NODEFAULT else ""
    text = f"{key.meaning} ({_kind(key.kind)}{must}{default})"
    first, *rest = textwrap.wrap(text, 80, break_on_hyphens=False)
    return "\n".join([f"  {key.name:<14}{first}", *(f"  {'':<14}{line}" for line in rest)])


def _default(value: Any) -> str:
    if value is None or isinstance(value, msgspec.Struct):
        return ""
    return f"; default {str(value).lower() if isinstance(value, bool) else _shown(value)}"


def _shown(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else "{}" if value == {} else repr(value)


def _kind(kind: Any) -> str:
    """A type in words."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return " or ".join(_kind(part) for part in inside if part is not type(None))
    if origin is Literal:
        return " | ".join(inside)
    if origin is list:
        return f"list of {_kind(inside[0])}s" if inside[0] in WORDS else "list"
    if inspect.isclass(kind) and issubclass(kind, msgspec.Struct):
        return "table"
    return WORDS.get(origin or kind, "value")


def _grids() -> str:
    return (inspect.getdoc(grids) or "").partition("\n\n")[2]


def _indented(text: str) -> str:
    return textwrap.indent(text, "  ")
