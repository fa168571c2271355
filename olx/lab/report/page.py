"""Write a result as one page without network or scripts; figures are inline and also files.

report.html      the page
figures/         every figure as .svg and .png
"""

import os
from importlib import resources
from pathlib import Path

import jinja2

from olx.lab import store
from olx.lab.report import tables
from olx.lab.report.curves import loss_curves, regret_curves
from olx.lab.report.scores import scores, winners
from olx.lab.report.sensitivity import heat_maps, sensitivity
from olx.lab.report.words import facts


def write(folder: str | os.PathLike) -> Path:
    """Write the report of the result in `folder` into that folder; return the path of the page.

    The best configuration of a learner has the smallest mean loss over all seeds. It is chosen in
    hindsight, as in a grid search.
    """
    result = store.read(folder)
    config, everything = result.config, scores(result.configurations)
    best = winners(everything)
    order: dict[str, int] = {}
    for score in everything:
        order.setdefault(score.learner, len(order))
    figures = result.folder / "figures"
    figures.mkdir(exist_ok=True)
    for stale in (*figures.glob("*.svg"), *figures.glob("*.png")):
        stale.unlink()
    across = tables.overview(best)
    sections = [
        ("Progressive loss", loss_curves(result.curves, best, order, figures)),
        ("Regret", regret_curves(result.curves, best, order, figures)),
        ("Sensitivity", sensitivity(everything, order, figures)),
        ("Pairs of hyperparameters", heat_maps(everything, order, figures)),
    ]
    rest = [
        tables.published(config.get("published", []), everything),
        tables.certificates(result.certificates),
        tables.times(result.times),
    ]
    page = _template().render(
        title=config.get("title") or result.folder.resolve().name,
        description=config.get("description", ""),
        summary=_summary(best, everything),
        boards=[*([across] if across else []), *tables.leaderboards(best, everything)],
        sections=[(title, pictures) for title, pictures in sections if pictures],
        tables=[table for table in rest if table],
        facts=facts(result.environment),
        config=(result.folder / "config.toml").read_text(),
    )
    place = result.folder / "report.html"
    place.write_text(page, encoding="utf-8")
    return place


def _summary(best: dict, everything: list) -> str:
    datasets = len({dataset for dataset, _ in best})
    learners = len({learner for _, learner in best})
    runs = sum(score.seeds for score in everything)
    plural = lambda number, word: f"{number:,} {word}{'' if number == 1 else 's'}"
    return (
        f"{plural(learners, 'learner')} on {plural(datasets, 'data set')}: {plural(runs, 'run')}."
    )


def _template() -> jinja2.Template:
    text = resources.files("olx.lab.report").joinpath("page.html.jinja").read_text("utf-8")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["anchor"] = lambda title: title.lower().replace(" ", "-")
    return environment.from_string(text)
