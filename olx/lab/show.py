"""Text for a terminal: a result, and the names that a config may use."""

import inspect
import sys
from collections.abc import Iterator
from html import escape
from typing import Any

from olx._terminal import as_line
from olx.boosting.boost import BoostingRule
from olx.convex.sets import ConvexSet
from olx.core import Learner, Process
from olx.frameworks.ascents.base import Ascent
from olx.frameworks.games import Game, HingeRule
from olx.lab.about import about
from olx.lab.data import catalogue
from olx.lab.data.generated import generators
from olx.lab.names import LOSS, factories, parameters
from olx.lab.optimizers import optimizers
from olx.lab.store import Result
from olx.lab.tasks import METRICS
from olx.mirrors.base import MirrorMap
from olx.theorem import Theorem


def leaderboard(result: Result) -> str:
    """The learners at their best configuration, one table per data set."""
    return "\n\n".join(_text(board) for board in _boards(result))


def leaderboard_html(result: Result) -> str:
    """The same tables for a notebook."""
    return "\n".join(_html(board) for board in _boards(result))


def _boards(result: Result) -> list[Any]:
    from olx.lab.report import scores, tables

    everything = scores.scores(result.configurations)
    boards = tables.leaderboards(scores.winners(everything), everything)
    prints = tables.published_table(result.config.get("published", []), everything)
    return [*boards, *([prints] if prints else [])]


def certificates(result: Result) -> str:
    """The theorems, and whether they held."""
    from olx.lab.report import tables

    table = tables.theorem_table(result.certificates)
    return _text(table) if table else "No learner of this config comes with a theorem."


def differences(first: Result, second: Result) -> str:
    """Two results side by side, and what differs between the runs."""
    from olx.lab.report import difference, page

    tables = difference.tables(first, second, page.short_names(first, second))
    return "\n\n".join(map(_text, tables))


def listing(what: str | None) -> str:
    """The names that a config may use: all, of one kind, or all about one name."""
    kinds = {
        "learners": lambda: _functions(Learner),
        "optimizers": lambda: ((name, _line(make)) for name, make in optimizers().items()),
        "maps": lambda: _functions(MirrorMap),
        "sets": lambda: _functions(ConvexSet),
        "regularizers": lambda: _of("regularizers"),
        "schedules": lambda: _of("schedules"),
        "ascents": lambda: _functions(Ascent),
        "games": lambda: (*_functions(Game), *_functions(HingeRule)),
        "rules": lambda: _functions(BoostingRule),
        "losses": lambda: _losses(),
        "theorems": lambda: _theorems(),
        "metrics": lambda: ((name, _line(metric.round)) for name, metric in METRICS.items()),
        "data": lambda: ((e.name, f"{e.task}: {e.what}") for e in catalogue().values()),
        "streams": lambda: ((name, _line(made)) for name, made in generators().items()),
    }
    if what is not None and what not in kinds:
        return about(what, list(kinds))
    parts = []
    for kind in kinds if what is None else [what]:
        rows = list(kinds[kind]())
        width = max(len(name) for name, _ in rows)
        lines = [f"  {name:<{width}}  {line}".rstrip() for name, line in rows]
        parts.append("\n".join([f"{kind}:", *lines]))
    return "\n\n".join(parts)


def _functions(kind: type) -> Iterator[tuple[str, str]]:
    seen = set()
    for name, function in factories(kind):
        if function not in seen and name not in (
            "batch",
            "affine",
            "linear",
            "model",
            "experts.expert_learner",
        ):
            seen.add(function)
            yield name, _line(function)


def _of(module: str) -> Iterator[tuple[str, str]]:
    return ((n, line) for n, line in _functions(Process) if n.startswith(f"{module}."))


def _losses() -> Iterator[tuple[str, str]]:
    import olx

    for name, thing in sorted(vars(olx.losses).items()):
        if isinstance(thing, LOSS) and not name.startswith("_"):
            yield name, _line(thing if inspect.isfunction(thing) else thing.value_fn)


def _theorems() -> Iterator[tuple[str, str]]:
    """Theorems by name, with source and learners; those with arguments are tables of a config."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for path, module in sorted(sys.modules.items()):
        is_page = path.startswith("olx.") and not hasattr(module, "__path__")
        for one in vars(module).values() if is_page else ():
            if isinstance(one, Theorem):
                about = one.about.learners if one.about else path.removeprefix("olx.")
                found.setdefault((one.name, one.source), {})[about] = None
    yield from ((name, f"{source}; about {', '.join(a)}") for (name, source), a in found.items())
    for name, function in factories(Theorem):
        yield f"{name}({', '.join(parameters(function))})", _line(function)


def _line(function: Any) -> str:
    text = inspect.getdoc(function) or inspect.getdoc(inspect.getmodule(function)) or ""
    return text.split("\n\n")[0].replace("\n", " ").replace("$", "").strip()


def _html(table: Any) -> str:
    """A table of the report for a notebook."""
    side = lambda column: "right" if column.number else "left"
    cell = lambda kind, text, column: (
        f'<{kind} style="text-align: {side(column)}">{escape(text)}</{kind}>'
    )
    line = lambda kind, row: "".join(
        cell(kind, text, column) for text, column in zip(row, table.head, strict=True)
    )
    head = line("th", [column.name for column in table.head])
    rows = "".join(f"<tr>{line('td', row)}</tr>" for row in table.rows)
    note = f"<p>{escape(table.note)}</p>" if table.note else ""
    whole = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return f"<table><caption>{escape(table.title)}</caption>{whole}</table>{note}"


def _text(table: Any) -> str:
    """A table of the report as aligned text."""
    head, *rows = (
        [as_line(cell) for cell in row]
        for row in ([column.name for column in table.head], *table.rows)
    )
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    show = lambda row: "  ".join(
        cell.rjust(width) if column.number else cell.ljust(width)
        for cell, width, column in zip(row, widths, table.head, strict=True)
    ).rstrip()
    lines = [
        as_line(table.title),
        show(head),
        show(["-" * width for width in widths]),
        *map(show, rows),
    ]
    return "\n".join([*lines, *([table.note] if table.note else [])])
