"""All about one name that a config may use: arguments, defaults, rule, theorem, example."""

import inspect
from collections.abc import Iterator
from typing import Any, NamedTuple

import olx
from olx.boosting.boost import BoostingRule
from olx.convex.sets import ConvexSet
from olx.core import Learner, Process
from olx.frameworks.ascents.base import Ascent
from olx.lab.config import ConfigError, nearest
from olx.lab.data import catalogue
from olx.lab.data.generated import generators
from olx.lab.names import LOSS, factories, parameters
from olx.lab.optimizers import optimizers
from olx.lab.tasks import METRICS, TASKS
from olx.mirrors.base import MirrorMap
from olx.theorem import Theorem

KINDS = {
    Learner: "learner",
    MirrorMap: "mirror map",
    ConvexSet: "set",
    Process: "regularizer or schedule",
    Ascent: "dual ascent rule",
    BoostingRule: "boosting rule",
    Theorem: "theorem",
}


class Named(NamedTuple):
    """Something that a config may name."""

    name: str
    kind: str
    thing: Any


def about(asked: str, lists: list[str]) -> str:
    """What the name `asked` stands for; a short name stands for all that end in it.

    lists: the names of lists, for a hint.
    """
    every = list(_every())
    found = [one for one in every if one.name == asked]
    found = found or [one for one in every if one.name.rpartition(".")[2] == asked]
    if not found:
        names = {one.name.rpartition(".")[2]: one.name for one in reversed(every)}
        legal = {word: word for word in lists} | {n: n for n in names.values()} | names
        hint = nearest(asked, legal, "`olx list` shows what there is.")
        raise ConfigError(f"there is no list of {asked}; {hint}")
    seen: dict[int, Named] = {}
    for one in found:
        seen.setdefault(id(one.thing), one)
    return "\n\n".join(_page(one) for one in seen.values())


def _every() -> Iterator[Named]:
    for kind, word in KINDS.items():
        yield from (Named(name, word, thing) for name, thing in factories(kind))
    yield from (Named(name, "optimizer of optax", make) for name, make in optimizers().items())
    for name, thing in sorted(vars(olx.losses).items()):
        if isinstance(thing, LOSS) and not name.startswith("_"):
            yield Named(name, "loss", thing)
    yield from (Named(name, "metric", metric) for name, metric in METRICS.items())
    yield from (Named(name, "data set", entry) for name, entry in catalogue().items())
    yield from (Named(name, "stream", make) for name, make in generators().items())


def _page(one: Named) -> str:
    if one.kind == "data set":
        entry = one.thing
        text = f"{entry.what} (task {entry.task})"
        return _joined(one, text, f'[[data]]\nname = "{one.name}"')
    if one.kind == "metric":
        tasks = [name for name, task in TASKS.items() if one.thing in task.metrics]
        text = f"{inspect.getdoc(one.thing.round) or ''}\n\nFor {', '.join(tasks)} data."
        return _joined(one, text, f'metrics = ["{one.name}"]')
    if not inspect.isfunction(one.thing):
        made: Any = one.thing
        text = inspect.getdoc(made.value_fn) or inspect.getdoc(inspect.getmodule(made.value_fn))
        return _joined(one, text or "", f'loss = "{one.name}"')
    rule = "" if one.kind == "optimizer of optax" else inspect.getdoc(inspect.getmodule(one.thing))
    parts = [_arguments(one.thing), inspect.getdoc(one.thing) or "", rule or "", _theorems(one)]
    return _joined(one, "\n\n".join(part for part in parts if part), _config(one))


def _joined(one: Named, text: str, config: str) -> str:
    shown = "\n".join(f"  {line}" for line in config.splitlines())
    return "\n\n".join([f"{one.name}: {one.kind}", text.strip(), f"In a config:\n\n{shown}"])


def _arguments(function: Any) -> str:
    known = parameters(function)
    if not known:
        return "It takes no arguments."
    width = max(map(len, known)) + 2
    default = lambda each: "must be given" if each.default is each.empty else _shown(each.default)
    lines = [f"  {name:<{width}}{default(each)}" for name, each in known.items()]
    return "\n".join(["Arguments and their defaults:", *lines])


def _theorems(one: Named) -> str:
    module = inspect.getmodule(one.thing)
    found = [each for each in vars(module).values() if isinstance(each, Theorem)]
    if one.kind != "learner" or not found:
        return ""
    lines = dict.fromkeys(f"  {each.name}: {each.source}" for each in found)
    return "\n".join(["Theorems that `olx certify` checks:", *lines])


def _config(one: Named) -> str:
    """How a config names it; arguments without a default are left open."""
    skipped = ("key",) if one.kind == "stream" else ()
    known = parameters(one.thing)
    needed = [n for n, each in known.items() if each.default is each.empty and n not in skipped]
    table = ", ".join([f'name = "{one.name}"', *(f"{name} = ..." for name in needed)])
    lines = "\n".join([f'name = "{one.name}"', *(f"{name} = ..." for name in needed)])
    if one.kind in ("learner", "optimizer of optax"):
        return f"[[learners]]\n{lines}"
    if one.kind == "stream":
        inside = ", ".join(f"{name} = ..." for name in needed)
        return f'[[data]]\nname = "{one.name}"\narguments = {{ {inside} }}'
    if one.kind == "theorem":
        return f"theorems = [{{ {table} }}]  # of a learner"
    if one.kind == "loss":
        return f'loss = "{one.name}"' if len(needed) == 2 else f"loss = {{ {table} }}"
    return f"{{ {table} }}  # as the argument of a learner"


def _shown(default: Any) -> str:
    return f"function {default.__name__}" if inspect.isfunction(default) else repr(default)
