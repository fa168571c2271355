"""Text for a terminal: a result, and the names that a config may use.

Measure how many rounds per second the engine plays on this machine, without files or tables.
"""

import inspect
import sys
import time
from collections.abc import Callable, Iterator
from html import escape
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

import olx
from olx import _check as check
from olx._refusal import public
from olx._terminal import as_line
from olx.boosting.rule import BoostingRule
from olx.convex.sets import ConvexSet
from olx.core import Learner, Process
from olx.frameworks.ascents.base import Ascent
from olx.frameworks.games.base import Game, HingeRule
from olx.lab.data import catalogue
from olx.lab.data.generated import generators
from olx.lab.listing import about
from olx.lab.names import LOSS, factories, optimizers, parameters
from olx.lab.store import Result
from olx.lab.tasks.task import METRICS
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
    prints = tables.published(result.config.get("published", []), everything)
    return [*boards, *([prints] if prints else [])]


def certificates(result: Result) -> str:
    """The theorems, and whether they held."""
    from olx.lab.report import theorems

    table = theorems.certificates(result.certificates)
    return _text(table) if table else "No learner of this config comes with a theorem."


def differences(first: Result, second: Result) -> str:
    """Two results side by side, and what differs between the runs."""
    from olx.lab.report import diff_page, difference

    tables = difference.tables(first, second, diff_page.named(first, second))
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


FEATURES = 50


@public
def bench(rounds: int = 200_000) -> str:
    """One line per game: rounds per second, summed over all configurations."""
    check.count("rounds", rounds)
    with jax.enable_x64(False):
        return "\n".join(_lines(rounds))


def _lines(rounds: int) -> Iterator[str]:
    source = np.random.default_rng(0)
    x = source.normal(size=(rounds, FEATURES)).astype(np.float32)
    y = np.sign(x[:, 0] + 0.5 * source.normal(size=rounds)).astype(np.float32)
    few = scipy.sparse.csr_array(np.where(np.abs(x) > 1.5, x, 0.0))
    dense = olx.Rounds(x, y)
    sparse = olx.Rounds(olx.streams.sparse_rows(few), y)
    loss, start = olx.losses.logistic, np.zeros(FEATURES, np.float32)
    adagrad = lambda eta: olx.linear(olx.first_order.adagrad(eta))
    descent = lambda eta: olx.linear(olx.ogd(eta))
    run = lambda learner, rounds: olx.run(learner, loss, rounds, start, keep=olx.keep.totals)
    sweep = lambda make, count: olx.sweep(
        olx.batch(make, eta=jnp.geomspace(1e-3, 1.0, count)),
        loss,
        dense,
        start,
        keep=olx.keep.totals,
    )
    games: dict[str, tuple[int, Callable[[], object]]] = {
        f"gradient descent, {FEATURES} features": (1, lambda: run(descent(0.1), dense)),
        f"AdaGrad, {FEATURES} features": (1, lambda: run(adagrad(0.1), dense)),
        "AdaGrad, sparse rows": (1, lambda: run(adagrad(0.1), sparse)),
        "AdaGrad, 64 step sizes at once": (64, lambda: sweep(adagrad, 64)),
        "gradient descent, 512 step sizes at once": (512, lambda: sweep(descent, 512)),
    }
    width = max(map(len, games))
    for name, (count, play) in games.items():
        play()  # compiles
        started = time.perf_counter()
        play()
        rate = rounds * count / (time.perf_counter() - started)
        yield f"{name:<{width}}  {rate:>14,.0f} rounds per second"
