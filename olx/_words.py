"""Records in one line: the call that makes them, such as `linear(ogd(eta=0.1))`.

A public factory labels the record that it returns with its `Call`; where one factory calls another,
the outer call stands. A label holds no numbers. It holds the path to each argument in the record,
found when the record was made, so that a learner with other numbers, or a stack of learners, shows
the numbers that it has now. An argument that is nowhere in the record is held as text, and a number
that is nowhere in it is shown as `...`, unless its factory says how to compute it from the record
(`computed`).
"""

import dataclasses
import functools
import inspect
import operator
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any, TypeVar

import jax
import numpy as np
from jax.core import Tracer

from olx._call import Argument, Call, Path

Record = TypeVar("Record")

_UNKNOWN = "..."
_NUMBERS = (int, float, np.ndarray, np.generic, jax.Array)
_LONGEST = 4  # entries of an array that are shown


def label(made: Record, name: str, factory: Callable[..., Any], args: Any, named: Any) -> Record:
    """The record `made` with the call that made it; itself if it is one of the arguments."""
    before = getattr(made, "name", Call())
    if any(made is one for one in (*args, *named.values())):
        return made
    given = list(_given(factory, args, named))
    stops = {id(value) for *_, value in given if _names_of(type(value))}
    parts = list(_walk(made, stops))
    stated = {} if before.name else {one.name: one.source for one in before.arguments or ()}
    arguments = [
        Argument(key, (value is not None and stated.get(key)) or _source(key, value, parts), *rest)
        for key, *rest, value in given
    ]
    own = [(path, part) for path, part in parts if len(path) <= 2 and id(part) not in stops]
    kinds = [(path, _kind(part)) for path, part in own if _names_of(type(part))]
    return _named(made, Call(name, tuple(arguments), tuple(kinds)))


def computed(made: Record, **functions: Callable[[Any], Any]) -> Record:
    """`made` with functions of the record that compute the arguments of these names."""
    return _named(made, Call("", tuple(Argument(*each) for each in functions.items())))


def call_of(name: str, record: Any) -> Call:
    """The call of the factory `name` with the numbers of a record."""
    own = record.hparams
    fields = _names_of(type(own)) or (own if isinstance(own, dict) else ())
    arguments = tuple(Argument(field, ("hparams", field), "None", True) for field in fields)
    alone = () if own is None or _has_parts(type(own)) else (Argument("", ("hparams",)),)
    return Call(name, arguments or alone)


def _named(made: Record, call: Call) -> Record:
    copied = object.__new__(type(made))  # as `dataclasses.replace`, in a tenth of the time
    vars(copied).update(vars(made), name=call)
    return copied


def _kind(record: object) -> str:
    """The name of the factory of a record, or that of its class."""
    return str(getattr(record, "name", "") or type(record).__name__)


def _given(factory: Callable[..., Any], args: Any, named: Any) -> Iterator[tuple]:
    """The name of each argument, the text of its default, whether it is named, and its value.

    The default of an argument that is neither a number nor a word counts only if it is the value:
    another function may have the same name.
    """
    rest, named = iter(args), dict(named)
    for name, (kind, default, text, is_count) in _parameters_of(factory).items():
        if kind is inspect.Parameter.VAR_POSITIONAL:
            yield from (("", "", False, value) for value in rest)
        elif kind is inspect.Parameter.VAR_KEYWORD:
            yield from ((key, "", True, value) for key, value in named.items())
        else:
            value = named.pop(name, default) if kind is _NAMED else next(rest, _NONE)
            value = named.pop(name, default) if value is _NONE else value
            is_plain = default is value or isinstance(default, int | float | str | None)
            is_number = isinstance(value, _NUMBERS) and not is_count
            yield name, text if is_plain else "", is_number or kind is _NAMED, value


_NAMED, _NONE = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty


@functools.cache
def _parameters_of(factory: Callable[..., Any]) -> dict[str, tuple[Any, Any, str, bool]]:
    """The kind of each parameter, its default, the text of it, and whether it is a count."""
    return {
        name: (one.kind, one.default, words(one.default), one.annotation is int)
        for name, one in inspect.signature(factory).parameters.items()
    }


def _walk(made: object, stops: set[int]) -> Iterator[tuple[Path, Any]]:
    """The parts of a record and their paths, short paths first; `stops` are not opened."""
    level: list[tuple[Path, Any]] = [((), made)]
    while level:
        level = [
            ((*path, key), inner)
            for path, part in level
            if _has_parts(type(part)) and id(part) not in stops
            for key, inner in _parts(part).items()
        ]
        yield from level


def _parts(thing: object) -> dict[str | int, Any]:
    """The parts of a record, a container or a bound function, by their names."""
    if names := _names_of(type(thing)):
        return {name: getattr(thing, name) for name in names}
    if isinstance(thing, functools.partial):
        names = _names_of_parameters(thing.func)[: len(thing.args)] or range(len(thing.args))
        return {"": thing.func, **dict(zip(names, thing.args, strict=True)), **thing.keywords}
    if isinstance(thing, tuple | list):
        return dict(enumerate(thing))
    return thing if isinstance(thing, dict) else {}


@functools.cache
def _has_parts(kind: type) -> bool:
    containers = tuple, list, dict, functools.partial
    return dataclasses.is_dataclass(kind) or issubclass(kind, containers)


@functools.cache
def _names_of(kind: type) -> tuple[str, ...]:
    """The fields of a class of records that may hold arguments; none for other classes."""
    if not dataclasses.is_dataclass(kind):
        return getattr(kind, "_fields", ()) if issubclass(kind, tuple) else ()
    fields = [field for field in dataclasses.fields(kind) if field.name not in _ASIDE]
    return tuple(field.name for field in fields if not isinstance(field.default, Call))


_ASIDE = ("facts", "needs", "theorems")


def _names_of_parameters(function: object) -> tuple[str, ...]:
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    return () if code is None else code.co_varnames[: code.co_argcount]


def _source(name: str, value: object, parts: list[tuple[Path, Any]]) -> Any:
    """Where the value of an argument is; see `Argument`."""
    if value is None or isinstance(value, bool | str):
        return words(value)
    found = [path for path, part in parts if _is(part, value)]
    if not found and not isinstance(value, Tracer):
        equal = [(path, part) for path, part in parts if _equal(part, value)]
        found = [path for path, part in equal if name in path or np.ndim(part)]
    if found:
        return max(found, key=lambda path: (path[-1] == name) + (name in path))
    own = getattr(value, "name", None)
    if isinstance(own, Call) and own.arguments is not None:
        return _moved(own, value, parts)
    if _names_of(type(value)) and not own:
        fields = [(name, getattr(value, name)) for name in _names_of(type(value))]
        return Call(_kind(value), tuple(Argument(k, _source(k, v, parts)) for k, v in fields))
    fixed = own or isinstance(value, int | FunctionType | type)
    return words(value) if fixed else _UNKNOWN


def _moved(call: Call, record: object, parts: list[tuple[Path, Any]]) -> Call:
    """The call that made `record`, of which only parts are kept, with paths to these parts."""
    moved = []
    for argument in call.arguments or ():
        source = argument.source
        if isinstance(source, Call):
            source = _moved(source, record, parts)
        elif not isinstance(source, str):
            source = _source(argument.name, value_at(record, source), parts)
        moved.append(argument._replace(source=source))
    return Call(call.name, tuple(moved))


def as_given(number: object, given: object) -> Any:
    """`number`, which is the argument `given` where that is legal; `label` takes it for `given`."""
    if not isinstance(number, Tracer):
        return given if type(number) is type(given) and _equal(number, given) else number
    _FIRST[id(number)] = _first(given)
    weakref.finalize(number, _FIRST.pop, id(number), None)
    return number


_FIRST: dict[int, Any] = {}  # by the identity of a checked number: the number that was given


def _first(number: object) -> Any:
    return _FIRST.get(id(number), number)


def _is(part: object, value: object) -> bool:
    """Whether a part is the value, or holds the same things in the same order."""
    if isinstance(part, Tracer):
        return _first(part) is _first(value)
    if part is value or not (isinstance(part, tuple | list) and isinstance(value, tuple | list)):
        return part is value
    return len(part) == len(value) > 0 and all(map(operator.is_, part, value))


def _equal(part: Any, value: Any) -> bool:
    """Whether a part holds the numbers of a value, such as an array made of a list."""
    if not isinstance(part, _NUMBERS) or isinstance(part, Tracer):
        return False
    try:
        return np.shape(part) == np.shape(value) and bool(np.all(np.asarray(part) == value))
    except Exception:  # a random key, or no numbers
        return False


def value_at(record: Any, source: Any) -> Any:
    if callable(source):
        return source(record)
    if not source:
        raise KeyError("a record is no part of itself")
    for key in source:
        record = _parts(record)[key]
    return record


def words(thing: object) -> str:
    """One line about anything that a record may hold."""
    own = getattr(thing, "name", None)
    if isinstance(own, Call) and own.name:
        try:
            return _call(thing, own)
        except Exception:  # its parts were replaced by others, or a file names what is not there
            return _fields(thing)
    if isinstance(thing, functools.partial):
        return _joined(_name(thing.func), map(words, thing.args), thing.keywords)
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        return _fields(thing)
    if isinstance(thing, tuple) and (names := getattr(thing, "_fields", None)):
        return _joined(type(thing).__name__, (), dict(zip(names, thing, strict=True)))
    if isinstance(thing, tuple | list):
        inside = ", ".join(map(words, thing))
        alone = "," if isinstance(thing, tuple) and len(thing) == 1 else ""
        return f"[{inside}]" if isinstance(thing, list) else f"({inside}{alone})"
    if isinstance(thing, dict):
        return f"{{{', '.join(f'{key}: {words(part)}' for key, part in thing.items())}}}"
    if isinstance(thing, float):
        return f"{thing:g}"
    if hasattr(thing, "shape") and hasattr(thing, "dtype"):
        return _array(thing)
    return _name(thing) if callable(thing) else repr(thing)


def _call(record: object, call: Call) -> str:
    """The call in words."""
    if any(kind != _kind(value_at(record, path)) for path, kind in call.parts):
        raise KeyError("another record is there")
    if call.arguments is None:
        return call.name
    said, in_place = [], True
    for name, source, default, named in call.arguments:
        if isinstance(source, str):
            text = source
        elif isinstance(source, Call):
            text = _call(record, source)
        else:
            text = words(value_at(record, source))
        in_place &= not named and text != default
        if text != default:
            said.append(text if in_place else f"{name}={text}")
    return f"{call.name}({', '.join(said)})"


def _fields(record: Any) -> str:
    """A record by its fields; those that are not given or off are left out."""
    defaults = {field.name: field.default for field in dataclasses.fields(record)}
    fields = [(name, getattr(record, name)) for name in _names_of(type(record))]
    given = [(name, part) for name, part in fields if part is not defaults[name]]
    shown = {name: part for name, part in given if part is not None and part is not False}
    return _joined(type(record).__name__, (), shown)


def _joined(name: str, given: Any, named: Mapping[str, Any]) -> str:
    return f"{name}({', '.join([*given, *(f'{k}={words(part)}' for k, part in named.items())])})"


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


def _name(function: object) -> str:
    return getattr(function, "__name__", type(function).__name__)
