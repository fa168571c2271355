"""A result as tables for a terminal or a notebook; the speed of this machine."""

import itertools
import textwrap
import time
from collections.abc import Callable, Iterator
from html import escape

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

import olx
from olx import _check as check
from olx._refusal import public
from olx._terminal import as_line
from olx.lab.listing import WIDTH
from olx.lab.report import difference, page, scores, tables
from olx.lab.report.tables import Table
from olx.lab.store import Result

FEATURES = 50  # of the rows of `bench`
NARROW = 20  # no column of words becomes narrower


def leaderboard(result: Result) -> str:
    """The learners at their best configuration, one table per data set."""
    return "\n\n".join(_text(board) for board in _boards(result))


def leaderboard_html(result: Result) -> str:
    """The same tables for a notebook."""
    return "\n".join(_html(board) for board in _boards(result))


def _boards(result: Result) -> list[Table]:
    everything = scores.scores(result.configurations)
    boards = tables.leaderboards(scores.winners(everything), everything)
    prints = tables.published_table(result.config.get("published", []), everything)
    return [*boards, *([prints] if prints else [])]


def certificates(result: Result) -> str:
    """The theorems, and whether they held."""
    table = tables.theorem_table(result.certificates)
    return _text(table) if table else "No learner of this config comes with a theorem."


def differences(first: Result, second: Result) -> str:
    """Two results side by side, and what differs between the runs."""
    tables = difference.tables(first, second, page.short_names(first, second))
    return "\n\n".join(map(_text, tables))


def _html(table: Table) -> str:
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


def _text(table: Table) -> str:
    """A table of the report as aligned text of at most `WIDTH` columns."""
    rows = [
        [as_line(cell) for cell in row]
        for row in ([column.name for column in table.head], *table.rows)
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(len(table.head))]
    words = [i for i, column in enumerate(table.head) if not column.number]
    while words and sum(widths) + 2 * len(widths) - 2 > WIDTH:
        widest = max(words, key=widths.__getitem__)
        if widths[widest] <= NARROW:
            break
        widths[widest] -= 1

    def show(row: list[str]) -> Iterator[str]:
        cells = [textwrap.wrap(text, width) for text, width in zip(row, widths, strict=True)]
        for line in itertools.zip_longest(*cells, fillvalue=""):
            yield "  ".join(
                cell.rjust(width) if column.number else cell.ljust(width)
                for cell, width, column in zip(line, widths, table.head, strict=True)
            ).rstrip()

    rule = ["-" * width for width in widths]
    lines = [line for row in (rows[0], rule, *rows[1:]) for line in show(row)]
    note = textwrap.wrap(table.note, WIDTH, break_on_hyphens=False) if table.note else []
    return "\n".join([as_line(table.title), *lines, *note])


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
