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


def plain(experiment: Any) -> dict[str, Any]:
    """An experiment as plain values."""
    import msgspec  # `import olx.lab` works without the extra

    data = [msgspec.structs.replace(one, thing=None) for one in experiment.data]
    learners = [
        msgspec.structs.replace(
            one,
            thing=None,
            points=None,
            grid=told(one.grid) if one.points is None else axes(one.points),
            arguments=told(one.arguments),
        )
        for one in experiment.learners
    ]
    loss = told(experiment.loss)
    return msgspec.to_builtins(
        msgspec.structs.replace(experiment, data=data, learners=learners, loss=loss)
    )
