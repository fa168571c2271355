"""The models of a result: the best configuration of each learner as it was after its last round.

    models/<data set>.<learner>.olx     the learner and its state; `olx.load` reads it
    models/<data set>.<learner>.json    what it is, and how new rows are read as the first ones were

The best configuration is the one of the leaderboard: that with the smallest mean loss over all
seeds. It is played once more by `olx.run`, on the rows of the first seed; every seed has the same
rows in another order, so no seed is chosen by its luck. With the protocol `split` it has seen the
rows that it learned on, not those it was tested on.
"""

import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax

import olx
from olx import _archive as archive
from olx._refusal import own_name
from olx.core import Learner
from olx.engine.savable import check_trust
from olx.lab import outside, store
from olx.lab.data import table_of
from olx.lab.experiment import Experiment
from olx.lab.jobs import Job, Shelf, game_of
from olx.lab.refusals import nearest
from olx.lab.report.scores import Score, scores, winners
from olx.lab.stories import slug
from olx.lab.sweeps import one

ABOUT = (  # what `olx predict` reads
    "dataset", "learner", "hyperparameters", "rounds", "precision", "task", "loss", "binarize",
    "width", "classes", "unsaved", "table",
)  # fmt: skip
KEPT = ("job", "configuration")  # a stored model with the same is not played again


class Model(NamedTuple):
    """A trained learner, and where it comes from."""

    learner: Learner
    state: Any
    about: dict[str, Any]


def keep(
    folder: Path, experiment: Experiment, jobs: list[Job], shelf: Shelf, say: Callable[[str], None]
) -> None:
    """Store the best configuration of every learner on every data set; drop other models."""
    place = folder / "models"
    there = {about["file"]: about for about in listed(folder)}
    wanted: set[str] = set()
    first = {(job.dataset, job.plan.label): job for job in reversed(jobs)}  # of the first seed
    for (dataset, learner), score in _best(folder).items() if experiment.models else ():
        job = first.get((dataset, learner))
        if job is None or not math.isfinite(score.means["loss"]):
            continue
        name = _unused(f"{slug(dataset)}.{slug(learner)}", wanted)
        wanted.add(name)
        about = {"file": name, "job": job.name, "configuration": score.configuration}
        old = there.get(name, {})
        if any(old.get(key) != about[key] for key in KEPT):
            place.mkdir(exist_ok=True)
            _play(place, about, experiment, job, score, shelf, say)
    for path in place.glob("*"):
        if path.stem not in wanted:
            path.unlink()
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)


def listed(folder: str | os.PathLike) -> list[dict[str, Any]]:
    """What the models of a result are."""
    places = sorted((Path(folder) / "models").glob("*.json"))
    found = [store.text(place.parent, place.name, json.loads) for place in places]
    known = [about if isinstance(about, dict) else {} for about in found]
    return [{**about, "file": place.stem} for about, place in zip(known, places, strict=True)]


def read(
    folder: str | os.PathLike,
    learner: str | None = None,
    dataset: str | None = None,
    trust: tuple[str, ...] | list[str] = (),
) -> Model:
    """The model of a learner on a data set of a result.

    learner: its label; the best of the leaderboard if None.
    dataset: its label; may be left out if there is one data set.
    trust: the names of modules outside olx whose functions the model may name, such as your own.
        They are imported from the usual search path, never from inside a result.
    """
    with own_name("models.read"):
        trust = check_trust(trust)
    folder = Path(folder)
    best = _best(folder)
    datasets = list(dict.fromkeys(name for name, _ in best))
    if dataset is None and len(datasets) > 1:
        raise ValueError(f"{folder} has {len(datasets)} data sets; name one: {_some(datasets)}.")
    dataset = datasets[0] if dataset is None else dataset
    if dataset not in datasets:
        raise ValueError(f"{folder} has no data set {dataset!r}; {nearest(dataset, datasets)}")
    stored = {}
    for about in listed(folder):
        if missing := [key for key in ABOUT if key not in about]:
            place = folder / "models" / f"{about['file']}.json"
            raise ValueError(f"{place} does not say the {missing[0]} of a model; run its config.")
        stored[about["dataset"], about["learner"]] = about
    ranked = [name for where, name in best if where == dataset]
    if learner is not None and learner not in ranked:
        raise ValueError(f"{folder} has no learner {learner!r}; {nearest(learner, ranked)}")
    asked = [learner] if learner is not None else ranked
    found = [stored[dataset, name] for name in asked if (dataset, name) in stored]
    if not found:
        raise ValueError(
            f"{folder} holds no model of {learner or 'any learner'} on {dataset}: it diverged, or "
            "the config says models = false."
        )
    about = found[0]
    if about["unsaved"]:
        raise ValueError(f"the model of {about['learner']} was not stored: {about['unsaved']}")
    for module in trust:
        outside.refuse_inside(f"the model of {about['learner']}", module)
    with jax.enable_x64(about["precision"] == "float64"):
        loaded = olx.load(folder / "models" / f"{about['file']}.olx", trust=trust)
    return Model(*loaded, about)


def _best(folder: Path) -> dict[tuple[str, str], Score]:
    return winners(scores(store.read(folder).configurations))


def _play(
    place: Path,
    about: dict[str, Any],
    experiment: Experiment,
    job: Job,
    score: Score,
    shelf: Shelf,
    say: Callable[[str], None],
) -> None:
    data = shelf.get(job.data, job.seed)
    game = game_of(experiment, job, data)
    part = next(part for part in job.plan.parts if score.configuration in part.index)
    learner = one(part, part.index.index(score.configuration))
    saves = experiment.budget.save < len(game.rounds.outcome)
    done = olx.run(
        learner,
        game.loss,
        game.rounds,
        game.start,
        keep=olx.keep.totals,
        progress=None if saves else False,
        checkpoint=olx.checkpoint(place.parent / "checkpoints" / about["file"]) if saves else None,
    )
    unsaved = ""
    try:
        olx.save(place / f"{about['file']}.olx", learner, done.state)
    except TypeError as error:
        unsaved = str(error)
        say(f"the model of {job.plan.label} is not stored: {unsaved}")
    table = table_of(data)
    about |= {
        "dataset": job.dataset,
        "learner": job.plan.label,
        "hyperparameters": score.hyperparameters,
        "seed": job.seed,
        "rounds": len(game.rounds.outcome),
        "precision": experiment.precision,
        "task": data.task.name,
        "loss": experiment.loss or data.task.loss,
        "binarize": job.data.binarize,
        "width": data.width,
        "classes": data.classes,
        "modules": sorted({name.partition(":")[0] for name in job.story["factories"]}),
        "unsaved": unsaved,
        "table": None if table is None else json.loads(table.to_json()),
    }
    archive.write_json(place / f"{about['file']}.json", about)


def _unused(name: str, taken: set[str]) -> str:
    """The name, with a number if another model has it."""
    number = 2
    while (found := name if number == 2 else f"{name}-{number - 1}") in taken:
        number += 1
    return found


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
