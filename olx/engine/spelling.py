"""Learners and states as plain words and arrays, without pickle.

A function is spelled as `module:name`, so it must live at the top of a module. A record is spelled
as its class and its fields. To read it back only looks names up and builds records. Names come from
the parts of olx that make learners, from plain functions of JAX and optax, and from modules that
the caller trusts. So a file cannot name a function that reads or writes files.
"""

import dataclasses
import functools
import importlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.tree_util import Partial

OPEN = ("olx", "optax", "jax.numpy", "jax.nn", "jax.lax", "jax.scipy")  # may be named untrusted
CLOSED = ("olx.engine", "olx.hindsight", "olx.lab", "olx.cli", "olx.streams", "olx.testing")
_FILES = ("save", "savez", "load", "fromfile")  # of jax.numpy
_PLAIN = (str, int, float, bool, type(None))


class Unspeakable(Exception):
    """Something that has no spelling; its text says what, and what to do."""


def spell(thing: Any, arrays: list[np.ndarray]) -> Any:
    """`thing` as values of JSON; its arrays are appended to `arrays`."""
    again = functools.partial(spell, arrays=arrays)
    if isinstance(thing, _PLAIN):
        return {"float": repr(thing)} if isinstance(thing, float) else thing
    if isinstance(thing, jax.Array) and jax.numpy.issubdtype(thing.dtype, jax.dtypes.prng_key):
        kind = str(jax.random.key_impl(thing))
        return {"key": kind, "data": again(jax.random.key_data(thing))}
    if isinstance(thing, jax.Array | np.ndarray | np.generic):
        arrays.append(np.asarray(thing))
        return {"array": len(arrays) - 1, "host": not isinstance(thing, jax.Array)}
    if isinstance(thing, functools.partial):  # also a `Partial` of JAX
        named = {name: again(part) for name, part in thing.keywords.items()}
        given = [again(part) for part in thing.args]
        kind = "Partial" if isinstance(thing, Partial) else "partial"
        return {kind: again(thing.func), "args": given, "keywords": named}
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        fields = {field.name: again(getattr(thing, field.name)) for field in _fields(thing)}
        return {"record": _name(type(thing)), "fields": fields}
    if isinstance(thing, tuple) and hasattr(thing, "_fields"):
        return {"record": _name(type(thing)), "fields": {k: again(v) for k, v in _items(thing)}}
    if isinstance(thing, tuple | list):
        return {type(thing).__name__: [again(part) for part in thing]}
    if isinstance(thing, dict) and all(isinstance(key, str) for key in thing):
        return {"dict": {key: again(part) for key, part in thing.items()}}
    if isinstance(thing, np.dtype):
        return {"dtype": str(thing)}
    if isinstance(thing, bytes):
        return {"bytes": thing.hex()}
    if callable(thing):
        return {"name": _name(thing)}
    raise Unspeakable(f"a {type(thing).__name__} cannot be saved; keep it in an array or a number")


def read(words: Any, arrays: list[np.ndarray], trust: tuple[str, ...]) -> Any:
    """The thing that `spell` spelled; `trust` names further modules that names may come from."""
    again = functools.partial(read, arrays=arrays, trust=trust)
    if isinstance(words, _PLAIN):
        return words
    match words:
        case {"float": number}:
            return float(number)
        case {"key": kind, "data": data}:
            return jax.random.wrap_key_data(again(data), impl=kind)
        case {"array": index, "host": host}:
            return arrays[index] if host else jax.numpy.asarray(arrays[index])
        case {"Partial": function, "args": args, "keywords": named}:
            return Partial(again(function), *map(again, args), **_each(again, named))
        case {"partial": function, "args": args, "keywords": named}:
            return functools.partial(again(function), *map(again, args), **_each(again, named))
        case {"record": name, "fields": fields}:
            kind = _find(name, trust)
            if not isinstance(kind, type) or not _is_record(kind):
                raise Unspeakable(f"{name} is no record")
            return kind(**_each(again, fields))
        case {"tuple": parts}:
            return tuple(map(again, parts))
        case {"list": parts}:
            return list(map(again, parts))
        case {"dict": parts}:
            return _each(again, parts)
        case {"dtype": name}:
            return np.dtype(name)
        case {"bytes": digits}:
            return bytes.fromhex(digits)
        case {"name": name}:
            return _find(name, trust)
    raise Unspeakable(f"{str(words)[:40]} means nothing")


def _name(thing: Any) -> str:
    """`module:name` of a function or a class; refuses what is not found under that name."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    name = name or getattr(thing, "__name__", None)
    if module and name and _looked_up(module, name) is thing:
        return f"{module}:{name}"
    shown = f"{module}.{name}" if name else repr(thing)
    raise Unspeakable(
        f"{shown} is not found under that name, so it cannot be saved; move it to the top of a "
        "module, and bind its numbers with `jax.tree_util.Partial`"
    )


def _find(name: str, trust: tuple[str, ...]) -> Any:
    module, _, path = name.partition(":")
    last = path.rpartition(".")[2]
    known = _is_in(module, OPEN) and not _is_in(module, CLOSED) and last not in _FILES
    if not known and not _is_in(module, trust):
        raise Unspeakable(
            f"{name} is not a part of olx that makes learners. If you trust the file, load it with "
            f"trust=[{module.partition('.')[0]!r}]"
        )
    try:
        found = _looked_up(module, path)
    except ImportError as error:
        raise Unspeakable(f"{module} cannot be imported ({error})") from None
    if found is None:
        raise Unspeakable(f"{module} has no {path} any more")
    return found


def _is_in(module: str, packages: tuple[str, ...]) -> bool:
    return any(f"{module}.".startswith(f"{package}.") for package in packages)


def _looked_up(module: str, path: str) -> Any:
    if module == "__main__":
        raise Unspeakable(
            f"{path} lives in the program itself, which another program cannot import; move it to "
            "a module of its own"
        )
    here = importlib.import_module(module)
    for part in path.split("."):
        here = getattr(here, part, None)
    return here


def _is_record(kind: type) -> bool:
    return dataclasses.is_dataclass(kind) or (issubclass(kind, tuple) and hasattr(kind, "_fields"))


def _fields(thing: Any) -> list[Any]:
    return [field for field in dataclasses.fields(thing) if field.init]


def _items(thing: Any) -> list[tuple[str, Any]]:
    return list(zip(thing._fields, thing, strict=True))


def _each(function: Callable[[Any], Any], parts: dict[str, Any]) -> dict[str, Any]:
    return {name: function(part) for name, part in parts.items()}
