"""The hand-written pages: names become links, and parts about names that do not exist are left out.

A part between `<!-- needs: olx.x.y -->` and `<!-- end -->` is shown if `olx.x.y` exists. A row of a
table whose first cell is such a name is shown if the name exists.
"""

import pkgutil
import re
import shutil
from pathlib import Path

from docs import outputs
from docs.docstrings import linked

SOURCE = Path(__file__).resolve().parent / "pages"
_PART = re.compile(r"<!-- needs: ([\w.]+) -->\n(.*?)<!-- end -->\n?", re.S)
_ROW = re.compile(r"^\| `(olx\.[\w.]+)`.*\n", re.M)


def write(folder: Path, where: dict[str, str], cache: Path | None = None) -> None:
    """Copy all pages.

    where: the page of every public name, by the name that users type.
    cache: where to keep what the code of the pages prints; None to leave it out.
    """
    shutil.copytree(SOURCE, folder)
    for path in folder.rglob("*.md"):
        inside = path.relative_to(folder)
        text = shown(path.read_text())
        if cache is not None and (inside.parts[0] == "howto" or inside.name == "index.md"):
            text = outputs.shown(text, cache)
        up = "../" * len(inside.parent.parts)
        target = lambda name, up=up: up + where[name] if name in where else None
        path.write_text(linked(text, target))


def shown(text: str) -> str:
    """The text without the parts and rows about names that do not exist."""
    text = _PART.sub(lambda part: part[2] if exists(part[1]) else "", text)
    return _ROW.sub(lambda row: row[0] if exists(row[1]) else "", text)


def exists(name: str) -> bool:
    """Whether a name such as `olx.boosting.adaboost` can be typed."""
    try:
        pkgutil.resolve_name(name)
    except (AttributeError, ImportError):
        return False
    return True


def blocks(text: str) -> str:
    """The Python of a page as one program; empty lines keep the line numbers of the page."""
    kept = shown(text)
    lines = [""] * kept.count("\n")
    for found in outputs.BLOCK.finditer(kept):
        first = kept[: found.start(1)].count("\n")
        body = found[1].rstrip("\n").split("\n")
        lines[first : first + len(body)] = body
    return "\n".join(lines) + "\n"
