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

import jinja2
import markupsafe

from olx import _archive as archive
from olx.lab import store
from olx.lab.play import seconds_outside_jobs
from olx.lab.report import charts, difference, figures, tables
from olx.lab.report.scores import Score, Winners, by_dataset, scores, value_text, winners

STYLES = ("vendor/uPlot.min.css", "page.css")
SCRIPTS = ("vendor/uPlot.iife.min.js", "charts.js", "page.js")
COMPARATORS = {
    None: "",
    "zero": "the decision 0, or equal weights of experts",
    "truth": "the decision that generated the data",
    "best": "the best decision in hindsight",
}


def write(folder: str | os.PathLike) -> Path:
    """Write the report of the result in `folder` into that folder; return the path of the page."""
    result = store.read(folder)
    config, everything = result.config, scores(result.configurations)
    best, order = winners(everything), learner_numbers(everything)
    comparator, confusions = comparator_text(config), tables.confusions(result.confusions)
    sections = {
        "Progressive loss": [*charts.loss_charts(result.curves, best, order, comparator)],
        "Regret": [*charts.regret_charts(result.curves, best, order, comparator)],
        "Sensitivity": [*charts.sensitivity_charts(everything, order)],
        "Pairs of hyperparameters": [*charts.pair_maps(everything)],
    }
    matrices = [*charts.confusion_maps(confusions)]
    place = _empty_folder(result.folder / "figures")
    for chart in (*(chart for own in sections.values() for chart in own), *matrices):
        figures.draw(chart, place)
    across = tables.overview(best)
    rest = [
        tables.published_table(config.get("published", []), everything),
        tables.theorem_table(result.certificates),
        tables.divergence_table(everything, result.curves),
        tables.time_table(result.times, seconds_outside_jobs(result.folder)),
    ]
    page = _render(
        "page.html.jinja",
        order,
        title=config.get("title") or result.folder.resolve().name,
        description=config.get("description", ""),
        summary=_summary(best, everything),
        cards=_cards(result, best, everything, comparator),
        boards=[*([across] if across else []), *tables.leaderboards(best, everything)],
        sections=[(title, own) for title, own in sections.items() if own],
        classes=([*tables.class_error_tables(confusions)], matrices),
        kinds=figures.KINDS,
        tables=[tables.without_datasets(table) for table in rest if table],
        facts=difference.flat(result.environment).items(),
        config=(result.folder / "config.toml").read_text(),
    )
    archive.write_text(result.folder / "report.html", page)
    return result.folder / "report.html"


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
        kinds=(),
    )
    archive.write_text(Path(place), page)
    return Path(place)


def learner_numbers(everything: list[Score]) -> dict[str, int]:
    """The number of each learner, which gives its colour."""
    return {name: i for i, name in enumerate(dict.fromkeys(score.learner for score in everything))}


def short_names(first: store.Result, second: store.Result) -> tuple[str, str]:
    """Short names of two results: those of their folders, or their paths if these are the same."""
    places = [result.folder.resolve() for result in (first, second)]
    if places[0].name != places[1].name:
        return places[0].name, places[1].name
    return str(first.folder), str(second.folder)


def comparator_text(config: Mapping) -> str:
    """The comparator of an experiment in words; "" if there is none.

    >>> comparator_text({"comparator": "best", "radius": 2.0, "learners": []})
    'the best decision in hindsight in the ball of radius 2'
    """
    text = COMPARATORS[config.get("comparator")]
    if config.get("comparator") == "best" and "radius" in config:
        text += f" in the ball of radius {config['radius']:g}"
    own = [
        f"{one.get('label') or one['name']}: in {value_text(one['compare_in'])}"
        for one in config.get("learners", [])
        if one.get("compare_in")
    ]
    return f"{text} ({'; '.join(own)})" if own else text


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
        **values,
    )


def _text(name: str) -> str:
    return resources.files("olx.lab.report").joinpath(name).read_text("utf-8")
