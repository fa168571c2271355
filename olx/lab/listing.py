"""The names that a config may use, for a terminal: `olx list`.

Formulas of docstrings are LaTeX; here they become plain text, such as `sum_t <g_t, w_t>`.
"""

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import olx
from olx.boosting.boost import BoostingRule
from olx.convex.sets import ConvexSet
from olx.core import Learner, Process
from olx.frameworks.ascents.base import Ascent
from olx.frameworks.games import Game, HingeRule
from olx.lab.config import ConfigError, nearest
from olx.lab.data import catalogue
from olx.lab.data.given import generators
from olx.lab.names import LOSS, MODULES, factories, optimizers, parameters
from olx.lab.tasks.metrics import Metric
from olx.lab.tasks.task import ALL_METRICS, TASKS
from olx.mirrors.base import MirrorMap
from olx.theorem import Theorem

WIDTH = 120  # columns of a terminal
KINDS = {
    Learner: "learner",
    MirrorMap: "mirror map",
    ConvexSet: "set",
    Process: "regularizer or schedule",
    Ascent: "dual ascent rule",
    BoostingRule: "boosting rule",
    Theorem: "theorem",
}
PLUMBING = ("batch", "affine", "linear", "model", "experts.expert_learner")  # no learners
Rows = Iterable[tuple[str, str]]  # names, with a line about each


def listing(what: str | None) -> str:
    """The names that a config may use: all, of one kind, or all about one name."""
    kinds: dict[str, Callable[[], Rows]] = {
        "learners": lambda: _functions(Learner),
        "optimizers": lambda: ((name, _line(make)) for name, make in optimizers().items()),
        "maps": lambda: _functions(MirrorMap),
        "sets": lambda: _functions(ConvexSet),
        "regularizers": lambda: _processes("regularizers"),
        "schedules": lambda: _processes("schedules"),
        "ascents": lambda: _functions(Ascent),
        "games": lambda: (*_functions(Game), *_functions(HingeRule)),
        "rules": lambda: _functions(BoostingRule),
        "losses": lambda: ((one.name, _loss_line(one.thing)) for one in _losses()),
        "theorems": lambda: _theorems(),
        "metrics": lambda: ((one.name, _metric_line(one)) for one in ALL_METRICS),
        "data": lambda: ((e.name, f"{e.task}: {e.what}") for e in catalogue().values()),
        "streams": lambda: ((name, _line(made)) for name, made in generators().items()),
    }
    asked = [*kinds] if what is None else [what]
    if what is not None and what not in kinds:
        if what not in MODULES or not what:
            return _about(what, [*kinds, *filter(None, MODULES)])
        kinds[what] = lambda: _functions_of(what)
    return "\n\n".join("\n".join([f"{kind}:", *_lines(kinds[kind]())]) for kind in asked)


def _lines(rows: Rows) -> Iterator[str]:
    """Names, and beside them a line about each, in at most `WIDTH` columns."""
    rows = list(rows)
    width = min(max(len(name) for name, _ in rows), 48)
    for name, line in rows:
        first = f"  {name:<{width}}  "
        if len(first) > width + 4:  # a long name has its own line
            yield first.rstrip()
            first = " " * (width + 4)
        later = " " * (width + 4)
        text = textwrap.wrap(line, WIDTH, initial_indent=first, subsequent_indent=later)
        yield from text or [first.rstrip()]


def _functions(kind: type) -> Iterator[tuple[str, str]]:
    seen = set()
    for name, function in factories(kind):
        if function not in seen and name not in PLUMBING:
            seen.add(function)
            yield name, _line(function)


def _functions_of(module: str) -> Iterator[tuple[str, str]]:
    for name, thing in sorted(vars(MODULES[module]).items()):
        if inspect.isfunction(thing) and not name.startswith("_"):
            yield f"{module}.{name}", _line(thing)


def _processes(module: str) -> Iterator[tuple[str, str]]:
    return ((n, line) for n, line in _functions(Process) if n.startswith(f"{module}."))


def _theorems() -> Iterator[tuple[str, str]]:
    """Theorems by name, with source and learners; those with arguments are tables of a config."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for path, module in sorted(sys.modules.items()):
        is_page = path.startswith("olx.") and not hasattr(module, "__path__")
        for one in vars(module).values() if is_page else ():
            if isinstance(one, Theorem):
                about = one.about.learners if one.about else path.removeprefix("olx.")
                found.setdefault((one.name, one.source), {})[about] = None
    yield from ((name, f"{source}; about {', '.join(a)}") for (name, source), a in found.items())
    for name, function in factories(Theorem):
        yield f"{name}({', '.join(parameters(function))})", _line(function)


def _line(function: Callable[..., object]) -> str:
    text = inspect.getdoc(function) or inspect.getdoc(inspect.getmodule(function)) or ""
    return " ".join(plain_text(text.split("\n\n")[0]).split())


def _loss_line(loss: Any) -> str:
    return _line(loss if inspect.isfunction(loss) else loss.value_fn)


class Named(NamedTuple):
    """Something that a config may name."""

    name: str
    kind: str
    thing: Any


def _about(asked: str, lists: list[str]) -> str:
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
    yield from _losses()
    yield from (Named(metric.name, "metric", metric) for metric in ALL_METRICS)
    yield from (Named(name, "data set", entry) for name, entry in catalogue().items())
    yield from (Named(name, "stream", make) for name, make in generators().items())


def _losses() -> Iterator[Named]:
    for name, thing in sorted(vars(olx.losses).items()):
        if isinstance(thing, LOSS) and not name.startswith("_"):
            yield Named(name, "loss", thing)


def _metric_line(metric: Metric) -> str:
    return f"{_line(metric.definition)} For {', '.join(_tasks_with(metric))}."


def _tasks_with(metric: Metric) -> list[str]:
    return [name for name, task in TASKS.items() if metric in task.metrics]


def _page(one: Named) -> str:
    if one.kind == "data set":
        entry = one.thing
        text = f"{entry.what} (task {entry.task})"
        return _joined(one, text, f'[[data]]\nname = "{one.name}"')
    if one.kind == "metric":
        about = inspect.getdoc(one.thing.definition) or ""
        text = f"{about}\n\nFor {', '.join(_tasks_with(one.thing))} data."
        needed = f'{{ name = "{one.name}", q = 0.9 }}' if one.thing.takes_loss else f'"{one.name}"'
        return _joined(one, text, f"metrics = [{needed}]")
    if not inspect.isfunction(one.thing):
        made: Any = one.thing
        text = inspect.getdoc(made.value_fn) or inspect.getdoc(inspect.getmodule(made.value_fn))
        return _joined(one, text or "", f'loss = "{one.name}"')
    about, rule = inspect.getdoc(one.thing) or "", inspect.getdoc(inspect.getmodule(one.thing))
    if one.kind == "optimizer of optax":  # the rest is for the pages of optax
        about, rule = about.split("\n\n")[0], ""
    parts = [_arguments(one.thing), about, rule or "", _own_theorems(one)]
    return _joined(one, "\n\n".join(part for part in parts if part), _example(one))


def _joined(one: Named, text: str, config: str) -> str:
    shown = "\n".join(f"  {line}" for line in config.splitlines())
    return "\n\n".join(
        [f"{one.name}: {one.kind}", plain_text(text).strip(), f"In a config:\n\n{shown}"]
    )


def _arguments(function: Any) -> str:
    known = parameters(function)
    if not known:
        return "It takes no arguments."
    width = max(map(len, known)) + 2
    default = lambda each: "must be given" if each.default is each.empty else _shown(each.default)
    lines = [f"  {name:<{width}}{default(each)}" for name, each in known.items()]
    return "\n".join(["Arguments and their defaults:", *lines])


def _own_theorems(one: Named) -> str:
    module = inspect.getmodule(one.thing)
    found = [each for each in vars(module).values() if isinstance(each, Theorem)]
    if one.kind != "learner" or not found:
        return ""
    lines = dict.fromkeys(f"  {each.name}: {each.source}" for each in found)
    return "\n".join(["Theorems that `olx certify` checks:", *lines])


def _example(one: Named) -> str:
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


_PART = r"(?:{((?:[^{}]|(?<=\\)[{}])*)}|(\\[a-zA-Z]+|\w))"
_FRACTION = re.compile(rf"\\[td]?frac *{_PART} *{_PART}")
_ROOT = re.compile(r"\\sqrt *(?:{([^{}]*)}|(\\?\w+))")
_INDEX = re.compile(r"([_^])\s*{([^{}]*)}")
_WRAPPED = re.compile(r"\\(?:text|mathrm|mathbb|mathcal|operatorname|begin|end)\*? *{([^{}]*)}")
_GONE = re.compile(r"\\(?:left|right|[Bb]igg?[lr]?|textstyle|displaystyle|limits)(?![a-z])")
_SIGNS = {
    r"\|": "||", r"\le": "<=", r"\ge": ">=", r"\ne": "!=",
    r"\in": " in ", r"\notin": " not in ", r"\pm": "+-", r"\cdot": "*", r"\times": "x",
    r"\top": "T", r"\dots": "...", r"\leftarrow": "<-", r"\to": "->", r"\mapsto": "->",
    r"\ell": "loss", r"\nabla": "grad ", r"\infty": "inf", r"\partial": "d", r"\mid": "|",
    r"\propto": " proportional to ", r"\sim": "~", r"\approx": "~", r"\preceq": "<=",
    r"\qquad": "    ", r"\quad": "  ", r"\,": " ", r"\;": " ", "\\ ": " ", r"\!": "",
    r"\{": "{", r"\}": "}", r"\#": "#", r"\%": "%", "\\\\": "\n", "&": "",
}  # fmt: skip


def plain_text(text: str) -> str:
    r"""A docstring with its formulas in plain text.

    >>> plain_text(r"Steps $\eta_t = \frac{1}{\sqrt{t+1}}$ for $\|w\|_2 \le D$.")
    'Steps eta_t = 1/sqrt(t+1) for ||w||_2 <= D.'
    """
    return re.sub(r"\$\$(.+?)\$\$|\$(.+?)\$", lambda m: _plain_math(m[1] or m[2]), text, flags=re.S)


def _plain_math(tex: str) -> str:
    before, tex = "", _GONE.sub("", tex)
    while tex != before:  # from the inner braces to the outer ones
        before = tex
        tex = _WRAPPED.sub(r" \1 ", tex)
        tex = _ROOT.sub(lambda m: f"sqrt({m[1] or m[2]})", tex)
        tex = _FRACTION.sub(lambda m: f"{_group(m[1] or m[2])}/{_group(m[3] or m[4])}", tex)
        tex = _INDEX.sub(lambda m: m[1] + _group(m[2]), tex)
        if tex == before:
            tex = re.sub(r"(?<!\\){([^{}]*)(?<!\\)}", r"\1", tex)
    sign = lambda m: str(_SIGNS.get(m[0], m[0][1:]))
    tex = re.sub(r"\s*\\rangle", ">", re.sub(r"\\langle\s*", "<", tex))
    tex = re.sub(r"\\[A-Za-z]+|\\.|&", sign, tex, flags=re.S)
    return re.sub(r"(?<=\S) {2,3}(?=\S)", " ", tex)


def _group(part: str) -> str:
    """A part of a formula, in brackets unless it is one word or call."""
    part = part.strip()
    return part if re.fullmatch(r"\\?\w*(\([^()]*\))?|\\top|\*", part) else f"({part})"
