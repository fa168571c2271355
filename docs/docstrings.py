"""Docstrings of olx as Markdown, for mkdocstrings: arguments as lists, fields as tables, links."""

import re
from collections.abc import Callable
from typing import Any

try:
    from griffe import Docstring, Extension
except ImportError:  # only the site itself needs it
    Docstring, Extension = None, object

from docs.public import rooms

_ARGUMENT = re.compile(r"^([A-Za-z_]\w*(?:, [A-Za-z_]\w*)*): ")
_FORMULA = re.compile(r"\$\$(.+?)\$\$", re.S)
_NAME = re.compile(r"(?<!\[)(`([A-Za-z_][\w.]*)(?:\([^`]*\))?`)")


class Markdown(Extension):
    """Docstrings become Markdown with links; the fields of a record become a table."""

    def __init__(self) -> None:
        super().__init__()
        names = [one for public in rooms().values() for one in public]
        self._paths = {one.path: one.path for one in names} | {one.typed: one.path for one in names}

    def on_object(self, *, obj: Any, **kwargs: Any) -> None:
        if obj.docstring is not None:
            text = markdown(obj.docstring.value, arguments=not obj.is_module)
            obj.docstring.value = linked(text, lambda name: self._path(obj, name), "[{0}][{1}]")
        if obj.is_class:
            _tabulate(obj)

    def _path(self, obj: Any, name: str) -> str | None:
        """The path of a public name: as users type it, or short beside its own file or folder."""
        module = obj if obj.is_module else obj.module
        room = ".".join(module.path.split(".")[:2])
        longer = (name, f"{module.path}.{name}", f"{room}.{name}", f"olx.{name}")
        found = next((self._paths[full] for full in longer if full in self._paths), None)
        return None if found == obj.path else found


def on_page_content(html: str, **kwargs: Any) -> str:
    """A hook of MkDocs: search leaves formulas out."""
    return html.replace('class="arithmatex"', 'class="arithmatex" data-search-exclude')


def markdown(text: str, arguments: bool = True) -> str:
    """The Markdown of a docstring.

    arguments: whether lines such as `eta: positive.` are about arguments or fields.
    """
    paragraphs: list[str] = []
    for part in re.split(r"\n\s*\n", text.strip("\n")):
        if paragraphs and paragraphs[-1].count("$$") % 2:  # a formula with an empty line inside
            paragraphs[-1] += "\n" + part
        else:
            paragraphs.append(part)
    return "\n\n".join(_paragraph(part, arguments) for part in paragraphs)


def linked(text: str, target: Callable[[str], str | None], form: str = "[{0}]({1})") -> str:
    """The same text with a link at each name in backquotes that has a target."""

    def link(match: re.Match) -> str:
        found = target(match[2])
        return match[0] if found is None else form.format(match[1], found)

    parts = re.split(r"(```.*?```)", text, flags=re.S)
    return "".join(part if i % 2 else _NAME.sub(link, part) for i, part in enumerate(parts))


def _paragraph(text: str, arguments: bool) -> str:
    before, prompt, code = text.partition(">>>")
    if prompt and (not before or before.endswith("\n")):
        said = _paragraph(before.rstrip("\n"), arguments) + "\n\n" if before else ""
        return f"{said}```pycon\n>>>{code}\n```"
    if arguments and _ARGUMENT.match(text):
        return _list(text.split("\n"))
    if text.startswith("    "):
        return text
    return _FORMULA.sub(lambda found: f"\n\n$${found[1].strip()}$$\n\n", text).strip("\n")


def _list(lines: list[str]) -> str:
    """Lines such as `eta: positive`, each with its indented continuation, as a list."""
    items: list[str] = []
    for line in lines:
        found = _ARGUMENT.match(line)
        if found:
            names = ", ".join(f"`{name}`" for name in found[1].split(", "))
            items.append(f"- **{names}**: {line[found.end() :]}")
        elif line.startswith(" ") and items:
            items[-1] += f" {line.strip()}"
        else:
            items.append(f"\n{line}")
    return "\n".join(items)


def _tabulate(record: Any) -> None:
    """Replace the fields of a record by a table with the comments beside or below them."""
    fields = [
        part
        for part in record.members.values()
        if part.is_attribute and part.annotation and "property" not in part.labels
    ]
    if not fields:
        return
    lines = record.lines_collection[record.filepath]
    comment = lambda part: _comment(lines, part.endlineno or part.lineno)
    rows = [
        f"| `{part.name}` | `{part.annotation}` | {comment(part)} |"
        for part in fields
        if not part.name.startswith("_")
    ]
    table = "\n".join(["| field | type | meaning |", "|---|---|---|", *rows])
    said = record.docstring.value if record.docstring is not None else ""
    record.docstring = Docstring(f"{said}\n\n{table}", parent=record)
    for part in fields:
        record.del_member(part.name)


def _comment(lines: list[str], line: int) -> str:
    """The comment at the end of a line, numbered from 1, or alone on the next one."""
    _, mark, found = lines[line - 1].partition("  # ")
    if not mark and line < len(lines) and lines[line].strip().startswith("# "):
        found = lines[line].strip()[2:]
    return (
        "" if found.startswith("noqa") else found.strip().replace("*", "&#42;").replace("|", "\\|")
    )
