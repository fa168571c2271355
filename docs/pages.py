"""The hand-written pages: names become links, and parts about names that do not exist are left out.

A part between `<!-- needs: olx.x.y -->` and `<!-- end -->` is shown if `olx.x.y` exists. A row of a
table whose first cell is such a name is shown if the name exists.
"""

import functools
import re
import shutil
from pathlib import Path

import olx
from docs.docstrings import linked

SOURCE = Path(__file__).resolve().parent / "pages"
_PART = re.compile(r"<!-- needs: ([\w.]+) -->\n(.*?)<!-- end -->\n?", re.S)
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.S | re.M)
_ROW = re.compile(r"^\| `(olx\.[\w.]+)`.*\n", re.M)


def write(folder: Path, where: dict[str, str]) -> None:
    """Copy all pages; `where` has the page of every public name, by the name that users type."""
    shutil.copytree(SOURCE, folder)
    for path in folder.rglob("*.md"):
        up = "../" * len(path.relative_to(folder).parent.parts)
        target = lambda name, up=up: up + where[name] if name in where else None
        path.write_text(linked(shown(path.read_text()), target))


def shown(text: str) -> str:
    """The text without the parts and rows about names that do not exist."""
    text = _PART.sub(lambda part: part[2] if exists(part[1]) else "", text)
    return _ROW.sub(lambda row: row[0] if exists(row[1]) else "", text)


def exists(name: str) -> bool:
    """Whether a name such as `olx.boosting.adaboost` can be typed."""
    try:
        functools.reduce(getattr, name.split(".")[1:], olx)
    except AttributeError:
        return False
    return True


def blocks(text: str) -> str:
    """The Python of a page as one program; empty lines keep the line numbers of the page."""
    kept = shown(text)
    lines = [""] * kept.count("\n")
    for found in _BLOCK.finditer(kept):
        first = kept[: found.start(1)].count("\n")
        body = found[1].rstrip("\n").split("\n")
        lines[first : first + len(body)] = body
    return "\n".join(lines) + "\n"
