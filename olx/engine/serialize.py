"""Learners and states as values of JSON and arrays, without pickle.

A function is named as `module:name`, so it must live at the top of a module. A record is its class
and its fields. To read a file looks names up in an allow-list (`olx.engine.savable`) and builds
records; it calls no function that the file names.
"""

import functools
import reprlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.tree_util import Partial

from olx import _archive as archive
from olx.engine.savable import Unsavable, fields_of, find, is_record, name_of

_FORMS = {  # the keys of each form, in order
    ("float",),
    ("key", "data"),
    ("array", "host"),
    ("Partial", "args", "keywords"),
    ("partial", "args", "keywords"),
    ("record", "fields"),
    ("tuple",),
    ("list",),
    ("dict",),
    ("dtype",),
    ("bytes",),
    ("name",),
}


def encode(thing: Any, arrays: list[np.ndarray]) -> Any:
    """`thing` as values of JSON; its arrays are appended to `arrays`."""
    again = functools.partial(encode, arrays=arrays)
    if isinstance(thing, float):
        return {"float": repr(float(thing))}
    if isinstance(thing, str | int | None):
        return thing
    if isinstance(thing, jax.Array) and jax.numpy.issubdtype(thing.dtype, jax.dtypes.prng_key):
        kind = str(jax.random.key_impl(thing))
        return {"key": kind, "data": again(jax.random.key_data(thing))}
    if isinstance(thing, jax.Array | np.ndarray | np.generic):
        arrays.append(np.asarray(thing))
        if not archive.is_numeric(arrays[-1].dtype):
            raise Unsavable(f"an array of dtype {arrays[-1].dtype} cannot be saved; keep numbers")
        return {"array": len(arrays) - 1, "host": not isinstance(thing, jax.Array)}
    if isinstance(thing, functools.partial):  # also a `Partial` of JAX
        kind = "Partial" if isinstance(thing, Partial) else "partial"
        given = [again(part) for part in thing.args]
        return {kind: again(thing.func), "args": given, "keywords": _each(again, thing.keywords)}
    if is_record(type(thing)):
        fields = {name: again(getattr(thing, name)) for name in fields_of(type(thing))}
        return {"record": name_of(type(thing)), "fields": fields}
    if type(thing) in (tuple, list):
        return {type(thing).__name__: [again(part) for part in thing]}
    if isinstance(thing, dict) and all(isinstance(key, str) for key in thing):
        return {"dict": _each(again, thing)}
    if isinstance(thing, np.dtype):
        return {"dtype": str(thing)}
    if isinstance(thing, bytes):
        return {"bytes": thing.hex()}
    if callable(thing):
        return {"name": name_of(thing)}
    raise Unsavable(f"a {type(thing).__name__} cannot be saved; keep it in an array or a number")


def decode(words: Any, arrays: dict[int, np.ndarray], trust: tuple[str, ...]) -> Any:
    """The thing that `encode` encoded; `trust` names further modules that names may come from.

    arrays: by number; each is taken out when it is used, so that none is used twice.
    """
    if isinstance(words, str | int | None):
        return words
    if not isinstance(words, dict) or tuple(words) not in _FORMS:
        raise _meaningless(words)
    again = functools.partial(decode, arrays=arrays, trust=trust)
    match words:
        case {"float": str(number)}:
            return _made("a number", float, number)
        case {"key": str(kind), "data": dict(data)}:
            return _made("a random key", jax.random.wrap_key_data, again(data), impl=kind)
        case {"array": int(index), "host": bool(host)}:
            if type(index) is bool or index not in arrays:
                raise Unsavable(f"array {index} is not there, or is used twice")
            array = arrays.pop(index)
            return array.copy() if host else jax.numpy.asarray(array)
        case {"Partial": function, "args": list(args), "keywords": dict(named)}:
            given = map(again, args)
            return _made("a Partial", Partial, again(function), *given, **_each(again, named))
        case {"partial": function, "args": list(args), "keywords": dict(named)}:
            given, named = map(again, args), _each(again, named)
            return _made("a partial", functools.partial, again(function), *given, **named)
        case {"record": str(name), "fields": dict(fields)}:
            return _made(name, _record(name, fields, trust), **_each(again, fields))
        case {"tuple": list(parts)}:
            return tuple(map(again, parts))
        case {"list": list(parts)}:
            return list(map(again, parts))
        case {"dict": dict(parts)}:
            return _each(again, parts)
        case {"dtype": str(name)} if name.isalnum():
            return _made("a dtype", np.dtype, name)
        case {"bytes": str(digits)}:
            return _made("bytes", bytes.fromhex, digits)
        case {"name": str(name)}:
            return find(name, trust)
    raise _meaningless(words)


def _record(name: str, fields: dict[str, Any], trust: tuple[str, ...]) -> type:
    """The class of a record; refuses fields that it does not have, and missing ones."""
    kind = find(name, trust)
    if not is_record(kind):
        raise Unsavable(f"{name} is not a record")
    known = fields_of(kind)
    for field in fields:
        if field not in known:
            raise Unsavable(f"the record {name} has no field {field[:40]!r}")
    for field, must in known.items():
        if must and field not in fields:
            raise Unsavable(f"the record {name} lacks the field {field!r}")
    return kind


def _made(what: str, make: Callable[..., Any], *args: Any, **named: Any) -> Any:
    try:
        return make(*args, **named)
    except (TypeError, ValueError, OverflowError) as error:
        said = str(error).partition("\n")[0].rstrip(".")
        raise Unsavable(f"{what} cannot be made of what it holds ({said})") from error


def _meaningless(words: Any) -> Unsavable:
    return Unsavable(f"{reprlib.repr(words)} has no meaning in it")


def _each(function: Callable[[Any], Any], parts: dict[str, Any]) -> dict[str, Any]:
    return {name: function(part) for name, part in parts.items()}
