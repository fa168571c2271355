"""Make learners, maps, losses and other things that a config describes by name and arguments.

The arguments are those in the signature of the factory. An annotation says what kind of thing a
name or a table stands for. The annotation `int` marks a count; each count is a separate program.
"""

import inspect
import json
import re
import typing
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

import olx
from olx.core import Learner, Loss
from olx.lab import _toml
from olx.lab.names import LOSS, checked, find, is_factory, is_own, parameters, words
from olx.lab.refusals import ConfigError, nearest
from olx.lab.spelled import spelled

Lift = Callable[[Learner], Learner]
_STARRED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_UNTOLD = "; to allow a name, annotate the argument in the factory, such as MirrorMap"
_LOOKED = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)


def make(where: str, given: Any, *kinds: type, lift: Lift | None = olx.linear) -> Any:
    """Make what a config describes by a name, or by a table with a name and arguments.

    Python code may give a function, or the thing itself, in place of a name.

    kinds: the types allowed.
    lift: applied to a point learner for `linear = true`; None if the data have no features.
    """
    table: Any = given if isinstance(given, Mapping) else {"name": given}
    thing = table.get("name")
    if not isinstance(thing, (str, *kinds)) and not callable(thing):
        raise ConfigError(f"{where}: give a name, or a table with one, got {given!r}.")
    name = thing if isinstance(thing, str) else spelled(thing)
    arguments = {key: value for key, value in table.items() if key != "name"}
    linear: Any = False
    grid: Any = None
    if Learner in kinds:
        linear, grid = arguments.pop("linear", False), arguments.pop("grid", None)
    by_name = isinstance(thing, str)
    found = find(where, name, *kinds) if by_name else checked(where, name, thing, kinds)
    if not is_factory(found, kinds) and (arguments or grid):
        raise ConfigError(f"{where}: {name} takes no arguments.")
    if linear and lift is None:
        raise ConfigError(
            f"{where}.linear: it needs features, and these data have none; leave it out."
        )

    def call(**axes):
        made = found
        if is_factory(found, kinds):
            made = _call(where, name, found, {**arguments, **axes}, kinds, lift)
        return lift(made) if linear and lift else made

    if grid is None:
        return call()
    axes = {axis: jnp.asarray(values) for axis, values in grid.items()}
    return olx.batch(call, **olx.grid(**axes))


def _call(
    where: str,
    name: str,
    factory: Any,
    arguments: dict[str, Any],
    kinds: tuple[type, ...],
    lift: Lift | None,
) -> Any:
    known = parameters(factory)
    more = {each.kind: word for word, each in known.items()}.get(inspect.Parameter.VAR_KEYWORD)
    named = [word for word, each in known.items() if each.kind not in _STARRED]
    for word in arguments:
        if word not in named and more is None:
            near = nearest(word, named) if named else "it takes none."
            raise ConfigError(f"{where}.{word}: {name} has no such argument; {near}")
    for word in named:
        if known[word].default is inspect.Parameter.empty and word not in arguments:
            raise ConfigError(f"{where}: {name} needs the argument {word}.")
    hints = {word: known[word].annotation for word in named}
    given = {w: _value(f"{where}.{w}", v, hints.get(w), lift) for w, v in arguments.items()}
    try:
        made = factory(**given)
    except _LOOKED as error:
        raise ConfigError(
            f"{where}: {name} looks at a number that the grid sweeps; choose by jnp.where, or "
            "annotate a count as int."
        ) from error
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from error
    except Exception as error:
        if ":" not in name:
            raise
        raise ConfigError(f"{where}: {name} failed: {type(error).__name__}: {error}.") from error
    if not isinstance(made, kinds):
        raise ConfigError(
            f"{where}: {name} returned a {type(made).__name__}; it must return a {words(kinds)}."
        )
    return made


def _value(where: str, given: Any, hint: Any, lift: Lift | None) -> Any:
    if hint == Loss or Loss in typing.get_args(hint):
        return make(where, given, *LOSS)
    kinds = tuple(kind for kind in typing.get_args(hint) or (hint,) if isinstance(kind, type))
    objects = tuple(kind for kind in kinds if is_own(kind))
    if objects and isinstance(given, objects):  # made from the data
        return given
    if isinstance(given, str) and str in kinds:
        return given
    numeric = bool({int, float} & set(kinds))
    if isinstance(given, str) and numeric and _is_number(given):
        raise ConfigError(f"{where}: expected a number, got {given!r}; leave out the quotes.")
    if isinstance(given, Mapping) and len(given) == 1 and "name" not in given:
        raise ConfigError(f"{where}: give one value, got {given!r}{_to_try(where, given)}.")
    if isinstance(given, str | Mapping) or (objects and callable(given)):
        if not objects:
            hint = _UNTOLD if hint in (None, inspect.Parameter.empty) else ""
            raise ConfigError(f"{where}: expected a number, got {given!r}{hint}.")
        return make(where, given, *objects, lift=lift)
    is_key = where.endswith(".key")
    if isinstance(given, list) and not numeric and not objects and not is_key:
        return jnp.asarray(given, float)
    if numeric and (isinstance(given, bool) or not isinstance(given, int | float | jax.Array)):
        raise ConfigError(f"{where}: expected a number, got {given!r}{_to_try(where, given)}.")
    if is_key and isinstance(given, int | Tracer):  # the seed of a random key
        return jax.random.key(given)
    if is_key and isinstance(given, float | list | bool):
        raise ConfigError(f"{where}: give a seed, a whole number, got {given!r}.")
    if kinds == (str,):
        raise ConfigError(f"{where}: expected a word, got {given!r}.")
    if objects and not numeric:
        hint = _to_try(where, given)
        raise ConfigError(f"{where}: expected the name of a {words(objects)}, got {given!r}{hint}.")
    if kinds == (int,) and not isinstance(given, int | Tracer):
        raise ConfigError(f"{where}: expected a whole number, got {given!r}.")
    return given


def _to_try(where: str, given: Any) -> str:
    """How a config says that several values are to be tried; nothing for a single value."""
    axis = re.fullmatch(r"learners\.\d+\.(.+)", where)
    if axis is None or not isinstance(given, list | Mapping):
        return ""
    name = f'"{axis[1]}"' if "." in axis[1] else axis[1]
    values = json.dumps(given) if isinstance(given, list) else _toml.dumps({"x": given})[4:].strip()
    return f"; to try several values, write grid.{name} = {values}"


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
