"""Predictions of the models of a result for new rows: `olx predict`.

New rows are read as the first ones were: the same columns, categories, scale and intercept. The
table of predictions has one row per row of the file:

    prediction             a label of the file, or a number on its scale
    score                  what the learner played; positive for the larger of two labels
    score.<label>          one score per label, if there are several
    probability.<label>    if the loss is one of probabilities: logistic, cross_entropy
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from jax.tree_util import Partial

import olx
from olx import _archive as archive
from olx._refusal import in_words
from olx.core import Feedback
from olx.engine.savable import is_in
from olx.lab import models, outcomes, outside
from olx.lab.data import Table, outcomes_of
from olx.lab.factories import make
from olx.lab.metrics import told
from olx.lab.names import LOSS
from olx.lab.plan import filled
from olx.lab.tasks import TASKS

JUDGED = (outcomes.signs, outcomes.classes, outcomes.reals)  # tasks with one label per row

WRITERS: dict[str, Any] = {".csv": pyarrow.csv.write_csv, ".parquet": pq.write_table}


class Served(NamedTuple):
    """The predictions of a model."""

    about: dict[str, Any]  # the model
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
    model = models.read(result, learner, dataset, trust)
    about = model.about
    if about["table"] is None:
        raise ValueError(
            f"{about['dataset']} is of task {about['task']}, which has no rows of its own to "
            "predict; load the learner in Python: olx.lab.models.read(result)."
        )
    try:
        table = Table.from_plain(about["table"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{result}: how the model of {about['learner']} reads a file cannot be read "
            f"({in_words(error)}); run its config again."
        ) from error
    rows = table.apply(data, allow_unknown=allow_unknown).astype(about["precision"])
    with jax.enable_x64(about["precision"] == "float64"):
        actions = olx.predict(model.learner, model.state, rows)
        columns = _columns(table, about["loss"], actions)
        judged, note = {}, ""
        if TASKS[about["task"]].read in JUDGED:
            try:
                outcome = outcomes_of(table, Path(data), about["binarize"])
                judged = {} if outcome is None else _judged(about, actions, outcome, trust)
            except ValueError as error:
                note = str(error)
    return Served(about, pa.table(columns), judged, note)


def check_suffix(path: Path) -> None:
    """Refuse a file that predictions cannot be written to."""
    if path.suffix.lower() not in WRITERS:
        raise ValueError(f"{path}: predictions are written as .csv or .parquet; name such a file.")


def write(table: pa.Table, path: Path) -> None:
    """Write predictions as .csv or .parquet."""
    check_suffix(path)
    with archive.replacing(path) as file:
        WRITERS[path.suffix.lower()](table, file)


def _columns(table: Table, loss: Any, actions: np.ndarray) -> dict[str, Any]:
    known = table.labels
    columns: dict[str, Any] = {}
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


def _judged(
    about: dict[str, Any], actions: np.ndarray, outcome: np.ndarray, trust: Sequence[str]
) -> dict[str, float]:
    """The mean loss and the usual metrics of the task."""
    task = TASKS[about["task"]]
    given = about["loss"]
    own = sorted(outside.named_modules(given))
    if unknown := [module for module in own if not is_in(module, tuple(trust))]:
        raise ValueError(
            f"The labels of the file are not used: the loss is of {unknown[0]}, which is no part "
            f"of olx. If you trust {unknown[0]}, give trust=[{unknown[0]!r}]."
        )
    if isinstance(given, dict):
        given = filled(given, about["classes"], about["width"])
    loss = make("loss", given, *LOSS)
    outcome = outcome if task.whole else outcome.astype(actions.dtype)
    value = jax.vmap(loss)(jnp.asarray(actions), jnp.asarray(outcome))
    metrics = task.usual or task.others[:1]

    def measured(action: Any, seen: Any, paid: Any) -> dict[str, Any]:
        feedback = Feedback(None, action, seen, Partial(loss), paid, None)
        return {metric.name: metric.round(feedback) for metric in metrics}

    found = jax.vmap(measured)(jnp.asarray(actions), jnp.asarray(outcome), value)
    sums = {name: np.sum(each) for name, each in found.items()}
    means = told(metrics, sums, len(outcome))
    return {"loss": float(jnp.mean(value)), **{name: float(mean) for name, mean in means.items()}}
