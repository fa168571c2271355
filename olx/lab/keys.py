"""The keys of a config, read from the records that the parser fills.

A key is a field with a meaning: `seeds: Annotated[int, means("orders of the rows")] = 1`.
"""

from typing import Annotated, Any, NamedTuple, get_args, get_origin

import msgspec


class Key(NamedTuple):
    """A key of a config."""

    name: str
    kind: Any  # its type
    default: Any  # msgspec.NODEFAULT if it must be given
    meaning: str


def means(text: str) -> msgspec.Meta:
    """The meaning of a key."""
    return msgspec.Meta(description=text)


def keys(kind: type[msgspec.Struct]) -> dict[str, Key]:
    """The keys of a table of a config, by name."""
    found = {}
    for field in msgspec.structs.fields(kind):
        if get_origin(field.type) is Annotated:
            plain, meaning = get_args(field.type)
            made = field.default_factory
            default = field.default if made is msgspec.NODEFAULT else made()
            found[field.name] = Key(field.name, plain, default, meaning.description)
    return found
