"""A stored model goes on learning, from the rows of a file.

`olx learn` plays `olx.run` from the newest state of a model, on the rows in the order of the file,
and stores the state after them; `olx.lab.learned_models` says where. Each row is predicted before
it is learned, so the mean loss is that of a model that never saw the row. A row is read as the
first ones were. If a row is refused, nothing is stored.
"""

import contextlib
import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jaxtyping import Array, PyTree

import olx
from olx._refusal import own_name
from olx.core import Feedback, Learner, Loss, Rounds
from olx.engine.decision import start_like
from olx.engine.savable import check_trust
from olx.lab import drift, learned_models, models
from olx.lab.data.table import Table, outcomes_of
from olx.lab.learned_models import LearnedFolder, Progress
from olx.lab.tasks.metrics import measure, metric_values
from olx.lab.tasks.task import TASKS
from olx.streams.sparse_rows import sparse_rows

Tree = dict[str, Any]


class OpenModel(NamedTuple):
    """A model that learns in this process alone."""

    learner: Learner
    loss: Loss
    table: Table
    about: Tree
    folder: LearnedFolder

    def context(self, found: Any) -> Any:
        """Contexts in the dtype of the model; what does not fit is infinite, and refused later."""
        with np.errstate(over="ignore"):
            return found.astype(self.about["precision"])

    def outcome(self, found: np.ndarray) -> np.ndarray:
        """Outcomes in the dtype of the model."""
        whole = TASKS[self.about["task"]].whole
        return found if whole else self.context(found)

    def weight(self, outcome: np.ndarray) -> Any:
        """The weights of the classes of some outcomes; None for 1."""
        found = self.table.labels.row_weights(outcome)
        return None if found is None else self.context(found)


@contextlib.contextmanager
def open_model(
    result: str | os.PathLike,
    learner: str | None = None,
    dataset: str | None = None,
    trust: tuple[str, ...] | list[str] = (),
) -> Iterator[OpenModel]:
    """The model of a learner on a data set of a result, for learning; one process at a time."""
    with own_name("learn"):
        trust = check_trust(trust)
    folder, about = models.find(result, learner, dataset)
    if TASKS[about["task"]].read not in models.JUDGED:
        raise ValueError(
            f"{about['dataset']} is of task {about['task']}; rows with one label each can be "
            "learned, of task binary, multiclass or regression. Run the config on all rows."
        )
    with learned_models.lock(folder, about["file"]):
        stored = models.load(folder, about, trust)
        table = models.table_in(result, stored.about)
        loss = models.loss_in(stored.about, trust)
        progress = learned_models.progress_of(stored.about, stored.state)
        place = LearnedFolder(folder, stored.about, stored.learner, progress)
        with contextlib.closing(place), jax.enable_x64(about["precision"] == "float64"):
            yield OpenModel(stored.learner, loss, table, stored.about, place)


class LearnedRows(NamedTuple):
    """What a model paid for new rows."""

    about: Tree
    rounds: int  # of the model, with the new rows
    count: int  # of the new rows
    replayed: int  # rows of a service that was killed, which were learned first
    means: dict[str, float]  # loss and metrics on the new rows, each before it was learned
    past: dict[str, float]  # the same over its run; empty if the result is of an older version
    alarm: bool  # whether the loss is above that of the past by more than chance
    judgement: str  # why


def learn(
    result: str | os.PathLike,
    data: str | os.PathLike,
    learner: str | None = None,
    dataset: str | None = None,
    trust: tuple[str, ...] | list[str] = (),
) -> LearnedRows:
    """Learn the rows of a file with a model of a result, in order, and store it.

    data: a file of the kind that the learner was trained on, with the labels.
    learner, dataset: labels of the config; the best learner if None, the only data set if None.
    trust: the names of modules outside olx whose functions the model may name, such as your own.
    """
    if not Path(data).is_file():
        raise FileNotFoundError(f"{data}: no such file.")
    with open_model(result, learner, dataset, trust) as model:
        x, y = _rows(model, Path(data))
        before = newest_progress(model)
        state, losses, sums = _play(model, before.state, x, y)
        refuse_divergence(losses)
        after = before.after(state, losses.tolist())
        model.folder.save(after)
        task, past = TASKS[model.about["task"]], dict(model.about.get("past", {}))
        means = metric_values(drift.usual_metrics(task), sums, y)
        last = drift.Losses(**past.pop("last", drift.losses_of([])._asdict()))
        alarm, said = drift.judgement(last, drift.losses_of(losses))
        return LearnedRows(
            model.about,
            after.rounds,
            len(losses),
            before.rounds - model.about["rounds"],
            {"loss": float(losses.mean()), **{name: float(each) for name, each in means.items()}},
            past,
            alarm,
            said,
        )


def newest_progress(model: OpenModel) -> Progress:
    """The model after the rows in the log of a service that was killed."""
    from olx.lab.data.json_rows import JsonRows

    progress = model.folder.saved
    reader = JsonRows(model.table, model.about["binarize"], allow_unknown=True)  # as it was then
    for entry in model.folder.entries():
        if entry.rounds != progress.rounds:
            raise ValueError(
                f"{model.folder.path}: the log goes on after {entry.rounds} rounds, the model "
                f"has {progress.rounds}; restore the folder from a backup, or move it away."
            )
        for rows in entry.requests:
            progress = step_by_step(model, reader, progress, rows)[0]
    return progress


def step_by_step(
    model: OpenModel, reader: Any, progress: Progress, rows: list[Tree]
) -> tuple[Progress, list[float]]:
    """The model after some rows, each played by `olx.step`, and what it paid.

    So the state depends on the rows and their order alone, not on which came together.
    """
    x = model.context(reader.contexts(rows))
    y, state, losses = model.outcome(reader.outcomes(rows)), progress.state, []
    weights = model.weight(y)
    weights = [1.0] * len(y) if weights is None else weights
    for context, outcome, weight in zip(x, y, weights, strict=True):
        state, _, paid = olx.step(model.learner, model.loss, state, context, outcome, weight)
        losses.append(float(paid))
    refuse_divergence(np.array(losses))
    return progress.after(state, losses), losses


def refuse_divergence(losses: np.ndarray) -> None:
    """Refuse a state after a loss that is no number."""
    if not np.all(np.isfinite(losses)):
        row = int(np.argmin(np.isfinite(losses)))
        raise ValueError(f"the loss of row {row} is {losses[row]:g}; nothing of it is learned.")


def _rows(model: OpenModel, path: Path) -> tuple[Any, np.ndarray]:
    """The contexts and the outcomes of a file."""
    found = outcomes_of(model.table, path, model.about["binarize"])
    if found is None:
        column = model.table.labels.name
        raise ValueError(
            f"{path} has no column of labels{f' {column!r}' if column else ''}, and a learner "
            "learns by them; `olx predict` takes rows without."
        )
    x = model.context(model.table.apply(path))
    return sparse_rows(x) if scipy.sparse.issparse(x) else x, model.outcome(found)


def _play(
    model: OpenModel, state: PyTree, x: Any, y: np.ndarray
) -> tuple[PyTree, np.ndarray, dict[str, np.ndarray]]:
    """The state after the rows, the loss of each, and the sums of the metrics."""
    task = TASKS[model.about["task"]]
    metrics = functools.partial(_metrics, drift.usual_metrics(task))
    row = jax.ShapeDtypeStruct(x.shape[1:], x.dtype)
    start = start_like(model.learner, state, row)
    if start is None:
        raise ValueError(
            f"how {model.about['learner']} began cannot be found in its state; learn in "
            "Python: olx.run(..., state=olx.lab.models.read(result).state)."
        )
    params = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), start)
    options: Tree = {"state": state, "record": metrics, "progress": False}
    rounds = Rounds(x, y, model.weight(y))
    done = olx.run(model.learner, model.loss, rounds, params, **options)
    sums = {name: np.sum(np.asarray(each, float), 0) for name, each in (done.trace or {}).items()}
    return done.state, np.asarray(done.losses, float), sums


def _metrics(metrics: tuple, state: PyTree, feedback: Feedback) -> dict[str, Array]:
    found = measure(metrics)
    return {} if found is None else found(feedback)
