"""The models of a result: the best configuration of each learner as it was after its last round.

    models/<data set>.<learner>.olx     the learner and its state; `olx.load` reads it
    models/<data set>.<learner>.json    what it is, and how new rows are read as the first ones were

The best configuration is the one of the leaderboard: that with the smallest mean loss over all
seeds. It is played once more by `olx.run`, on the rows of the first seed; every seed has the same
rows in another order, so no seed is chosen by its luck. With the protocol `split` it has seen the
rows that it learned on, not those it was tested on.

What a model learns after its run is kept apart from it (`learned_models`).

`olx predict` reads new rows as the first ones were: the same columns, categories, scale and
intercept. Its table has one row per row of the file:

    prediction             a label of the file, or a number on its scale
    score                  what the learner played; positive for the larger of two labels
    score.<label>          one score per label, if there are several
    probability.<label>    if the loss is one of probabilities: logistic, cross_entropy
"""

import json
import math
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from jax.tree_util import Partial
from jaxtyping import PyTree

import olx
from olx import _archive as archive
from olx._refusal import in_words, own_name
from olx.core import Feedback, Learner, Loss
from olx.engine.savable import check_trust, is_in
from olx.lab import drift, learned_models, store, user_factories
from olx.lab.config import nearest
from olx.lab.data.dataset import table_of
from olx.lab.data.table import Table, ids_of, outcomes_of
from olx.lab.experiment import Experiment, Tree
from olx.lab.fingerprint import slug
from olx.lab.jobs import Job, fill_in
from olx.lab.names import LOSS, make
from olx.lab.prepare import DataCache, job_game
from olx.lab.report.scores import Score, scores, winners
from olx.lab.tasks import outcomes
from olx.lab.tasks.metrics import measure, metric_values
from olx.lab.tasks.task import TASKS

ABOUT = (  # what `olx predict` reads
    "dataset", "learner", "hyperparameters", "rounds", "precision", "task", "loss", "binarize",
    "width", "classes", "unsaved", "table",
)  # fmt: skip
JUDGED = (outcomes.signs, outcomes.classes, outcomes.reals)  # tasks with one label per row
WRITERS: Tree = {".csv": pyarrow.csv.write_csv, ".parquet": pq.write_table}
KEPT = ("job", "configuration")  # a stored model with the same is not played again


class Model(NamedTuple):
    """A trained learner, and where it comes from."""

    learner: Learner
    state: PyTree
    about: Tree


def keep(
    folder: Path,
    experiment: Experiment,
    jobs: list[Job],
    cache: DataCache,
    say: Callable[[str], None],
) -> None:
    """Store the best configuration of every learner on every data set; drop other models."""
    place = folder / "models"
    there = {about["file"]: about for about in model_records(folder)}
    wanted: set[str] = set()
    first = {(job.dataset, job.learner): job for job in reversed(jobs)}  # of the first seed
    for (dataset, learner), score in _best(folder).items() if experiment.models else ():
        job = first.get((dataset, learner))
        if job is None or not math.isfinite(score.means["loss"]):
            continue
        name = _unused(f"{slug(dataset)}.{slug(learner)}", wanted)
        wanted.add(name)
        about = {"file": name, "job": job.name, "configuration": score.configuration}
        old = there.get(name, {})
        if "past" not in old or any(old.get(key) != about[key] for key in KEPT):
            place.mkdir(exist_ok=True)
            _play(place, about, experiment, job, score, cache, say)
        if learned := learned_models.summary_of(folder, name):
            say(f"the model of {learner} on {dataset} {learned}")
    for path in place.glob("*"):
        if path.stem not in wanted:
            path.unlink()
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)


def model_records(folder: str | os.PathLike) -> list[Tree]:
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
    """The model of a learner on a data set of a result, with what it has learned since.

    folder: the result, or the path of one of its models, `models/<name>.olx`.
    learner: its label; the best of the leaderboard if None.
    dataset: its label; may be left out if there is one data set.
    trust: the names of modules outside olx whose functions the model may name, such as your own.
        They are imported from the usual search path, never from inside a result.
    """
    with own_name("models.read"):
        trust = check_trust(trust)
    return load(*find(folder, learner, dataset), trust)


def load(folder: Path, about: Tree, trust: tuple[str, ...] | list[str]) -> Model:
    """The model of a record of a result, with what it has learned since."""
    if about["unsaved"]:
        raise ValueError(f"the model of {about['learner']} was not stored: {about['unsaved']}")
    for module in trust:
        user_factories.refuse_inside(f"the model of {about['learner']}", module)
    about, place = learned_models.newest_record(folder, about)
    return Model(*learned_models.load_model(place, about["precision"], trust), about)


def find(result: str | os.PathLike, learner: str | None, dataset: str | None) -> tuple[Path, Tree]:
    """The folder of a result, and what the model is that was asked for."""
    folder = Path(result)
    if folder.suffix == ".olx" and folder.parent.name == "models":
        name, folder = folder.stem, folder.parent.parent
        for about in model_records(folder):
            if about["file"] == name:
                return folder, _complete(folder, about)
        raise FileNotFoundError(f"{folder} holds no model {name}, with its .json beside.")
    best = _best(folder)
    datasets = list(dict.fromkeys(name for name, _ in best))
    if dataset is None and len(datasets) > 1:
        raise ValueError(f"{folder} has {len(datasets)} data sets; name one: {_some(datasets)}.")
    dataset = datasets[0] if dataset is None else dataset
    if dataset not in datasets:
        raise ValueError(f"{folder} has no data set {dataset!r}; {nearest(dataset, datasets)}")
    known = [_complete(folder, about) for about in model_records(folder)]
    models = {(about["dataset"], about["learner"]): about for about in known}
    ranked = [name for where, name in best if where == dataset]
    if learner is not None and learner not in ranked:
        raise ValueError(f"{folder} has no learner {learner!r}; {nearest(learner, ranked)}")
    asked = [learner] if learner is not None else ranked
    found = [models[dataset, name] for name in asked if (dataset, name) in models]
    if learner is None and len(found) > 1 and _is_baseline(found[0]):
        raise ValueError(
            f"{folder}: {found[0]['learner']!r} leads on {dataset}, so no learner is worth its "
            f"use there; change the config, or name one: learner={found[1]['learner']!r}."
        )
    if not found:
        raise ValueError(
            f"{folder} holds no model of {learner or 'any learner'} on {dataset}: it diverged, or "
            "the config says models = false."
        )
    return folder, found[0]


def _is_baseline(about: Tree) -> bool:
    return about["learner"] == TASKS[about["task"]].baseline.label


def _complete(folder: Path, about: Tree) -> Tree:
    """What a model is; refuses a record that does not say all of it."""
    if missing := [key for key in ABOUT if key not in about]:
        place = folder / "models" / f"{about['file']}.json"
        raise ValueError(f"{place} does not say the {missing[0]} of a model; run its config.")
    return about


def _best(folder: Path) -> dict[tuple[str, str], Score]:
    return winners(scores(store.read(folder).configurations))


def _play(
    place: Path,
    about: Tree,
    experiment: Experiment,
    job: Job,
    score: Score,
    cache: DataCache,
    say: Callable[[str], None],
) -> None:
    data = cache.get(job.data, job.seed)
    game = job_game(experiment, job, data)
    part, i = job.find(score.configuration)
    learner = part.learner(i)
    saves = experiment.budget.save < len(game.rounds.outcome)
    done = olx.run(
        learner,
        game.loss,
        game.rounds,
        game.start,
        keep=drift.last_rounds(len(game.rounds.outcome)),
        measure=drift.past_measure(data.task),
        progress=None if saves else False,
        checkpoint=olx.checkpoint(place.parent / "checkpoints" / about["file"]) if saves else None,
    )
    unsaved = ""
    try:
        olx.save(place / f"{about['file']}.olx", learner, done.state)
    except TypeError as error:
        unsaved = str(error)
        say(f"the model of {job.learner} is not stored: {unsaved}")
    table = table_of(data)
    assert done.curve is not None  # `keep` was given
    about |= {
        "dataset": job.dataset,
        "learner": job.learner,
        "hyperparameters": score.hyperparameters,
        "seed": job.seed,
        "rounds": len(game.rounds.outcome),
        "past": drift.past(done.curve, data.task, np.asarray(game.rounds.outcome)),
        "precision": experiment.precision,
        "task": data.task.name,
        "loss": experiment.loss or data.task.loss,
        "binarize": job.data.binarize,
        "width": data.width,
        "classes": data.classes,
        "modules": sorted({name.partition(":")[0] for name in job.fingerprint["factories"]}),
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


class Served(NamedTuple):
    """The predictions of a model."""

    about: Tree  # the model
    table: pa.Table
    judged: dict[str, float]  # mean loss and metrics; empty if the file has no labels
    note: str  # why the labels of the file were not used, if they were not


def predict(
    result: str | os.PathLike,
    data: str | os.PathLike,
    learner: str | None = None,
    dataset: str | None = None,
    allow_unknown: bool = False,
    trust: tuple[str, ...] | list[str] = (),
) -> Served:
    """What a model of the result says about the rows of a file.

    data: a file of the kind that the learner was trained on, with or without the labels.
    learner, dataset: labels of the config; the best learner if None, the only data set if None.
    allow_unknown: a word that was in no row before becomes zeros; False refuses it.
    trust: the names of modules outside olx whose functions the model may name, such as your own.
    """
    if not Path(data).is_file():
        raise FileNotFoundError(f"{data}: no such file.")
    model = read(result, learner, dataset, trust)
    about = model.about
    table = table_in(result, about)
    rows = table.apply(data, allow_unknown=allow_unknown).astype(about["precision"])
    with jax.enable_x64(about["precision"] == "float64"):
        actions = olx.predict(model.learner, model.state, rows)
        ids = ids_of(table, Path(data))
        columns = {} if ids is None else {table.id: ids}
        columns |= prediction_columns(table, about["loss"], actions)
        judged, note = {}, ""
        if TASKS[about["task"]].read in JUDGED:
            try:
                outcome = outcomes_of(table, Path(data), about["binarize"])
                judged = {} if outcome is None else _score(about, actions, outcome, trust)
            except ValueError as error:
                note = f"{str(error).rstrip('.')}. So no loss is shown."
    return Served(about, pa.table(columns), judged, note)


def table_in(result: str | os.PathLike, about: Tree) -> Table:
    """How a model reads rows; refuses one of a task without rows."""
    if about["table"] is None:
        raise ValueError(
            f"{about['dataset']} is of task {about['task']}, which has no rows of its own to "
            "predict; load the learner in Python: olx.lab.models.read(result)."
        )
    try:
        return Table.from_plain(about["table"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{result}: how the model of {about['learner']} reads a file cannot be read "
            f"({in_words(error)}); run its config again."
        ) from error


def loss_in(about: Tree, trust: Sequence[str]) -> Loss:
    """The loss of a model; refuses a loss of a module that is not trusted."""
    given = about["loss"]
    own = sorted(user_factories.named_modules(given))
    if unknown := [module for module in own if not is_in(module, tuple(trust))]:
        raise ValueError(
            f"The loss is of {unknown[0]}, which is no part of olx. If you trust {unknown[0]}, "
            f"give trust=[{unknown[0]!r}]."
        )
    if isinstance(given, dict):
        given = fill_in(given, about["classes"], about["width"])
    return make("loss", given, *LOSS)


def check_suffix(path: Path) -> None:
    """Refuse a file that predictions cannot be written to."""
    if path.suffix.lower() not in WRITERS:
        raise ValueError(f"{path}: predictions are written as .csv or .parquet; name such a file.")


def write_predictions(table: pa.Table, path: Path) -> None:
    """Write predictions as .csv or .parquet."""
    check_suffix(path)
    with archive.replacing(path) as file:
        WRITERS[path.suffix.lower()](table, file)


def prediction_columns(table: Table, loss: object, actions: np.ndarray) -> Tree:
    """The columns of the predictions that some actions stand for."""
    known = table.labels
    columns: Tree = {}
    if actions.ndim == 1 or known.classes:
        columns["prediction"] = table.predictions(actions)
    if actions.ndim == 1:
        columns["score"] = actions
        if loss == "logistic" and known.signs:
            columns[f"probability.{known.classes[1]}"] = np.asarray(jax.nn.sigmoid(actions))
        return columns
    names = known.classes or range(actions.shape[1])
    columns |= {f"score.{name}": actions[:, i] for i, name in enumerate(names)}
    if loss == "cross_entropy":
        shares = np.asarray(jax.nn.softmax(actions))
        columns |= {f"probability.{name}": shares[:, i] for i, name in enumerate(names)}
    return columns


def _score(
    about: Tree, actions: np.ndarray, outcome: np.ndarray, trust: Sequence[str]
) -> dict[str, float]:
    """The mean loss and the usual metrics of the task."""
    task = TASKS[about["task"]]
    loss = loss_in(about, trust)
    outcome = outcome if task.whole else outcome.astype(actions.dtype)
    value = jax.vmap(loss)(jnp.asarray(actions), jnp.asarray(outcome))
    metrics = drift.usual_metrics(task)
    measured = measure(metrics)
    assert measured is not None  # the tasks that are judged have metrics
    feedback = lambda action, seen, paid: Feedback(None, action, seen, Partial(loss), paid, None)
    found = jax.vmap(lambda *each: measured(feedback(*each)))(
        jnp.asarray(actions), jnp.asarray(outcome), value
    )
    sums = {name: np.sum(each, axis=0) for name, each in found.items()}
    means = metric_values(metrics, sums, outcome)
    return {"loss": float(jnp.mean(value)), **{name: float(mean) for name, mean in means.items()}}
