"""One page per file of the library that defines public factories, and an index of all of them."""

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from jax.tree_util import Partial

from docs.docstrings import linked, markdown
from docs.fields import fields, tabulated
from docs.public import Name, factories, rooms
from docs.signatures import signature
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


def pages() -> list[Page]:
    """All pages, group by group, each group in the order of its file names."""
    found: dict[tuple[str, str], list[Name]] = {}
    for room, public in rooms().items():
        for one in factories(public):
            if (group := group_of(room, one)) is not None:
                found.setdefault((group, one.module), []).append(one)
    order = {group: i for i, group in enumerate(GROUPS)}
    keys = sorted(found, key=lambda key: (order[key[0]], key[1]))
    return [Page(group, module, found[group, module]) for group, module in keys]


def group_of(room: str, one: Name) -> str | None:
    """The group of a name; None for drivers, records and checks, which the reference shows."""
    if room == "olx":
        return "olx.frameworks" if one.module.startswith("olx.frameworks.") else None
    if room == "olx.theorems":  # a theorem is stated on the page of its rule
        return ".".join(one.module.split(".")[:2])
    room = "olx.convex" if room == "olx.convex.sets" else room
    return room if room in GROUPS else None


def write(folder: Path, made: list[Page], plots: dict[str, str]) -> None:
    """Write all pages and the index into `folder`.

    plots: the Markdown of a picture, by module.
    """
    where = places(made)
    for page in made:
        path = folder / page.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(page, where, plots.get(page.module, "")))
    (folder / "algorithms/index.md").write_text(index(made))


def places(made: list[Page]) -> dict[str, str]:
    """The page and the anchor of every public factory, by its name; the page of every file."""
    files = {page.module: page.file for page in made}
    return files | {one.typed: f"{page.file}#{_anchor(one)}" for page in made for one in page.names}


def text(page: Page, where: dict[str, str], plot: str = "") -> str:
    """The Markdown of one page: rule and theorem, factories, theorems as code, state."""
    module = importlib.import_module(page.module)
    target = _target(page, where)
    source = f"{page.module.replace('.', '/')}.py"
    parts = [
        f"# `{page.module.rpartition('.')[2]}`",
        linked(markdown(inspect.getdoc(module) or "", arguments=False), target),
        plot,
        *(_factory(one, target) for one in page.names),
        _theorems(module),
        _states(module),
        f"Source: `{source}`",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def index(made: list[Page]) -> str:
    """The list of all factories, by group."""
    lines = ["# Algorithms", "", "Each page states the rule, its theorem, and how to call it.", ""]
    for group, title in GROUPS.items():
        own = [page for page in made if page.group == group]
        if not own:
            continue
        lines += ["", f"## {title}", "", "| name | what it is |", "|---|---|"]
        for page in own:
            file = page.file.removeprefix("algorithms/")
            for one in page.names:
                what = _first_sentence(inspect.getdoc(one.thing) or "").replace("|", "\\|")
                lines.append(f"| [`{one.typed}`]({file}#{_anchor(one)}) | {what} |")
    return "\n".join(lines) + "\n"


def _factory(one: Name, target) -> str:
    head = f"## {one.typed} {{ #{_anchor(one)} }}"
    if not inspect.isfunction(one.thing):
        return f"{head}\n\n```python\n{one.typed}: {type(one.thing).__name__}\n```{_constants(one)}"
    body = linked(markdown(inspect.getdoc(one.thing) or ""), target)
    return f"{head}\n\n```python\n{signature(one)}\n```\n\n{body}"


def _constants(one: Name) -> str:
    """What theory knows about a loss."""
    known = {
        name: getattr(one.thing, name, None)
        for name in ("lipschitz", "self_bound")
        if getattr(one.thing, name, None) is not None
    }
    said = " and ".join(f"`{name} = {float(value):g}`" for name, value in known.items())
    return f"\n\nConstants in the score: {said}." if said else ""


def _theorems(module: ModuleType) -> str:
    carried = [thing for thing in vars(module).values() if isinstance(thing, Theorem)]
    own = dict.fromkeys((one.name, one.source) for one in carried if _proved_in(one, module))
    if not own:
        return ""
    rows = [f"| `{name}` | {source} |" for name, source in own]
    head = "## Theorems that run\n\n`olx.certify` evaluates both sides after every round.\n\n"
    return head + "\n".join(["| name | source |", "|---|---|", *rows])


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
    kept = [
        thing
        for name, thing in vars(module).items()
        if inspect.isclass(thing) and thing.__module__ == module.__name__
        if name.endswith(("State", "Stats")) and not name.startswith("_") and fields(thing)
    ]
    tables = [f"`{one.__name__}`\n\n{tabulated(fields(one))}" for one in kept]
    return "## What it keeps between rounds\n\n" + "\n\n".join(tables) if tables else ""


def _target(page: Page, where: dict[str, str]):
    """A function that gives the relative address of a name on this page, or None."""
    own = {one.typed for one in page.names} | {one.name for one in page.names}

    def target(name: str) -> str | None:
        longer = (f"{room}.{name}" for room in (page.group, "olx", "olx.theorems"))
        full = next((full for full in (name, *longer) if full in where), None)
        return None if full is None or name in own else f"../../{where[full]}"

    return target


def _anchor(one: Name) -> str:
    return one.name


def _first_sentence(text: str) -> str:
    line = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[.;:])\s", line + " ")[0].rstrip(";:. ") + "." if line else ""
