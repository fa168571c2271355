"""Write a result, or a comparison of two, as one page without network.

report.html      the page; its style, its scripts and its data are part of the file
figures/         every figure as .svg, .png and .pdf
"""

import base64
import hashlib
import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import jinja2
import markupsafe

from olx import _archive as archive
from olx._refusal import RefusedValue
from olx.lab import store
from olx.lab.play import seconds_outside_jobs
from olx.lab.report import charts, comparisons, difference, figures, paper, tables
from olx.lab.report.charts import Chart
from olx.lab.report.figures import Picture
from olx.lab.report.plots import KINDS, comparator_text, learner_numbers, pictures
from olx.lab.report.rank_diagram import RankDiagram, drawing, rank_diagram
from olx.lab.report.scores import Score, Winners, by_dataset, scores, winners
from olx.lab.report.tables import Table

STYLES = ("vendor/uPlot.min.css", "page.css")
SCRIPTS = ("vendor/uPlot.iife.min.js", "charts.js", "page.js")


class Part(NamedTuple):
    """What the page shows of one data set."""

    name: str
    line: str  # what is seen while it is folded
    curves: list[Picture]
    tables: list[Table]
    groups: list[tuple[str, list[Picture]]]  # titles, and further charts


def write(folder: str | os.PathLike) -> Path:
    """Write the report of the result in `folder` into that folder; return the path of the page."""
    result = store.read(folder)
    config, everything = result.config, scores(result.configurations)
    best, order = winners(everything), learner_numbers(everything)
    found = {kind: pictures(result, kind) for kind in KINDS if kind != "ranks"}
    across = _across(result, best)
    place = _empty_folder(result.folder / "figures")
    for chart in (*(chart for own in found.values() for chart in own), *across.diagrams):
        figures.draw(chart, place)
    rest = [
        tables.published_table(config.get("published", []), everything),
        tables.theorem_table(result.certificates),
        tables.divergence_table(everything, result.curves),
        tables.time_table(result.times, seconds_outside_jobs(result.folder)),
    ]
    drawn = [chart for chart in (*found["loss"], *found["regret"]) if isinstance(chart, Chart)]
    lines = [line for chart in drawn for line in chart.lines]
    page = _render(
        "page.html.jinja",
        order,
        title=config.get("title") or result.folder.resolve().name,
        description=config.get("description", ""),
        summary=_summary(best, everything),
        cards=_cards(result, best, everything, comparator_text(config)),
        across=across,
        parts=_parts(result, best, everything, found),
        has_bounds=any(line.bound for line in lines),
        has_comparator=any(line.learner < 0 for line in lines),
        kinds=figures.KINDS,
        tables=[tables.without_datasets(table) for table in rest if table],
        papers=_papers(result),
        facts=difference.flat(result.environment).items(),
        config=(result.folder / "config.toml").read_text(),
    )
    archive.write_text(result.folder / "report.html", page)
    return result.folder / "report.html"


class Across(NamedTuple):
    """What the page shows of all data sets together."""

    tables: list[Table]
    diagrams: list[RankDiagram]
    refusal: str  # why there is no diagram


def _across(result: store.Result, best: Winners) -> Across:
    found = tables.overview(best), comparisons.leader_table(result.configurations, best)
    given = [table for table in found if table]
    if not given:
        return Across([], [], "")
    try:
        return Across(given, [rank_diagram(best)], "")
    except RefusedValue as why:
        return Across(given, [], f"No critical difference of ranks: {why.args[0]}")


def _parts(
    result: store.Result,
    best: Winners,
    everything: list[Score],
    found: Mapping[str, list[Picture]],
) -> list[Part]:
    """The data sets, one after the other."""
    boards = {table.title: table for table in tables.leaderboards(best, everything)}
    classes = {t.title: t for t in tables.class_error_tables(tables.confusions(result.confusions))}
    parts = []
    for dataset, chosen in by_dataset(best).items():
        own = lambda kind, name=dataset: [one for one in found[kind] if one.dataset == name]
        titles = {"sensitivity": "Sensitivity", "pairs": "Pairs of hyperparameters"}
        groups = [(title, own(kind)) for kind, title in (*titles.items(), ("classes", "Classes"))]
        mine = [
            boards[dataset]._replace(title="Leaderboard"),
            comparisons.seed_table(result.configurations, chosen),
            dataset in classes and classes[dataset]._replace(title="Mistakes by class"),
        ]
        line = f"{chosen[0].learner}, {chosen[0].loss_text}"
        curves = [*own("loss"), *own("regret")]
        shown = [table for table in mine if table]
        parts.append(Part(dataset, line, curves, shown, [one for one in groups if one[1]]))
    return parts


def _papers(result: store.Result) -> list[tuple[str, str]]:
    table = paper.paper_table(result)
    names = {"latex": "LaTeX", "markdown": "Markdown", "csv": "CSV"}
    return [(names[kind], write(table)) for kind, write in paper.FORMATS.items()]


def write_difference(first: store.Result, second: store.Result, place: str | os.PathLike) -> Path:
    """Write the comparison of two results to the file `place`."""
    names = short_names(first, second)
    both = [scores(result.configurations) for result in (first, second)]
    order = learner_numbers([*both[0], *both[1]])
    curves = zip(names, (first.curves, second.curves), map(winners, both), strict=True)
    page = _render(
        "diff.html.jinja",
        order,
        title=f"{names[0]} → {names[1]}",
        summary=f"From {first.folder} to {second.folder}.",
        tables=[tables.without_datasets(one) for one in difference.tables(first, second, names)],
        charts=[*charts.difference_charts([*curves], order)],
        has_bounds=False,
        has_comparator=False,
        kinds=(),
    )
    archive.write_text(Path(place), page)
    return Path(place)


def short_names(first: store.Result, second: store.Result) -> tuple[str, str]:
    """Short names of two results: those of their folders, or their paths if these are the same."""
    places = [result.folder.resolve() for result in (first, second)]
    if places[0].name != places[1].name:
        return places[0].name, places[1].name
    return str(first.folder), str(second.folder)


def _empty_folder(place: Path) -> Path:
    """The folder of the figures, without those of an earlier report."""
    if place.is_symlink():
        raise OSError(f"{place} is a link; remove it: old figures are removed there.")
    place.mkdir(exist_ok=True)
    for stale in place.iterdir():
        if stale.suffix.removeprefix(".") in figures.KINDS:
            stale.unlink()
    return place


def _cards(
    result: store.Result, best: Winners, everything: list[Score], comparator: str
) -> list[tuple[str, str]]:
    """What a reader wants to know first."""
    boards = by_dataset(best)
    firsts = [own[0].learner for own in boards.values()]
    cards = [
        (f"Least mean loss on {dataset}", f"{first.learner}, {first.loss_text}")
        for dataset, (first, *_) in boards.items()
    ]
    if len(boards) >= 4:
        most = max(firsts, key=firsts.count)
        often = f"{most}, on {firsts.count(most)} of {len(boards)} data sets"
        cards = [("Least mean loss most often", often)]
    if comparator:
        cards.append(("Regret is against", comparator))
    if counts := tables.verdict_counts(result.certificates):
        verdicts = ", ".join(f"{name} in {number:,}" for name, number in counts.items())
        cards.append(("Runs of theorems", verdicts))
    lost = sum(score.diverged for score in everything)
    cards.append(("Diverged", f"{lost:,} of {len(everything):,} configurations"))
    return cards


def _summary(best: Winners, everything: list[Score]) -> str:
    learners, datasets = (len({pair[i] for pair in best}) for i in (1, 0))
    runs = sum(score.seeds for score in everything)
    plural = lambda number, word: f"{number:,} {word}{'' if number == 1 else 's'}"
    where = f"{plural(learners, 'learner')} on {plural(datasets, 'data set')}"
    return f"{where}: {plural(runs, 'run')}."


def _render(template: str, learners: dict[str, int], **values: object) -> str:
    """The page of a template; `learners` gives the number of each colour."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_text), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["anchor"] = lambda title: title.lower().replace(" ", "-")
    environment.filters["as_json"] = charts.as_json
    environment.filters["drawing"] = drawing
    script = "\n".join(map(_text, SCRIPTS))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    pairs = [(i, figures.colour(i)) for i in range(len(learners))]
    colours = "".join(f" --c{i}: light-dark({one.light}, {one.dark});" for i, one in pairs)
    style = "\n".join([*map(_text, STYLES), f":root {{{colours} }}"])
    return environment.get_template(template).render(
        style=markupsafe.Markup(style),
        script=markupsafe.Markup(script),
        script_hash=f"'sha256-{digest}'",  # the page runs this script and no other
        learners=learners,
        dashes=[" ".join(map(str, charts.dash(i))) for i in range(len(learners))],
        **values,
    )


def _text(name: str) -> str:
    return resources.files("olx.lab.report").joinpath(name).read_text("utf-8")
