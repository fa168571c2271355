"""Docstrings of olx as Markdown: arguments become lists, examples become code."""

import re
from collections.abc import Callable

_ARGUMENT = re.compile(r"^([A-Za-z_]\w*(?:, [A-Za-z_]\w*)*): ")
_FORMULA = re.compile(r"\$\$(.+?)\$\$", re.S)


def markdown(text: str, arguments: bool = True) -> str:
    """The Markdown of a docstring.

    arguments: whether lines such as `eta: positive.` are about arguments or fields.
    """
    paragraphs = re.split(r"\n\s*\n", text.strip("\n"))
    return "\n\n".join(_paragraph(part, arguments) for part in _whole(paragraphs))


def linked(text: str, target: Callable[[str], str | None], form: str = "[{0}]({1})") -> str:
    """The same text with a link at each name in backquotes that has a target."""

    def link(match: re.Match) -> str:
        found = target(match[2])
        return match[0] if found is None else form.format(match[1], found)

    plain = re.compile(r"(?<!\[)(`([A-Za-z_][\w.]*)(?:\([^`]*\))?`)")
    parts = re.split(r"(```.*?```)", text, flags=re.S)
    return "".join(part if i % 2 else plain.sub(link, part) for i, part in enumerate(parts))


def _whole(paragraphs: list[str]) -> list[str]:
    """Join formulas that were cut at an empty line."""
    joined: list[str] = []
    for part in paragraphs:
        if joined and joined[-1].count("$$") % 2:
            joined[-1] += "\n" + part
        else:
            joined.append(part)
    return joined


def _paragraph(text: str, arguments: bool) -> str:
    lines = text.split("\n")
    if lines[0].lstrip().startswith(">>>"):
        return f"```pycon\n{text}\n```"
    if any(line.startswith(">>>") for line in lines):
        at = next(i for i, line in enumerate(lines) if line.startswith(">>>"))
        before = _paragraph("\n".join(lines[:at]), arguments)
        return f"{before}\n\n" + "```pycon\n" + "\n".join(lines[at:]) + "\n```"
    if arguments and _ARGUMENT.match(lines[0]):
        return _list(lines)
    if lines[0].startswith("    "):
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
