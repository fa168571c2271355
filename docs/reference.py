"""The pages made from the code: one per file that defines public factories, and one per module.

Signatures, docstrings and fields are written by mkdocstrings; see `docs.docstrings`. Every public
name is shown once: a factory on the page of its file, all else on the page of its module.
"""

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from jax.tree_util import Partial

from docs.public import Name, factories, rooms
from olx.theorem import Theorem

GROUPS = {
    "olx.frameworks": "Frameworks",
    "olx.ascents": "Dual ascent rules",
    "olx.games": "Repeated games",
    "olx.classification": "Classification",
    "olx.multiclass": "Multiclass",
    "olx.ranking": "Ranking",
    "olx.structured": "Structured outputs",
    "olx.alignment": "Alignment",
    "olx.first_order": "First order",
    "olx.second_order": "Second order",
    "olx.experts": "Experts and bandits",
    "olx.boosting": "Boosting",
    "olx.meta": "Learners made of learners",
    "olx.layers": "Learners as layers",
    "olx.interop.equinox": "Layers of equinox",
    "olx.interop.flax": "Layers of flax",
    "olx.interop.optax": "Optimizers of optax",
    "olx.interop.sklearn": "Estimators of scikit-learn",
    "olx.interop.river": "Estimators of river",
    "olx.mirrors": "Mirror maps",
    "olx.regularizers": "Regularizers",
    "olx.schedules": "Schedules",
    "olx.losses": "Losses",
    "olx.streams": "Streams and adversaries",
    "olx.hindsight": "Hindsight",
    "olx.tune": "Tuning",
    "olx.convex": "Convex tools",
}
_ENTRY = """::: {0}
    options:
      heading: {1}
      toc_label: {2}
      heading_level: {3}
"""
_HEAD = """::: {0}
    options:
      members: []
      show_root_heading: false
      show_root_toc_entry: false
"""


class Page(NamedTuple):
    group: str  # a key of GROUPS
    module: str
    names: list[Name]

    @property
    def label(self) -> str:
        return self.module.rpartition(".")[2].replace("_", " ")

    @property
    def file(self) -> str:
        room = self.group.removeprefix("olx.")
        return f"algorithms/{room}/{self.module.rpartition('.')[2]}.md"


def algorithms() -> list[Page]:
    """The pages of all files, group by group, each group in the order of its file names."""
    found: dict[tuple[str, str], list[Name]] = {}
    for room, public in rooms().items():
        for one in factories(public):
            if (group := group_of(room, one)) is not None:
                found.setdefault((group, one.module), []).append(one)
    order = {group: i for i, group in enumerate(GROUPS)}
    keys = sorted(found, key=lambda key: (order[key[0]], key[1]))
    return [Page(group, module, found[group, module]) for group, module in keys]


def group_of(room: str, one: Name) -> str | None:
    """The group of a name; None for drivers, records and checks."""
    if room == "olx":
        return "olx.frameworks" if one.module.startswith("olx.frameworks.") else None
    if room == "olx.theorems":  # a theorem is stated on the page of its rule
        return ".".join(one.module.split(".")[:2])
    room = "olx.convex" if room == "olx.convex.sets" else room
    return room if room in GROUPS else None


def places(made: list[Page]) -> dict[str, str]:
    """The page, with an anchor, of every public name as users type it, and of every module."""
    homes = {one.path: f"{page.file}#{one.path}" for page in made for one in page.names}
    found = {room: f"reference/{room}.md" for room in rooms()}
    for room, public in rooms().items():
        for one in public:
            found[one.typed] = homes.setdefault(one.path, f"reference/{room}.md#{one.path}")
    modules = {page.module: page.file for page in made}
    return modules | found  # a factory may be called like its file


def write(folder: Path, made: list[Page]) -> list[str]:
    """Write all pages into `folder`; gives those of the modules."""
    where = places(made)
    texts = {page.file: algorithm(page) for page in made}
    texts["algorithms/index.md"] = index(made)
    texts |= {f"reference/{room}.md": module(room, where) for room in rooms()}
    for file, text in texts.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [f"reference/{room}.md" for room in rooms()]


def algorithm(page: Page) -> str:
    """The page of a file: rule and theorem, factories, theorems as code, state."""
    module = importlib.import_module(page.module)
    parts = [
        f"# `{page.module.rpartition('.')[2]}`",
        _HEAD.format(page.module),
        *(_entry(one, 2) + _constants(one) for one in page.names),
        _theorems(module),
        _states(module),
        f"Source: `{page.module.replace('.', '/')}.py`",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def index(made: list[Page]) -> str:
    """The list of all factories, by group."""
    lines = ["# Algorithms", "", "Each page states the rule, its theorem, and how to call it.", ""]
    for group, title in GROUPS.items():
        own = [one for page in made if page.group == group for one in page.names]
        if own:
            lines += ["", f"## {title}", "", *_table(own, places(made), "../")]
    return "\n".join(lines) + "\n"


def module(room: str, where: dict[str, str]) -> str:
    """The page of a module: its records and functions, and links to its algorithms."""
    path = re.sub(r"olx\.(ascents|games)", r"olx.frameworks.\1", room)
    about = inspect.getdoc(importlib.import_module(path)) or ""
    own = [one for one in rooms()[room] if where[one.typed] == f"reference/{room}.md#{one.path}"]
    parts = [f"# {room}", about.split("\n\n")[0]]
    for title, classes in (("Records", True), ("Functions", False)):
        shown = [one for one in own if inspect.isclass(one.thing) == classes]
        if shown:
            parts += [f"## {title}", *(_entry(one, 3) for one in shown)]
    elsewhere = [one for one in rooms()[room] if one not in own]
    if elsewhere:
        parts += ["## On pages of their own", "\n".join(_table(elsewhere, where, "../"))]
    return "\n\n".join(parts) + "\n"


def _table(names: list[Name], where: dict[str, str], up: str) -> list[str]:
    rows = [
        f"| [`{one.typed}`]({up}{where[one.typed]}) | {_first_sentence(one)} |" for one in names
    ]
    return ["| name | what it is |", "|---|---|", *rows]


def _constants(one: Name) -> str:
    """What theory knows about a loss."""
    values = {name: getattr(one.thing, name, None) for name in ("lipschitz", "self_bound")}
    known = [f"`{name} = {float(v):g}`" for name, v in values.items() if v is not None]
    return f"\n\nConstants in the score: {' and '.join(known)}." if known else ""


def _theorems(module: ModuleType) -> str:
    carried = [thing for thing in vars(module).values() if isinstance(thing, Theorem)]
    own = dict.fromkeys((one.name, one.source) for one in carried if _proved_in(one, module))
    rows = [f"| `{name}` | {source} |" for name, source in own]
    head = "## Theorems that run\n\n`olx.certify` evaluates both sides after every round.\n\n"
    return head + "\n".join(["| name | source |", "|---|---|", *rows]) if own else ""


def _proved_in(one: Theorem, module: ModuleType) -> bool:
    """Whether a function of the theorem is defined there."""
    parts = [one.init_fn, one.add_fn, one.sides_fn]
    while parts:
        part = parts.pop()
        if getattr(part, "__module__", "") == module.__name__:
            return True
        parts += [part.func, *part.args] if isinstance(part, Partial) else []
    return False


def _states(module: ModuleType) -> str:
    public = {one.path for names in rooms().values() for one in names}
    kept = [
        name
        for name, thing in vars(module).items()
        if inspect.isclass(thing) and thing.__module__ == module.__name__
        if name.endswith(("State", "Stats")) and not name.startswith("_")
        if getattr(thing, "__annotations__", None) and f"{module.__name__}.{name}" not in public
    ]
    entries = [_ENTRY.format(f"{module.__name__}.{name}", name, name, 3) for name in kept]
    return "\n\n".join(["## What it keeps between rounds", *entries]) if kept else ""


def _entry(one: Name, level: int) -> str:
    return _ENTRY.format(one.path, one.typed, one.name, level)


def _first_sentence(one: Name) -> str:
    line = " ".join((inspect.getdoc(one.thing) or "").split("\n\n")[0].split())
    first = re.split(r"(?<=[.;:])\s", line + " ")[0].rstrip(";:. ")
    return first.replace("|", "\\|") + "." if line else ""
