r"""Tables for a paper: learners against data sets, in LaTeX, Markdown and CSV.

    \usepackage{booktabs, graphicx}
    \input{table.tex}

A cell is a mean over seeds and its standard error, of the configuration of the smallest mean loss.
The best learner of a data set is bold; one that does not differ significantly is underlined.
"""

import csv
import io
import json
import math
import re
from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa

from olx._refusal import RefusedValue, own_name
from olx._terminal import as_line
from olx.lab.report.comparisons import SEED_TEST, rivals
from olx.lab.report.scores import (
    Score,
    Winners,
    by_dataset,
    is_rising,
    mean_and_error,
    ranking,
    ranks,
    scores,
    winners,
)
from olx.lab.report.significance import SEEDS
from olx.lab.store import Result

SIDES = ("data", "learners")  # what may be the columns
WIDE, NUMBER = 6, 16  # columns that fit onto a page, and the letters of a number in one of them
COMMANDS = {  # characters that LaTeX reads as something else
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': '\\string"',
    "-": "{-}", "[": "{[}", "]": "{]}", "*": "{*}", "`": "{`}", "'": "{'}",
    **{plain: f"\\{plain}" for plain in "&%$#_{}"},
}  # fmt: skip


class Cell(NamedTuple):
    mean: float
    error: float  # NaN for a single seed
    best: bool
    alike: bool  # whether it does not differ significantly from the best


class PaperTable(NamedTuple):
    """A table, in words and numbers; `text_of` writes it."""

    name: str  # of the result, for references to the table
    caption: str
    corner: str  # what the rows are
    rows: list[str]
    columns: list[str]
    cells: list[list[Cell | None]]  # None where a learner was not played

    def frame(self) -> pa.Table:
        """Numbers: a column of means and one of standard errors for each column of the table."""
        names, arrays = [self.corner], [pa.array(self.rows, pa.string())]
        for name, own in zip(self.columns, zip(*self.cells, strict=True), strict=True):
            names += [name, f"{name}, standard error"]
            numbers = [(cell.mean, cell.error) if cell else (None, None) for cell in own]
            sides = zip(*numbers, strict=True)
            arrays += [pa.array(side, pa.float64(), from_pandas=True) for side in sides]
        return pa.table(arrays, names=names)


@own_name("table")
def paper_table(result: Result, columns: str = "data", metric: str = "loss") -> PaperTable:
    """The table of a result.

    columns: "data" for learners in rows, ordered by their mean rank; "learners" for data in rows.
    metric: "loss", or a metric of the result. Configurations are those of the smallest mean loss.
    """
    if columns not in SIDES:
        raise RefusedValue(f"`columns` must be one of {', '.join(SIDES)}, got {columns!r:.40}.")
    best = winners(scores(result.configurations))
    known = [
        name
        for name in next(iter(best.values())).means
        if any(not math.isnan(score.means[name]) for score in best.values())
    ]
    if metric not in known:
        raise RefusedValue(f"`metric` must be one of {', '.join(known)}, got {metric!r:.40}.")
    cells = {}
    for dataset, chosen in by_dataset(best).items():
        sign = -1 if is_rising(metric) else 1
        chosen = [score for score in chosen if not math.isnan(score.means[metric])]
        if not chosen:  # the metric is of another task
            continue
        first, *others = sorted(chosen, key=lambda score: sign * score.means[metric])
        cells[dataset, first.learner] = _cell(first, metric, True, False)
        for rival in rivals(result.configurations, first, others, metric):
            is_best = rival.score.means[metric] == first.means[metric]
            is_alike = rival.differs is False and not is_best
            cells[dataset, rival.score.learner] = _cell(rival.score, metric, is_best, is_alike)
    datasets = list(dict.fromkeys(name for name, _ in cells))
    learners = [*ranking(best)]
    name, caption = result.folder.resolve().name, _caption(best, metric)
    if columns == "data":
        table = [[cells.get((name, learner)) for name in datasets] for learner in learners]
        return PaperTable(name, caption, "learner", learners, datasets, table)
    table = [[cells.get((name, learner)) for learner in learners] for name in datasets]
    return PaperTable(name, caption, "data set", datasets, learners, table)


def latex(table: PaperTable) -> str:
    """A table of the package booktabs."""
    head = " & ".join([latex_text(table.corner), *_latex_heads(table.columns)])
    body = [
        " & ".join([latex_text(name), *(_latex_cell(cell) for cell in row)])
        for name, row in zip(table.rows, table.cells, strict=True)
    ]
    lines = [f"    {line} \\\\" for line in body]
    return "\n".join(
        [
            r"% \usepackage{booktabs, graphicx}",
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{latex_text(table.caption)}}}",
            rf"  \label{{tab:{re.sub(r'[^A-Za-z0-9]+', '-', table.name).strip('-') or 'results'}}}",
            r"  \par\smallskip",
            r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"  \begin{{tabular}}{{@{{}}l{'r' * len(table.columns)}@{{}}}}",
            r"    \toprule",
            rf"    {head} \\",
            r"    \midrule",
            *lines,
            r"    \bottomrule",
            r"  \end{tabular}}",
            r"\end{table}",
        ]
    )


def _latex_heads(names: list[str]) -> list[str]:
    """The names of columns; those of many columns stand upright if they are wider than numbers."""
    upright = len(names) > WIDE and max(map(len, names)) > NUMBER
    return [
        rf"\rotatebox{{90}}{{{latex_text(name)}}}" if upright else latex_text(name)
        for name in names
    ]


def latex_text(text: str) -> str:
    r"""Text as it is to be read, in LaTeX.

    >>> print(latex_text("50% of a_b -- {x}"))
    50\% of a\_b {-}{-} \{x\}
    """
    return "".join(COMMANDS.get(letter, letter) for letter in as_line(text))


def markdown(table: PaperTable) -> str:
    """A table of Markdown, with its caption below."""
    head = [table.corner, *table.columns]
    rows = [head, *([name] for name in table.rows)]
    lines = ["| " + " | ".join(map(markdown_text, row)) for row in rows]
    cells = [[_markdown_cell(cell) for cell in row] for row in table.cells]
    body = [" | ".join([line, *own]) + " |" for line, own in zip(lines[1:], cells, strict=True)]
    rule = "|".join(["", "---", *["---:"] * len(table.columns), ""])
    return "\n".join([f"{lines[0]} |", rule, *body, "", markdown_text(table.caption)])


def markdown_text(text: str) -> str:
    r"""Text as it is to be read, in Markdown.

    >>> print(markdown_text("a_b | <i>"))
    a\_b \| \<i\>
    """
    return re.sub(r"([\\`*_{}\[\]<>#|~$!&])", r"\\\1", as_line(text))


def csv_text(table: PaperTable) -> str:
    """The numbers in full, as a file of comma-separated values."""
    made, frame = io.StringIO(), table.frame()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(frame.column_names)
    writer.writerows(zip(*(column.to_pylist() for column in frame.columns), strict=True))
    return made.getvalue().rstrip("\n")


@own_name("table")
def text_of(table: PaperTable, format: str) -> str:
    """The table in one of `FORMATS`."""
    if format not in FORMATS:
        raise RefusedValue(f"`format` must be one of {', '.join(FORMATS)}, got {format!r:.40}.")
    return FORMATS[format](table)


FORMATS: dict[str, Callable[[PaperTable], str]] = {
    "latex": latex,
    "markdown": markdown,
    "csv": csv_text,
}


def _cell(score: Score, metric: str, best: bool, alike: bool) -> Cell:
    return Cell(score.means[metric], score.errors[metric], best, alike)


def _caption(best: Winners, metric: str) -> str:
    seeds = {score.seeds for score in best.values()}
    many = f"{min(seeds)} to {max(seeds)}" if len(seeds) > 1 else f"{max(seeds)}"
    said = f"Mean {metric} of each learner at its configuration of the smallest mean loss"
    if max(seeds) == 1:
        return f"{said}; one seed, so nothing is tested. The best of a data set is bold."
    said += f", with the standard error over {many} seeds. The best of a data set is bold"
    if max(seeds) < SEEDS:
        return f"{said}; {max(seeds)} seeds are too few for a test."
    return f"{said}; those that do not differ from it significantly are underlined ({SEED_TEST})."


def _latex_cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    mean, error = (_power(text) for text in _texts(cell))
    if not math.isfinite(cell.mean):
        return mean
    style = r"\mathbf{%s}" if cell.best else r"\underline{%s}" if cell.alike else "%s"
    error = rf" {{\scriptstyle\pm {error}}}" if error else ""
    return f"${style % mean}{error}$"


def _power(number: str) -> str:
    return re.sub(r"e(-?\d+)$", r"\\cdot 10^{\1}", number)


def _markdown_cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    mean, error = _texts(cell)
    if not math.isfinite(cell.mean):
        return mean
    style = "**%s**" if cell.best else "<ins>%s</ins>" if cell.alike else "%s"
    return " ± ".join(filter(None, [style % mean, error]))


def _texts(cell: Cell) -> tuple[str, str]:
    return mean_and_error(cell.mean, cell.error)


def leaderboard_frame(result: Result) -> pa.Table:
    """One row per data set and learner, at its configuration of the smallest mean loss."""
    rows = []
    for chosen in by_dataset(winners(scores(result.configurations))).values():
        for rank, score in zip(ranks(chosen), chosen, strict=True):
            row = {"dataset": score.dataset, "learner": score.learner, "rank": rank}
            for name, mean in score.means.items():
                row |= {name: mean, f"{name}_error": score.errors[name]}
            numbers = json.dumps(score.hyperparameters)
            row |= {"seeds": score.seeds, "rounds": score.rounds, "hyperparameters": numbers}
            rows.append(row)
    return pa.Table.from_pylist(rows)
