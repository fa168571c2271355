"""Records in one readable line, such as `linear(omd(eta=0.1, mirror=euclidean()))`.

A record of functions and numbers, such as a learner or a mirror map, is named after the file of one
of its functions that is not shared, which is the file of its factory.
"""

import dataclasses
import functools
from types import FunctionType
from typing import Any

import jax
import numpy as np

_NUMBERS = (int, float, np.ndarray, jax.Array)
_LONGEST = 4  # entries of an array that are shown


def words(thing: Any) -> str:
    """One line about anything that a record may hold."""
    if isinstance(thing, functools.partial):
        return call(_name(thing.func), [words(part) for part in thing.args], thing.keywords)
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        return _record(thing)
    if isinstance(thing, tuple) and (names := getattr(thing, "_fields", None)):
        return call(type(thing).__name__, [], dict(zip(names, thing, strict=True)))
    if isinstance(thing, tuple | list):
        inside = ", ".join(map(words, thing))
        return f"[{inside}]" if isinstance(thing, list) else f"({inside})"
    if isinstance(thing, dict):
        return f"{{{', '.join(f'{key}: {words(part)}' for key, part in thing.items())}}}"
    if isinstance(thing, float):
        return f"{thing:g}"
    if hasattr(thing, "shape") and hasattr(thing, "dtype"):
        return _array(thing)
    if callable(thing):
        return _name(thing)
    return repr(thing)


def _record(thing: Any) -> str:
    if hasattr(thing, "in_words"):
        return thing.in_words()
    fields = _fields(thing)
    functions = [part for part in fields.values() if _is_function(part)]
    if not functions:
        return call(type(thing).__name__, [], fields)
    own: Any = fields.get("hparams")
    if hasattr(own, "in_words"):
        return own.in_words()
    if "hparams" not in fields:  # numbers are bound to the functions
        bound = [part for part in functions if isinstance(part, functools.partial)]
        given = next(filter(None, map(_bound, bound)), [])
        return call(_maker(functions), given, {})
    if type(thing).__name__ == "Process" and isinstance(own, _NUMBERS):
        return words(own)  # a number that does not change with time
    return call(_maker(functions[::-1]), *numbers(own))


def _maker(functions: list[Any]) -> str:
    """The file of the factory: that of the first function which is not a shared one."""
    files = [_inner(function).__module__.rpartition(".")[2] for function in functions]
    return next((file for file in files if file[0] != "_" and file != "base"), files[0])


def _bound(function: functools.partial) -> list[str]:
    """The numbers and sets that are bound to a function, in words; other functions say nothing."""
    parts = [words(part).lstrip("_") for part in function.args if part is not None]
    return [part for part in parts if not part.endswith("()")]


def numbers(own: Any) -> tuple[list[str], dict[str, Any]]:
    """The numbers of a record, those without a name first."""
    if own is None:
        return [], {}
    if isinstance(own, functools.partial):
        return _bound(own), own.keywords
    if hasattr(own, "_fields"):
        return [], own._asdict()
    if dataclasses.is_dataclass(own) and type(own).__name__.endswith("Hparams"):
        return [], _fields(own)
    return [words(own)], {}


def _fields(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


def call(name: str, given: list[str], named: dict[str, Any]) -> str:
    """A call of `name`; arguments that say nothing are left out."""
    shown = {key: part for key, part in named.items() if not _is_plain(part)}
    parts = [f"{key}={words(part)}" for key, part in shown.items()]
    return f"{name}({', '.join([*given, *parts])})"


def _array(array: Any) -> str:
    kind = f"{array.dtype}[{','.join(map(str, array.shape))}]"
    try:
        seen = np.asarray(array)
    except Exception:  # a tracer, or a random key
        return kind
    if seen.ndim == 0:
        return f"{seen.item():g}" if seen.dtype.kind == "f" else str(seen.item())
    if seen.ndim == 1 and seen.size <= _LONGEST and seen.dtype.kind in "fiu":
        return f"[{', '.join(f'{number:g}' for number in seen)}]"
    return kind


def _is_plain(part: Any) -> bool:
    """Whether a field says nothing about its record: not given, off, or a function by itself."""
    if isinstance(part, functools.partial) and not part.args and not part.keywords:
        part = part.func
    return part is None or part is False or isinstance(part, FunctionType)


def _is_function(part: Any) -> bool:
    inner = _inner(part)
    return callable(inner) and not isinstance(inner, type) and not dataclasses.is_dataclass(inner)


def _inner(function: Any) -> Any:
    return function.func if isinstance(function, functools.partial) else function


def _name(function: Any) -> str:
    if dataclasses.is_dataclass(function):
        return words(function)
    return getattr(function, "__name__", type(function).__name__)
