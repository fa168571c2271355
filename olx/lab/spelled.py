"""Objects that were given from Python, in words for the config of a result."""

from collections.abc import Mapping
from typing import Any

from olx._words import words


def spelled(thing: Any) -> str:
    """An object that was given from Python, in words."""
    name = getattr(thing, "__qualname__", None)
    return f"{thing.__module__}:{name}" if name else words(thing)


def axes(points: list[dict[str, Any]]) -> dict[str, Any]:
    """The values of each argument of some configurations."""
    return {axis: sorted({point[axis] for point in points}) for axis in points[0]}


def told(value: Any) -> Any:
    """A tree of plain values; all else is told in words."""
    if isinstance(value, Mapping):
        return {key: told(each) for key, each in value.items()}
    if isinstance(value, list):
        return [told(each) for each in value]
    return value if isinstance(value, str | int | float | None) else spelled(value)
