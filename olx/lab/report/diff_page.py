"""The page of a comparison of two results."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from olx import _archive as archive
from olx.lab import store
from olx.lab.report import difference
from olx.lab.report.chart import Chart, Scale, as_json, is_wide
from olx.lab.report.curves import by_dataset, loss_lines
from olx.lab.report.scores import scores, winners
from olx.lab.report.shell import render
from olx.lab.report.tables import without_datasets

DASHES = (5, 4)  # of the first result; lines of the second one are whole


def named(first: store.Result, second: store.Result) -> tuple[str, str]:
    """Short names of two results: those of their folders, or their paths if these are the same."""
    places = [result.folder.resolve() for result in (first, second)]
    if places[0].name != places[1].name:
        return places[0].name, places[1].name
    return str(first.folder), str(second.folder)


def write(first: store.Result, second: store.Result, place: str | os.PathLike) -> Path:
    """Write the comparison to the file `place`."""
    names = named(first, second)
    found = difference.tables(first, second, names)
    order = {}
    for result in (first, second):
        for score in scores(result.configurations):
            order.setdefault(score.learner, len(order))
    page = render(
        "diff.html.jinja",
        order,
        title=f"{names[0]} → {names[1]}",
        summary=f"From {first.folder} to {second.folder}.",
        tables=[without_datasets(table) for table in found],
        charts=[*_charts(first, second, names, order)],
        as_json=as_json,
        kinds=(),
    )
    archive.write_text(Path(place), page)
    return Path(place)


def _charts(
    first: store.Result, second: store.Result, names: tuple[str, str], order: dict[str, int]
) -> Iterator[Chart]:
    """The mean loss so far of all learners in both results, one chart per data set."""
    both = [by_dataset(winners(scores(result.configurations))) for result in (first, second)]
    for number, dataset in enumerate(name for name in both[0] if name in both[1]):
        lines = []
        for result, own, name, dashes in zip(
            (first, second), both, names, (DASHES, ()), strict=True
        ):
            for line in loss_lines(result.curves, own[dataset], order):
                lines.append(line._replace(label=f"{line.label}, {name}", dashes=dashes))
        if not lines:
            continue
        lines.sort(key=lambda line: line.place)
        levels = np.concatenate([line.y for line in lines])
        caption = (
            "Mean loss up to each round of the best configuration of every learner; dashed: "
            f"{names[0]}."
        )
        yield Chart(
            f"loss-{number}", f"Progressive loss on {dataset}", caption, dataset,
            "round", "mean loss so far", (Scale(log=True), Scale(is_wide(levels, 3))),
            lines, len(order),
        )  # fmt: skip
