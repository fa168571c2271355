"""Frozen dataclasses that are pytrees: fields are leaves, `static()` fields are structure.

A record is shown in one readable line, such as `linear(omd(eta=0.1, mirror=euclidean()))`. A record
of functions and numbers, such as a learner or a mirror map, is named after the file of one of its
functions that is not shared, which is the file of its factory. `NOT_KEPT` stands in a run for
losses that were not kept.
"""

import copyreg
import dataclasses
import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, NoReturn, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import PyTree

Class = TypeVar("Class", bound=type)


def static(**options: Any) -> Any:
    """Mark a field as structure: it is compared by equality and never traced."""
    return dataclasses.field(metadata={"static": True}, **options)


@dataclass_transform(frozen_default=True, field_specifiers=(static, dataclasses.field))
def pytree(cls: Class) -> Class:
    """Make `cls` a frozen dataclass and a pytree."""
    own = "__repr__" in vars(cls)
    cls = dataclasses.dataclass(frozen=True, repr=False)(cls)
    if not own:
        cls.__repr__ = words  # pyright: ignore[reportAttributeAccessIssue]
    fields = dataclasses.fields(cls)
    fixed = [field.name for field in fields if field.metadata.get("static", False)]
    free = [field.name for field in fields if field.name not in fixed]
    return jax.tree_util.register_dataclass(cls, data_fields=free, meta_fields=fixed)


def as_tree(function: Callable) -> Any:
    """A function as a pytree: unchanged if it is one already, else wrapped in a `Partial`."""
    return Partial(function) if jax.tree_util.all_leaves([function]) else function


def _by_name(function: Any) -> str:
    """A function with a derivative of its own is copied and pickled by its name, as others are."""
    return function.__qualname__


copyreg.pickle(jax.custom_jvp, _by_name)  # pyright: ignore[reportArgumentType]


def like(value: PyTree, tree: PyTree) -> PyTree:
    """A single number as a tree with the structure of `tree`; any other value unchanged."""
    single = jax.tree_util.all_leaves([value]) and jnp.ndim(value) == 0
    return jax.tree.map(lambda _: value, tree) if single else value


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


class NotKept:
    """What a run with a rule holds in place of its losses; whoever uses it is told what to do."""

    def _refuse(self, *given: Any) -> NoReturn:
        raise TypeError(_NOT_KEPT)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(_NOT_KEPT, name=name)

    def __repr__(self) -> str:
        return "not kept"

    __array__ = __jax_array__ = __getitem__ = __len__ = __iter__ = __float__ = _refuse
    __add__ = __sub__ = __mul__ = __truediv__ = __radd__ = __rsub__ = __rmul__ = _refuse


_NOT_KEPT = (
    "run.losses: the losses of single rounds were not kept, since `keep` was given; `run.total` is "
    "their sum, `run.curve.total` the cumulative loss at the rounds `run.curve.at`. Play without "
    "`keep` to have them all."
)
NOT_KEPT = NotKept()
jax.tree_util.register_pytree_node(NotKept, lambda _: ((), None), lambda *_: NOT_KEPT)
