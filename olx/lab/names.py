"""Find, or make, what a config names: learners, maps, losses and other objects.

There is no list of names: a name is an attribute of a public module of olx. If several modules have
the name, such as `adagrad`, the function with the right return type is taken; a dotted name, such
as `regularizers.adagrad`, is unique. A name with a colon, such as `mypackage.module:factory`, is
imported: see `olx.lab.user_factories`. `optax.adam` is an optimizer of optax, as a learner that
decides on a point.

The arguments are those in the signature of the factory. An annotation says what kind of thing a
name or a table stands for. The annotation `int` marks a count; each count is a separate program.
"""

import functools
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import optax
import optax.contrib
from jax.core import Tracer

import olx
from olx.convex import norms, sets
from olx.core import Learner, Loss
from olx.frameworks import hints
from olx.interop.optax import from_optax
from olx.lab import user_factories
from olx.lab.config import ConfigError, nearest
from olx.lab.experiment import Tree, as_toml, object_name
from olx.losses.points import PointLoss
from olx.losses.score import ScoreLoss
from olx.structured.losses import PartsLoss

MODULES = {
    "": olx,
    "classification": olx.classification,
    "first_order": olx.first_order,
    "second_order": olx.second_order,
    "boosting": olx.boosting,
    "structured": olx.structured,
    "multiclass": olx.multiclass,
    "ranking": olx.ranking,
    "experts": olx.experts,
    "meta": olx.meta,
    "theorems": olx.theorems,
    "mirrors": olx.mirrors,
    "convex": olx.convex,
    "sets": sets,
    "regularizers": olx.regularizers,
    "schedules": olx.schedules,
    "ascents": olx.ascents,
    "games": olx.games,
    "losses": olx.losses,
    "streams": olx.streams,
    "norms": norms,
    "hints": hints,
}
OPTAX = {"optax": optax, "optax.contrib": optax.contrib}
_RATES = {"learning_rate", "max_learning_rate"}  # an optimizer takes one of them
LOSS = (ScoreLoss, PointLoss, PartsLoss, types.FunctionType)
Lift = Callable[[Learner], Learner]
Factory = Callable[..., Any]  # what it returns is in its annotation
_STARRED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_UNTOLD = "; to allow a name, annotate the argument in the factory, such as MirrorMap"
_LOOKED = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)


def factories(*kinds: type) -> Iterator[tuple[str, Factory]]:
    """The public functions that return one of `kinds`, with their names in configs."""
    for prefix, module in MODULES.items():
        for name, thing in sorted(vars(module).items()):
            if inspect.isfunction(thing) and not name.startswith("_") and _gives(thing, kinds):
                yield (f"{prefix}.{name}" if prefix else name), thing


def find(where: str, name: str, *kinds: type) -> Any:
    """The object called `name` that is, or returns, one of `kinds`."""
    if ":" in name:
        return check_object(where, name, user_factories.find(where, name), kinds)
    if Learner in kinds and is_optimizer(name):
        return find_optimizer(where, name)
    prefix, _, last = name.rpartition(".")
    if prefix not in MODULES:
        hint = nearest(prefix, list(filter(None, MODULES)))
        raise ConfigError(f"{where}: there is no module {prefix}; {hint}")
    for module in [MODULES[prefix]] if prefix else MODULES.values():
        if last in vars(module) and _gives(vars(module)[last], kinds):
            return vars(module)[last]
    own = tuple(filter(is_own, kinds))
    values = [word for word, thing in vars(olx.losses).items() if isinstance(thing, own)]
    legal = [word for word, _ in factories(*kinds)] + values
    short = {word.rpartition(".")[2]: word for word in reversed(legal)}
    near = nearest(last, short, "`olx list` shows what there is.")
    raise ConfigError(f"{where}: there is no {words(kinds)} called {name!r}; {near}")


def check_object(where: str, name: str, thing: Any, kinds: tuple[type, ...]) -> Any:
    """An object outside the library; refuses one that is not, and cannot return, one of `kinds`."""
    own = tuple(filter(is_own, kinds))
    if isinstance(thing, own):
        return thing
    if not callable(thing) or is_own(type(thing)):
        raise ConfigError(
            f"{where}: {name} is a {type(thing).__name__}; name a function that returns a "
            f"{words(kinds)}."
        )
    user_factories.readable(where, name, thing)
    if not is_factory(thing, kinds) and len(parameters(thing)) != 2:
        raise ConfigError(
            f"{where}: {name} takes {', '.join(parameters(thing)) or 'no arguments'}; a loss takes "
            "an action and an outcome. A function that returns a loss says so: -> ScoreLoss."
        )
    return thing


def is_factory(thing: Any, kinds: tuple[type, ...]) -> bool:
    """Whether `thing` is a function that returns one of `kinds`, and not itself one of `kinds`."""
    if isinstance(thing, tuple(filter(is_own, kinds))):
        return False
    plain = types.FunctionType in kinds and not inspect.isclass(thing)  # a loss
    return not plain or _returns(thing) in kinds


def is_count(where: str, table: Mapping[str, object], axis: str) -> bool:
    """Whether the numbers on this axis are counts, so that each needs its own program.

    table: the learner to which the axis, such as "mirror.q", belongs.
    """
    *path, last = axis.split(".")
    here: Any = table
    for step in path:
        here = here.get(step) if isinstance(here, Mapping) else None
    name = here.get("name") if isinstance(here, Mapping) else here
    if not isinstance(name, str):  # given from Python
        user_factories.readable(where, "the function", name)
        found = [name]
    elif ":" in name:
        found = [user_factories.find(".".join([where, *path]), name)]
    elif is_optimizer(name):
        found = [find_optimizer(".".join([where, *path]), name)]
    else:
        found = [vars(module).get(name.rpartition(".")[2]) for module in MODULES.values()]
    all_parameters = [parameters(thing) for thing in found if callable(thing)]
    return any(last in each and each[last].annotation is int for each in all_parameters)


def parameters(factory: Factory) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(factory, eval_str=True).parameters


def words(kinds: tuple[type, ...]) -> str:
    """The names of `kinds` in a message."""
    known = {"MirrorMap": "mirror map", "ConvexSet": "set", "BoostingRule": "boosting rule"}
    known |= {"ScoreLoss": "loss", "PointLoss": "loss", "PartsLoss": "loss"}
    own = [known.get(kind.__name__, kind.__name__.lower()) for kind in kinds if is_own(kind)]
    return " or ".join(dict.fromkeys(own))


def is_own(kind: type) -> bool:
    return kind.__module__.startswith("olx.")


def _gives(thing: object, kinds: tuple[type, ...]) -> bool:
    if not inspect.isfunction(thing):
        return isinstance(thing, tuple(filter(is_own, kinds)))
    plain = types.FunctionType in kinds and thing.__module__.startswith("olx.losses")
    return _returns(thing) in kinds or (plain and len(parameters(thing)) == 2)


def _returns(function: Factory) -> object:
    return inspect.signature(function, eval_str=True).return_annotation


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
    name = thing if isinstance(thing, str) else object_name(thing)
    arguments = {key: value for key, value in table.items() if key != "name"}
    linear: Any = False
    grid: Any = None
    if Learner in kinds:
        linear, grid = arguments.pop("linear", False), arguments.pop("grid", None)
    by_name = isinstance(thing, str)
    found = find(where, name, *kinds) if by_name else check_object(where, name, thing, kinds)
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
    factory: Factory,
    arguments: Tree,
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


def _value(where: str, given: Any, hint: object, lift: Lift | None) -> Any:
    if hint == Loss or Loss in typing.get_args(hint):
        return make(where, given, *LOSS)
    if isinstance(given, list) and (member := _member(hint)):
        return tuple(_value(f"{where}.{i}", one, member, lift) for i, one in enumerate(given))
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


def _member(hint: object) -> type | None:
    """X, for an argument that takes a tuple[X, ...] of things that are named, such as learners."""
    for kind in (hint, *typing.get_args(hint)):
        if typing.get_origin(kind) is tuple and isinstance(first := typing.get_args(kind)[0], type):
            return first if is_own(first) else None
    return None


def _to_try(where: str, given: object) -> str:
    """How a config says that several values are to be tried; nothing for a single value."""
    axis = re.fullmatch(r"learners\.\d+\.(.+)", where)
    if axis is None or not isinstance(given, list | Mapping):
        return ""
    name = f'"{axis[1]}"' if "." in axis[1] else axis[1]
    values = json.dumps(given) if isinstance(given, list) else as_toml({"x": given})[4:].strip()
    return f"; to try several values, write grid.{name} = {values}"


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def is_optimizer(name: str) -> bool:
    return name.partition(".")[0] == "optax"


def find_optimizer(where: str, name: str) -> Factory:
    """A function with the arguments of the optimizer `name` that returns a learner."""
    if name not in optimizers():
        short = {word.rpartition(".")[2]: word for word in reversed(optimizers())}
        near = nearest(name.rpartition(".")[2], short, "`olx list optimizers` shows all.")
        raise ConfigError(f"{where}: there is no optimizer {name!r}; {near}")
    return optimizers()[name]


@functools.cache
def optimizers() -> dict[str, Factory]:
    """Functions that make a learner of each optimizer of optax, by its name in a config."""
    return {
        f"{home}.{name}": _optimizer_learner(f"{home}.{name}", thing)
        for home, module in OPTAX.items()
        for name, thing in sorted(vars(module).items())
        if inspect.isfunction(thing) and _is_optimizer(name, thing)
    }


def _is_optimizer(name: str, thing: Factory) -> bool:
    signature = inspect.signature(thing)
    made = str(signature.return_annotation)
    return (
        not name.startswith(("_", "scale_by"))
        and "GradientTransformation" in made
        and bool(_RATES & set(signature.parameters))
    )


def _optimizer_learner(name: str, factory: Factory) -> Factory:
    def make(**numbers: object) -> Learner:
        return from_optax(factory, **numbers)

    signature: Any = inspect.signature(factory, eval_str=True)
    named = [p.replace(kind=p.KEYWORD_ONLY) for p in signature.parameters.values()]
    signature = signature.replace(parameters=named, return_annotation=Learner)
    make.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    make.__name__, make.__doc__ = name, factory.__doc__
    return make
