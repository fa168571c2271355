"""Learners, maps, losses and all else that a config names, made from the public factories of olx.

There is no list of names: a name is an attribute of a public module, and its arguments are those of
its signature. Where several modules have the name, such as `adagrad`, the one that returns what the
argument asks for is meant; a dotted name, such as `regularizers.adagrad`, leaves no choice.
"""

import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

import olx
from olx.convex import norms
from olx.core import Learner
from olx.frameworks import hints
from olx.lab.config import ConfigError, nearest
from olx.losses.points import PointLoss
from olx.losses.score import ScoreLoss

MODULES = {
    "": olx,
    "classification": olx.classification,
    "first_order": olx.first_order,
    "experts": olx.experts,
    "meta": olx.meta,
    "mirrors": olx.mirrors,
    "convex": olx.convex,
    "regularizers": olx.regularizers,
    "schedules": olx.schedules,
    "ascents": olx.ascents,
    "losses": olx.losses,
    "norms": norms,
    "hints": hints,
}
Lift = Callable[[Learner], Learner]
LOSS = (ScoreLoss, PointLoss, types.FunctionType)


def factories(*kinds: type) -> Iterator[tuple[str, Any]]:
    """The public functions that return one of `kinds`, by the name a config may use."""
    for prefix, module in MODULES.items():
        for name, thing in sorted(vars(module).items()):
            if inspect.isfunction(thing) and not name.startswith("_") and _gives(thing, kinds):
                yield (f"{prefix}.{name}" if prefix else name), thing


def make(where: str, given: Any, *kinds: type, lift: Lift | None = olx.linear) -> Any:
    """What a config describes: a name, or a table with a name and arguments.

    kinds: what it must be.
    lift: what `linear = true` makes of a point learner; None where data have no features.
    """
    table: Any = {"name": given} if isinstance(given, str) else given
    if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
        raise ConfigError(f"{where}: give a name, or a table with one, got {given!r}.")
    arguments = {key: value for key, value in table.items() if key != "name"}
    linear: Any = False
    grid: Any = None
    if Learner in kinds:
        linear, grid = arguments.pop("linear", False), arguments.pop("grid", None)
    factory = find(where, table["name"], *kinds)
    if not inspect.isfunction(factory):
        if arguments:
            raise ConfigError(f"{where}: {table['name']} takes no arguments.")
        return factory
    if types.FunctionType in kinds and _return_of(factory) not in kinds:
        return factory  # a loss that is a plain function
    if linear and lift is None:
        raise ConfigError(
            f"{where}.linear: it needs features to be linear in, and these data have none; leave "
            "it out."
        )

    def call(**axes):
        made = _call(where, table["name"], factory, {**arguments, **axes}, lift)
        return lift(made) if linear and lift else made

    if grid is None:
        return call()
    axes = {axis: jnp.asarray(values) for axis, values in grid.items()}
    return olx.batch(call, **olx.grid(**axes))


def find(where: str, name: str, *kinds: type) -> Any:
    """The public thing called `name` that is, or returns, one of `kinds`."""
    prefix, _, last = name.rpartition(".")
    if prefix not in MODULES:
        raise ConfigError(f"{where}: there is no module {prefix}; {nearest(prefix, list(MODULES))}")
    modules = [MODULES[prefix]] if prefix else MODULES.values()
    found = [vars(module)[last] for module in modules if last in vars(module)]
    fitting = [thing for thing in found if _gives(thing, kinds)]
    if fitting:
        return fitting[0]
    legal = [word for word, _ in factories(*kinds)] + _values(*kinds)
    short = {word.rpartition(".")[2]: word for word in reversed(legal)}
    words = [_word(kind) for kind in kinds if kind is not types.FunctionType]
    near = nearest(last, short, "`olx list` shows what there is.")
    raise ConfigError(
        f"{where}: there is no {' or '.join(dict.fromkeys(words))} called {name!r}; {near}"
    )


def is_count(table: Mapping[str, Any], axis: str) -> bool:
    """Whether the numbers on this axis count something, so that another is another program.

    table: the learner that the axis, such as "mirror.q", belongs to.
    """
    *path, last = axis.split(".")
    here: Any = table
    for step in path:
        here = here.get(step) if isinstance(here, Mapping) else None
    name = here.get("name") if isinstance(here, Mapping) else here
    if not isinstance(name, str):
        return False
    named = [vars(module).get(name.rpartition(".")[2]) for module in MODULES.values()]
    signatures = [inspect.signature(thing) for thing in named if inspect.isfunction(thing)]
    return any(last in s.parameters and s.parameters[last].annotation is int for s in signatures)


def _call(where: str, name: str, factory: Any, arguments: dict[str, Any], lift: Lift | None) -> Any:
    parameters = inspect.signature(factory).parameters
    for word in arguments:
        if word not in parameters:
            raise ConfigError(
                f"{where}.{word}: {name} has no such argument; {_near(word, factory)}"
            )
    for word, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty and word not in arguments:
            raise ConfigError(f"{where}: {name} needs the argument {word}.")
    hints_of = typing.get_type_hints(factory)
    made = {w: _value(f"{where}.{w}", v, hints_of.get(w), lift) for w, v in arguments.items()}
    try:
        return factory(**made)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from error


def _value(where: str, given: Any, hint: Any, lift: Lift | None) -> Any:
    kinds = tuple(kind for kind in typing.get_args(hint) or (hint,) if isinstance(kind, type))
    objects = tuple(kind for kind in kinds if _is_own(kind))
    if isinstance(given, Mapping) or (isinstance(given, str) and objects):
        if not objects:
            raise ConfigError(f"{where}: expected a number, got {given!r}.")
        return make(where, given, *objects, lift=lift)
    if isinstance(given, str):
        raise ConfigError(f"{where}: expected a number, got {given!r}.")
    number = bool({int, float} & set(kinds))
    if isinstance(given, list) and not number and not objects:
        return jnp.asarray(given, float)
    if number and (isinstance(given, bool) or not isinstance(given, int | float | jax.Array)):
        hint = "; values to try go under grid" if isinstance(given, list) else ""
        raise ConfigError(f"{where}: expected a number, got {given!r}{hint}.")
    if where.endswith(".key") and isinstance(given, int | Tracer):  # the seed of its draws
        return jax.random.key(given)
    if objects and not number:
        words = " or ".join(_word(kind) for kind in objects)
        raise ConfigError(f"{where}: expected the name of a {words}, got {given!r}.")
    if kinds == (int,) and not isinstance(given, int | Tracer):
        raise ConfigError(f"{where}: expected a whole number, got {given!r}.")
    return given


def _near(word: str, factory: Any) -> str:
    parameters = list(inspect.signature(factory).parameters)
    return nearest(word, parameters) if parameters else "it takes none."


def _gives(thing: Any, kinds: tuple[type, ...]) -> bool:
    if inspect.isfunction(thing):
        known = _return_of(thing) in kinds
        return known or (types.FunctionType in kinds and _is_loss(thing))
    return isinstance(thing, tuple(kind for kind in kinds if _is_own(kind)))


def _is_loss(thing: Any) -> bool:
    return (
        thing.__module__.startswith("olx.losses") and len(inspect.signature(thing).parameters) == 2
    )


def _values(*kinds: type) -> list[str]:
    """Names of things that are no functions, such as the loss `hinge`."""
    own = tuple(kind for kind in kinds if _is_own(kind))
    return [name for name, thing in vars(olx.losses).items() if isinstance(thing, own)]


def _return_of(function: Any) -> Any:
    return typing.get_type_hints(function).get("return")


def _is_own(kind: type) -> bool:
    return kind.__module__.startswith("olx.")


def _word(kind: type) -> str:
    return {"MirrorMap": "mirror map", "ScoreLoss": "loss", "PointLoss": "loss"}.get(
        kind.__name__, kind.__name__.lower()
    )
