"""The public names of olx: in which room users type them, and which file defines them."""

import ast
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import olx

ROOT = Path(__file__).resolve().parent.parent


class Name(NamedTuple):
    room: str  # the module that users type, such as "olx.classification"
    name: str
    module: str  # the module that defines it
    own: str  # its name there

    @property
    def typed(self) -> str:
        return f"{self.room}.{self.name}"

    @property
    def path(self) -> str:
        return f"{self.module}.{self.own}"

    @property
    def thing(self) -> Any:
        return getattr(importlib.import_module(self.module), self.own)


def rooms() -> dict[str, list[Name]]:
    """The public names by room, `olx` first."""
    inner = [getattr(olx, name) for name in dir(olx) if _is_room(name, getattr(olx, name))]
    found = {_short(room.__name__): names(room) for room in [olx, *inner]}
    inner = ("optax", "flax", "equinox", "sklearn", "river")
    for room in ("convex.sets", *(f"interop.{library}" for library in inner)):
        found[f"olx.{room}"] = names(importlib.import_module(f"olx.{room}"))
    return {room: public for room, public in found.items() if public}


def names(room: ModuleType) -> list[Name]:
    """What a package exports as `from x import y as y`, or what a plain module defines."""
    tree = ast.parse(Path(str(room.__file__)).read_text())
    if room.__spec__ is not None and room.__spec__.submodule_search_locations is not None:
        return [
            Name(_short(room.__name__), alias.asname, node.module, alias.name)
            for node in ast.walk(tree)  # some are imported for type checkers, and found when used
            if isinstance(node, ast.ImportFrom) and node.module is not None
            for alias in node.names
            if alias.asname and not alias.asname.startswith("_")
            if not isinstance(getattr(room, alias.asname), ModuleType)
        ]
    defined = [name for node in tree.body for name in _defined(node)]
    return [Name(_short(room.__name__), name, room.__name__, name) for name in defined]


def factories(public: list[Name]) -> list[Name]:
    """The public functions, and objects that are used like them, such as a loss."""
    return [one for one in public if not inspect.isclass(one.thing)]


def _is_room(name: str, thing: Any) -> bool:
    return isinstance(thing, ModuleType) and not name.startswith("_") and name in _exported()


def _exported() -> set[str]:
    tree = ast.parse(Path(str(olx.__file__)).read_text())
    parts = [node.names for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {alias.asname for part in parts for alias in part if alias.asname}


def _short(room: str) -> str:
    """Dual ascent rules are typed as `olx.ascents`, repeated games as `olx.games`."""
    return re.sub(r"olx\.frameworks\.(ascents|games)", r"olx.\1", room)


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
        return [node.name]
    return []
