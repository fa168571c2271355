"""Find the object that a name in a config stands for.

There is no list of names: a name is an attribute of a public module of olx. If several modules have
the name, such as `adagrad`, the function with the right return type is taken; a dotted name, such
as `regularizers.adagrad`, is unique. A name with a colon, such as `mypackage.module:factory`, is
imported: see `olx.lab.outside`. `optax.adam` is an optimizer of optax: see `olx.lab.optimizers`.
"""

import inspect
import types
from collections.abc import Iterator, Mapping
from typing import Any

import olx
from olx.convex import norms, sets
from olx.core import Learner
from olx.frameworks import hints
from olx.lab import optimizers, outside
from olx.lab.refusals import ConfigError, nearest
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
LOSS = (ScoreLoss, PointLoss, PartsLoss, types.FunctionType)


def factories(*kinds: type) -> Iterator[tuple[str, Any]]:
    """The public functions that return one of `kinds`, with their names in configs."""
    for prefix, module in MODULES.items():
        for name, thing in sorted(vars(module).items()):
            if inspect.isfunction(thing) and not name.startswith("_") and _gives(thing, kinds):
                yield (f"{prefix}.{name}" if prefix else name), thing


def find(where: str, name: str, *kinds: type) -> Any:
    """The object called `name` that is, or returns, one of `kinds`."""
    if ":" in name:
        return checked(where, name, outside.find(where, name), kinds)
    if Learner in kinds and optimizers.is_named(name):
        return optimizers.find(where, name)
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


def checked(where: str, name: str, thing: Any, kinds: tuple[type, ...]) -> Any:
    """An object outside the library; refuses one that is not, and cannot return, one of `kinds`."""
    own = tuple(filter(is_own, kinds))
    if isinstance(thing, own):
        return thing
    if not callable(thing) or is_own(type(thing)):
        raise ConfigError(
            f"{where}: {name} is a {type(thing).__name__}; name a function that returns a "
            f"{words(kinds)}."
        )
    outside.readable(where, name, thing)
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


def is_count(where: str, table: Mapping[str, Any], axis: str) -> bool:
    """Whether the numbers on this axis are counts, so that each needs its own program.

    table: the learner to which the axis, such as "mirror.q", belongs.
    """
    *path, last = axis.split(".")
    here: Any = table
    for step in path:
        here = here.get(step) if isinstance(here, Mapping) else None
    name = here.get("name") if isinstance(here, Mapping) else here
    if not isinstance(name, str):  # given from Python
        outside.readable(where, "the function", name)
        found = [name]
    elif ":" in name:
        found = [outside.find(".".join([where, *path]), name)]
    elif optimizers.is_named(name):
        found = [optimizers.find(".".join([where, *path]), name)]
    else:
        found = [vars(module).get(name.rpartition(".")[2]) for module in MODULES.values()]
    all_parameters = [parameters(thing) for thing in found if callable(thing)]
    return any(last in each and each[last].annotation is int for each in all_parameters)


def parameters(factory: Any) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(factory, eval_str=True).parameters


def words(kinds: tuple[type, ...]) -> str:
    """The names of `kinds` in a message."""
    known = {"MirrorMap": "mirror map", "ConvexSet": "set", "BoostingRule": "boosting rule"}
    known |= {"ScoreLoss": "loss", "PointLoss": "loss", "PartsLoss": "loss"}
    own = [known.get(kind.__name__, kind.__name__.lower()) for kind in kinds if is_own(kind)]
    return " or ".join(dict.fromkeys(own))


def is_own(kind: type) -> bool:
    return kind.__module__.startswith("olx.")


def _gives(thing: Any, kinds: tuple[type, ...]) -> bool:
    if not inspect.isfunction(thing):
        return isinstance(thing, tuple(filter(is_own, kinds)))
    plain = types.FunctionType in kinds and thing.__module__.startswith("olx.losses")
    return _returns(thing) in kinds or (plain and len(parameters(thing)) == 2)


def _returns(function: Any) -> Any:
    return inspect.signature(function, eval_str=True).return_annotation
