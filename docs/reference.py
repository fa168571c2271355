"""The reference: one page per room, with the fields of every record."""

import importlib
import inspect
import re
from pathlib import Path

from docs.public import Name, rooms

_ENTRY = """::: {path}
    options:
      heading: {typed}
      toc_label: {name}
"""


def write(folder: Path) -> list[str]:
    """Write all pages; gives their names."""
    (folder / "reference").mkdir(parents=True, exist_ok=True)
    seen: set[str] = set()
    files = []
    for room, public in rooms().items():
        file = f"reference/{room}.md"
        (folder / file).write_text(page(room, [one for one in public if one.path not in seen]))
        seen |= {one.path for one in public}
        files.append(file)
    return files


def places() -> dict[str, str]:
    """The page and the anchor of every public name, by the name that users type."""
    found: dict[str, str] = {}
    homes: dict[str, str] = {}
    for room, public in rooms().items():
        found[room] = f"reference/{room}.md"
        for one in public:
            home = homes.setdefault(one.path, f"reference/{room}.md#{one.path}")
            found[one.typed] = home
    return found


def page(room: str, public: list[Name]) -> str:
    """The records and functions of a room, each shown where it comes first."""
    module = re.sub(r"olx\.(ascents|games)", r"olx.frameworks.\1", room)
    about = inspect.getdoc(importlib.import_module(module)) or ""
    records = [one for one in public if inspect.isclass(one.thing)]
    others = [one for one in public if not inspect.isclass(one.thing)]
    parts = [f"# {room}", about.split("\n\n")[0]]
    for title, group in (("Records", records), ("Functions", others)):
        if group:
            parts += [f"## {title}", *(_entry(one) for one in group)]
    return "\n\n".join(parts) + "\n"


def _entry(one: Name) -> str:
    return _ENTRY.format(path=one.path, typed=one.typed, name=one.name)
