"""The fields of a record with their comments, and a griffe extension that shows them."""

import ast
import inspect
import textwrap
from typing import Any, NamedTuple

try:
    from griffe import Docstring, Extension
except ImportError:  # only the site itself needs it
    Docstring, Extension = None, object

from docs.docstrings import linked, markdown
from docs.public import rooms


class Field(NamedTuple):
    name: str
    type: str
    meaning: str


def fields(record: type) -> list[Field]:
    """The annotated fields of a class, with the comments beside or below them."""
    source = textwrap.dedent(inspect.getsource(record))
    lines = source.split("\n")
    body = ast.parse(source).body[0]
    found = []
    for node in body.body if isinstance(body, ast.ClassDef) else []:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            kind = ast.unparse(node.annotation).strip("'")
            meaning = comment(lines, node.end_lineno or node.lineno)
            found.append(Field(node.target.id, kind, meaning))
    return [one for one in found if not one.name.startswith("_")]


def tabulated(shown: list[Field]) -> str:
    """Fields as a Markdown table."""
    rows = [
        f"| `{one.name}` | `{one.type}` | {_cell(one.meaning.replace('*', '&#42;'))} |"
        for one in shown
    ]
    return "\n".join(["| field | type | meaning |", "|---|---|---|", *rows])


def comment(lines: list[str], line: int) -> str:
    """The comment at the end of a line, numbered from 1, or alone on the next one."""
    _, mark, found = lines[line - 1].partition("  # ")
    if not mark and line < len(lines) and lines[line].strip().startswith("# "):
        found = lines[line].strip()[2:]
    return "" if found.startswith("noqa") else found.strip()


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


class Comments(Extension):
    """Fields become a table at the record; docstrings become Markdown with links."""

    def __init__(self) -> None:
        super().__init__()
        self._paths = {one.typed: one.path for public in rooms().values() for one in public}

    def on_object(self, *, obj: Any, **kwargs: Any) -> None:
        if obj.docstring is not None:
            text = markdown(obj.docstring.value, arguments=not obj.is_module)
            obj.docstring.value = linked(text, self._paths.get, "[{0}][{1}]")
        if obj.is_class:
            self._tabulate(obj)

    def _tabulate(self, record: Any) -> None:
        own = [part for part in record.members.values() if part.is_attribute and part.annotation]
        own = [part for part in own if "property" not in part.labels]
        if not own:
            return
        lines = record.lines_collection[record.filepath]
        shown = [
            Field(part.name, str(part.annotation), comment(lines, part.endlineno or part.lineno))
            for part in own
            if not part.name.startswith("_")
        ]
        said = record.docstring.value if record.docstring is not None else ""
        record.docstring = Docstring(f"{said}\n\n{tabulated(shown)}", parent=record)
        for part in own:
            record.del_member(part.name)
