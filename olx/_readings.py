"""What the functions of a game read besides their arguments.

A compiled program can be used again if its functions read what they read when it was compiled. The
structure of a game holds the functions. This page adds what each of them finds outside: the global
names of its code, its defaults, and the same of the functions that it calls. Constants count by
value, functions by identity. So a changed constant is a new program, and so is a function that was
written anew.

An array, an object or a closure can change without a trace. `readings_of` gives None for a function
that reads one: `rollout` compiles such a game in every call. `visible_readings` gives what it sees,
constants and small arrays of NumPy by value, also those in closures, in containers, in objects and
in the classes of these, all else by identity: all other compiled functions, such as those of `run`
and `predict`, are compiled again when it changes. So a function that changes what it reads, such
as a list that counts its traces, is compiled in every call.

Functions of JAX, NumPy and olx read nothing that changes.
"""

import builtins
import dataclasses
import dis
import functools
import sys
from collections.abc import Iterable, Iterator
from types import (
    CellType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any, NamedTuple

import jax
import numpy as np

from olx._cache import Recent, cached

_FIXED = {
    *("olx", "jax", "jaxlib", "jaxtyping", "optax", "numpy"),
    *("builtins", "collections", "functools", "math", "operator", "typing"),
}
_LOOKS = {"__import__", "eval", "exec", "globals", "input", "open", "print", "vars"}
_SMALL = 1 << 12  # bytes of an array, or entries of a list, that are compared in every call
_MANY = 1 << 14  # numbers and objects that are compared in every call; else those inside objects
_DEEP = 16  # objects inside each other that are looked into
_CONSTANTS = (type(None), bool, int, float, complex, str, bytes, np.number, np.bool_, np.dtype)
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_COMPILED: Any = type(jax.jit(lambda: None))


class _Unknown(Exception):
    """A function reads what may change unseen."""


class _Same:
    """A thing that counts by identity."""

    def __init__(self, thing: object) -> None:
        self.thing = thing  # kept, so that its `id` is not used again

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


class _Seen(dict[Any, Any]):
    """What was read, in its order."""

    strict = True
    depth = 0  # of objects inside each other

    def leave(self) -> None:
        """Leave out what may change unseen."""
        if self.strict:
            raise _Unknown


class _Visible(_Seen):
    strict = False


_FOREIGN: Recent[tuple] = Recent()


def readings_of(structure: object) -> tuple | None:
    """What the functions of a tree structure read; None if that may change unseen."""
    seen = _Seen()
    try:
        foreign = _FOREIGN.get(structure)
        foreign = _foreign(structure) if foreign is None else foreign
        for thing in foreign:
            _read(thing, seen)
    except (_Unknown, TypeError, ValueError):  # something without a hash, or that cannot compare
        return None
    _FOREIGN.put(structure, foreign)  # not that of an unknown function, which may hold a tracer
    return tuple(seen.values())


def foreign_parts(structure: object) -> tuple:
    """The functions of a tree structure that are not of a fixed library; they hold no tracer."""
    found = _FOREIGN.get(structure)
    return _FOREIGN.put(structure, _foreign(structure)) if found is None else found


def _foreign(structure: object) -> tuple:
    return tuple(thing for thing in _parts(structure) if not _is_fixed(thing))


def visible_readings(things: Iterable[object]) -> tuple:
    """What these functions read, as far as it can be seen."""
    seen = _Visible()
    for thing in things:
        _read(thing, seen)
    return tuple(seen.values())


def _parts(structure: Any) -> Iterator[Any]:
    for part in structure.node_data() or ():
        yield from _functions_in(part)
    for child in structure.children():
        yield from _parts(child)


def _functions_in(thing: object) -> Iterator[Any]:
    """The functions, classes and objects of a static field; its constants are compared."""
    if isinstance(thing, _CONSTANTS):
        return
    parts = _fields(thing)
    if parts is None:
        yield thing
        return
    for part in parts:
        yield from _functions_in(part)


def _fields(thing: object) -> list | None:
    """The class and the parts of a record; None if it is none."""
    if isinstance(thing, tuple | list):
        return [type(thing), *thing]
    if isinstance(thing, dict):
        return [type(thing), *thing, *thing.values()]
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        return [type(thing), *(getattr(thing, one.name) for one in dataclasses.fields(thing))]
    return None


def _is_fixed(thing: object) -> bool:
    """Whether a fixed library holds the thing under its own name."""
    if thing is type(None):
        return True
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or not _is_library(module):
        return False
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is thing


def _is_library(module: str) -> bool:
    return module.partition(".")[0] in _FIXED and not module.startswith("numpy.random")


def _read(thing: object, seen: _Seen) -> None:
    """Add to `seen` what the thing is and what it reads."""
    if isinstance(thing, _CONSTANTS):
        seen[len(seen)] = type(thing), repr(thing)  # 1 equals True, and 0.0 equals -0.0
    elif (parts := _fields(thing)) is not None and _is_small(parts, seen):
        for part in parts:
            _read(part, seen)
    elif isinstance(thing, set | frozenset) and len(thing) <= _SMALL:
        seen[len(seen)] = type(thing), frozenset(map(repr, thing))
    elif not seen.strict and isinstance(thing, np.ndarray) and thing.nbytes <= _SMALL:
        held = thing.tobytes() if thing.dtype.kind != "O" else repr(thing.tolist())
        seen[len(seen)] = thing.dtype.str, thing.shape, held
    elif (key := ("is", id(thing))) not in seen:
        seen[key] = _Same(thing)
        if not _is_fixed(thing):
            _read_inside(thing, seen)


def _is_small(parts: list, seen: _Seen) -> bool:
    return len(parts) <= _SMALL and (seen.strict or len(parts) + len(seen) <= _MANY)


def _read_inside(thing: Any, seen: _Seen) -> None:
    if isinstance(thing, _COMPILED) or _is_transform(thing):
        _read(thing.__wrapped__, seen)
    elif isinstance(thing, FunctionType):
        _read_function(thing, seen)
    elif isinstance(thing, functools.partial):
        for part in (thing.func, *thing.args, *thing.keywords.values()):
            _read(part, seen)
    elif not isinstance(thing, type) or not _is_record(thing):
        seen.leave()
        _read_attributes(thing, seen)


def _is_transform(thing: object) -> bool:
    """Whether it is a function that JAX made of another one, such as a gradient."""
    if not isinstance(thing, FunctionType) or not hasattr(thing, "__wrapped__"):
        return False
    return str(thing.__globals__.get("__name__")).startswith("jax.")


class _Tuple(NamedTuple):
    pass


@dataclasses.dataclass(frozen=True)
class _Data:
    pass


_PLAIN = {*vars(_Tuple), *vars(_Data)}


def _is_record(kind: type) -> bool:
    """Whether it is a class of fields without code of its own."""
    if dataclasses.is_dataclass(kind):
        names, bases = {one.name for one in dataclasses.fields(kind)}, (object,)
    else:
        names, bases = set(getattr(kind, "_fields", ())), (tuple, object)
    return kind.__mro__[1:] == bases and set(vars(kind)) <= _PLAIN | names


def _read_function(function: FunctionType, seen: _Seen) -> None:
    seen["code", id(function)] = function.__code__
    for cell in function.__closure__ or ():
        seen.leave()
        if cell != _EMPTY:
            _read(cell.cell_contents, seen)
    for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()):
        _read(default, seen)
    for name, *attributes in _global_names(function.__code__):
        if name in function.__globals__:
            _read_global(function.__globals__[name], attributes, seen)
        elif name in _LOOKS or not hasattr(builtins, name):
            seen.leave()


_EMPTY = CellType()


def _read_global(thing: object, attributes: list[str], seen: _Seen) -> None:
    fixed = False
    while isinstance(thing, ModuleType) and attributes:
        fixed = _is_library(thing.__name__)
        thing, attributes = getattr(thing, attributes[0], None), attributes[1:]
    if isinstance(thing, ModuleType):
        seen.leave()
    elif attributes and isinstance(thing, FunctionType):
        seen.leave()
        _read_attributes(thing, seen)
    elif not fixed:
        _read(thing, seen)


def _read_attributes(thing: Any, seen: _Seen) -> None:
    """Add what an object and its class hold, and what a method belongs to."""
    if isinstance(thing, MethodType):
        _read(thing.__func__, seen)
        _read(thing.__self__, seen)
    deep = not isinstance(thing, ModuleType | jax.Array) and not _is_standard(type(thing))
    deep = deep and len(seen) < _MANY and seen.depth < _DEEP
    seen.depth += 1
    for name, value in _attributes(thing).items():
        if isinstance(value, _CONSTANTS):
            seen["of", id(thing), name] = type(value), repr(value)
        elif deep and not isinstance(value, ModuleType):
            _read(value, seen)
        elif not isinstance(thing, ModuleType):
            seen["of", id(thing), name] = _Same(value)
    seen.depth -= 1


def _attributes(thing: Any) -> dict[str, Any]:
    """The attributes of an object; those of its class that are data or slots, and its call."""
    found: dict[str, Any] = {}
    if not isinstance(thing, FunctionType | ModuleType):
        for kind in reversed((thing if isinstance(thing, type) else type(thing)).__mro__):
            if not (_is_fixed(kind) or _is_standard(kind)):
                found |= {name: each for name, each in vars(kind).items() if _is_data(name, each)}
    slots = [name for name, each in found.items() if isinstance(each, MemberDescriptorType)]
    return found | {name: getattr(thing, name, None) for name in slots} | _own_attributes(thing)


def _own_attributes(thing: Any) -> dict[str, Any]:
    return {} if isinstance(thing, type) else getattr(thing, "__dict__", {})


def _is_data(name: str, value: Any) -> bool:
    """Whether an attribute of a class is read by its objects as it is, or is called with them."""
    if name == "__call__" or isinstance(value, MemberDescriptorType):
        return True
    return not (name.startswith("__") or hasattr(value, "__get__"))


def _is_standard(kind: type) -> bool:
    """Whether a class is of the standard library, and more than a name space."""
    return kind.__module__.partition(".")[0] in sys.stdlib_module_names and kind not in (
        *(type, FunctionType, SimpleNamespace),
    )


@cached
def _global_names(code: CodeType) -> list[tuple[str, ...]]:
    """The global names that the code reads, each with the attributes that are read of it.

    One that it imports or sets is `__import__`, which may give anything.
    """
    names: list[tuple[str, ...]] = []
    chain = False  # whether the last instruction read a global name or an attribute of one
    for one in dis.get_instructions(code):
        chain = one.opname == "LOAD_GLOBAL" or (chain and one.opname in _ATTRIBUTES)
        if one.opname == "LOAD_GLOBAL":
            names.append((one.argval,))
        elif chain:
            names[-1] += (one.argval,)
        elif "GLOBAL" in one.opname or "NAME" in one.opname:
            names.append(("__import__",))
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names += _global_names(inner)
    return names
