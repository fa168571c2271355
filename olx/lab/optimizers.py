"""Optimizers of optax by name: `optax.adam`, `optax.contrib.prodigy`.

The numbers of an optimizer can be swept. An optimizer decides on a point: `linear = true` makes it
predict.
"""

import functools
import inspect
from typing import Any

import optax
import optax.contrib

from olx.core import Learner
from olx.interop.optax import from_optax
from olx.lab.refusals import ConfigError, nearest

HOMES = {"optax": optax, "optax.contrib": optax.contrib}
_RATES = {"learning_rate", "max_learning_rate"}  # an optimizer takes one of them


def is_named(name: str) -> bool:
    return name.partition(".")[0] == "optax"


def find(where: str, name: str) -> Any:
    """A function with the arguments of the optimizer `name` that returns a learner."""
    if name not in optimizers():
        short = {word.rpartition(".")[2]: word for word in reversed(optimizers())}
        near = nearest(name.rpartition(".")[2], short, "`olx list optimizers` shows all.")
        raise ConfigError(f"{where}: there is no optimizer {name!r}; {near}")
    return optimizers()[name]


@functools.cache
def optimizers() -> dict[str, Any]:
    """Functions that make a learner of each optimizer of optax, by its name in a config."""
    return {
        f"{home}.{name}": _learner(f"{home}.{name}", thing)
        for home, module in HOMES.items()
        for name, thing in sorted(vars(module).items())
        if inspect.isfunction(thing) and _is_optimizer(name, thing)
    }


def _is_optimizer(name: str, thing: Any) -> bool:
    signature = inspect.signature(thing)
    made = str(signature.return_annotation)
    return (
        not name.startswith(("_", "scale_by"))
        and "GradientTransformation" in made
        and bool(_RATES & set(signature.parameters))
    )


def _learner(name: str, factory: Any) -> Any:
    def make(**numbers: Any) -> Learner:
        return from_optax(factory, **numbers)

    signature: Any = inspect.signature(factory, eval_str=True)
    named = [p.replace(kind=p.KEYWORD_ONLY) for p in signature.parameters.values()]
    signature = signature.replace(parameters=named, return_annotation=Learner)
    make.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    make.__name__, make.__doc__ = name, factory.__doc__
    return make
