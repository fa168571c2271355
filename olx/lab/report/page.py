"""Write a result as one page without network; figures are on the page and also files.

report.html      the page
figures/         every figure as .svg, .png and .pdf
"""

import math
import os
from pathlib import Path

from olx import _archive as archive
from olx.lab import store
from olx.lab.play import seconds_outside_jobs
from olx.lab.report import classes, figure, tables
from olx.lab.report.chart import as_json
from olx.lab.report.curves import by_dataset, loss_charts, regret_charts
from olx.lab.report.diverged import diverged
from olx.lab.report.pairs import pairs
from olx.lab.report.scores import Score, scores, winners
from olx.lab.report.sensitivity import sensitivity
from olx.lab.report.shell import render
from olx.lab.report.theorems import certificates, counts
from olx.lab.report.times import times
from olx.lab.report.words import comparator, facts, plus_minus


def write(folder: str | os.PathLike) -> Path:
    """Write the report of the result in `folder` into that folder; return the path of the page.

    The best configuration of a learner has the smallest mean loss over all seeds. It is chosen in
    hindsight, as in a grid search.
    """
    result = store.read(folder)
    config, everything = result.config, scores(result.configurations)
    best, order = winners(everything), numbered(everything)
    figures = result.folder / "figures"
    if figures.is_symlink():
        raise OSError(f"{figures} is a link; remove it: old figures are removed there.")
    figures.mkdir(exist_ok=True)
    for stale in figures.iterdir():
        if stale.suffix.removeprefix(".") in figure.KINDS:
            stale.unlink()
    across = tables.overview(best)
    against = comparator(config)
    charts = {
        "Progressive loss": [*loss_charts(result.curves, best, order, against)],
        "Regret": [*regret_charts(result.curves, best, order, against)],
        "Sensitivity": [*sensitivity(everything, order)],
    }
    for each in (chart for own in charts.values() for chart in own):
        figure.draw(each, figures)
    sections = [*charts.items(), ("Pairs of hyperparameters", [*pairs(everything, figures)])]
    confused = classes.counts(result.confusions)
    rest = [
        tables.published(config.get("published", []), everything),
        certificates(result.certificates),
        diverged(everything, result.curves),
        times(result.times, seconds_outside_jobs(result.folder)),
    ]
    page = render(
        "page.html.jinja",
        order,
        title=config.get("title") or result.folder.resolve().name,
        description=config.get("description", ""),
        summary=_summary(best, everything),
        cards=_cards(result, best, everything, against),
        boards=[*([across] if across else []), *tables.leaderboards(best, everything)],
        sections=[(title, own) for title, own in sections if own],
        classes=([*classes.errors(confused)], [*classes.matrices(confused, figures)]),
        as_json=as_json,
        kinds=figure.KINDS,
        tables=[tables.without_datasets(table) for table in rest if table],
        facts=facts(result.environment),
        config=(result.folder / "config.toml").read_text(),
    )
    place = result.folder / "report.html"
    archive.write_text(place, page)
    return place


def numbered(everything: list[Score]) -> dict[str, int]:
    """The number of each learner, which gives its colour."""
    return {name: i for i, name in enumerate(dict.fromkeys(score.learner for score in everything))}


def _cards(
    result: store.Result, best: dict, everything: list[Score], against: str
) -> list[tuple[str, str]]:
    """What a reader wants to know first."""
    cards = []
    boards = by_dataset(best)
    for dataset, (first, *_) in boards.items() if len(boards) < 4 else ():
        said = f"{first.learner}, {plus_minus(first.means['loss'], first.errors['loss'])}"
        cards.append((f"Least mean loss on {dataset}", said))
    if len(boards) >= 4:
        firsts = [own[0].learner for own in boards.values()]
        most = max(firsts, key=firsts.count)
        said = f"{most}, on {firsts.count(most)} of {len(boards)} data sets"
        cards.append(("Least mean loss most often", said))
    if against:
        cards.append(("Regret is against", against))
    if judged := counts(result.certificates):
        said = ", ".join(f"{name} in {number:,}" for name, number in judged.items())
        cards.append(("Runs of theorems", said))
    lost = sum(not math.isfinite(score.means["loss"]) for score in everything)
    cards.append(("Diverged", f"{lost:,} of {len(everything):,} configurations"))
    return cards


def _summary(best: dict, everything: list) -> str:
    datasets = len({dataset for dataset, _ in best})
    learners = len({learner for _, learner in best})
    runs = sum(score.seeds for score in everything)
    plural = lambda number, word: f"{number:,} {word}{'' if number == 1 else 's'}"
    return (
        f"{plural(learners, 'learner')} on {plural(datasets, 'data set')}: {plural(runs, 'run')}."
    )
