"""The fields of a record with their comments, and a griffe extension that shows them."""

import ast
import inspect
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

try:
    from griffe import Docstring, Extension
except ImportError:  # only the site itself needs it
    Docstring, Extension = None, object

from docs.docstrings import markdown


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


def table(record: type) -> str:
    """The fields of a record as a Markdown table."""
    rows = [
        f"| `{one.name}` | `{one.type.replace('|', chr(92) + '|')}` | {_cell(one.meaning)} |"
        for one in fields(record)
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
    """Comments beside fields become their docstrings; other docstrings become Markdown."""

    def on_attribute_instance(self, *, attr: Any, **kwargs: Any) -> None:
        if attr.docstring is not None or attr.lineno is None or not attr.annotation:
            return
        lines = attr.lines_collection[Path(attr.filepath)]
        if found := comment(lines, attr.endlineno or attr.lineno):
            attr.docstring = Docstring(found, parent=attr)

    def on_object(self, *, obj: Any, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value, arguments=not obj.is_module)
