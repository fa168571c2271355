"""Tasks: one value says all that the lab needs to know about a task."""

import dataclasses
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx.lab import tasks
from olx.lab.config import ConfigError, parse
from olx.lab.data import catalogue, load
from olx.lab.metrics import Metric
from olx.lab.report.scores import scores, tuned
from olx.lab.run import run

LAB = Path(olx.__file__).parent / "lab"


def test_the_catalogue_names_tasks_that_there_are():
    assert {entry.task for entry in catalogue().values()} <= set(tasks.TASKS)


@pytest.mark.parametrize("task", tasks.TASKS.values(), ids=lambda task: task.name)
def test_the_usual_loss_of_a_task_is_a_loss_of_the_library(task):
    assert task.loss is None or hasattr(olx.losses, task.loss)


def rows(place, x, y, expert_loss):
    """Outcomes of a task that the library does not have: how often each row was seen."""
    return y.astype(float)


def hits(feedback):
    """The share of outcomes that the prediction rounds to."""
    return jnp.round(feedback.action) == feedback.outcome


def twice(w, context):
    return 2 * olx.dot(w, context)


COUNTS = tasks.Task(
    "counts",
    rows,
    lambda rounds: False,
    dataclasses.replace(
        tasks.SCORE,
        first=0.5,
        lift=lambda inner: olx.model(inner, twice),
        apply=twice,
        zero=jnp.ones_like,
    ),
    "absolute",
    (Metric(hits, rising=True),),
)


@pytest.fixture
def counts(tmp_path, monkeypatch):
    """A data set of the task `counts`, which nothing but its record knows."""
    monkeypatch.setitem(tasks.TASKS, "counts", COUNTS)
    monkeypatch.setitem(tasks.METRICS, "hits", COUNTS.usual[0])
    x = np.random.default_rng(0).integers(0, 3, (12, 2)).astype(float)
    np.savez(tmp_path / "mine.npz", X=x, y=x @ [2, 4])
    data = {"name": str(tmp_path / "mine.npz"), "label": "mine", "task": "counts", "order": "file"}
    learner = {"name": "ogd", "linear": True, "grid": {"eta": [0.02, 0.3]}}
    return {"precision": "float64", "data": [data], "learners": [learner], "comparator": "zero"}, x


def test_a_new_task_is_one_value(counts, tmp_path):
    tree, x = counts
    result = run(parse(tree), tmp_path / "r")
    y, share, total = x @ [2, 4], [], []
    for eta in (0.02, 0.3):
        w, paid, seen = np.full(2, 0.5), 0.0, 0
        for row, outcome in zip(x, y, strict=True):
            score = 2 * w @ row
            paid, seen = paid + abs(score - outcome), seen + (np.round(score) == outcome)
            w = w - eta * 2 * np.sign(score - outcome) * row
        share.append(seen / 12)
        total.append(paid)
    table = result.configurations
    np.testing.assert_allclose(table.column("total").to_pylist(), total, rtol=1e-12)
    assert table.column("hits").to_pylist() == share
    nobody = np.abs(x @ [2, 2] - y).sum()
    last = result.curves.filter(np.array(result.curves.column("round")) == 12)
    np.testing.assert_allclose(last.column("regret").to_pylist(), np.array(total) - nobody)
    assert share[0] != share[1]
    best = tuned(scores(table), "mine", "ogd", "hits")
    assert best is not None
    assert best.means["hits"] == max(share)


def test_a_task_says_what_it_is_measured_by(counts):
    tree, _ = counts
    from olx.lab.jobs import Shelf, prepare

    experiment = parse({**tree, "metrics": ["wealth"]})
    with pytest.raises(ConfigError, match="wealth is for portfolio data, got counts"):
        prepare(experiment, Shelf(experiment))


def test_the_lab_compares_no_names_of_tasks():
    """The catalogue and the LIBSVM collection are sorted by them; two names are also modules."""
    own = {"tasks.py", "download.py", "sources.py"}
    for path in LAB.rglob("*.py"):
        text = path.read_text()
        found = [name for name in tasks.TASKS if f'"{name}"' in text]
        modules = {"experts", "multiclass"}
        assert path.name in own or set(found) <= modules, f"{path} names {found}"


def test_whole_outcomes_stay_whole():
    assert load("sklearn:iris").rounds(np.float32).outcome.dtype == np.int32


def test_classes_are_played_by_matrices_and_by_copies(tmp_path):
    """`params` has a row per class, or is that of a copy; k = "classes" is that of the data."""
    data = [{"name": f"sklearn:{name}", "scale": "standard"} for name in ("iris", "wine")]
    learners = [
        {"name": "multiclass.perceptron"},
        {"name": "multiclass.passive_aggressive_1", "grid": {"aggressiveness": [0.01, 0.1]}},
        {"name": "one_vs_rest", "k": "classes", "inner": "classification.perceptron"},
        {"name": "ogd", "linear": True, "label": "softmax", "eta": 0.1},
    ]
    given = {"data": data, "learners": learners, "comparator": "zero", "bound": "all"}
    result = run(parse(given), tmp_path / "r")
    table = scores(result.configurations)
    for name in ("sklearn:iris", "sklearn:wine"):
        for learner in learners:
            best = tuned(table, name, learner.get("label", learner["name"]), "error")
            assert best is not None
            assert 0 < best.means["error"] < 0.4
    assert all(result.certificates.column("holds").to_pylist())
