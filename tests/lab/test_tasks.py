"""Tasks: one value says all that the lab needs to know about a task."""

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn.metrics as sk

import olx
from olx.core import Feedback
from olx.lab.config import ConfigError, parse
from olx.lab.data import catalogue, load
from olx.lab.report.scores import scores, tuned_score, winners
from olx.lab.run import run
from olx.lab.tasks import baselines, task
from olx.lab.tasks.metrics import Metric, measure, metric_values

LAB = Path(olx.__file__).parent / "lab"


def test_the_catalogue_names_tasks_that_there_are():
    assert {entry.task for entry in catalogue().values()} <= set(task.TASKS)


@pytest.mark.parametrize("task", task.TASKS.values(), ids=lambda task: task.name)
def test_the_usual_loss_of_a_task_is_a_loss_of_the_library(task):
    name = task.loss["name"] if isinstance(task.loss, dict) else task.loss
    assert name is None or hasattr(olx.losses, name) or hasattr(olx.structured, name)


def rows(place, x, y, expert_loss):
    """Outcomes of a task that the library does not have: how often each row was seen."""
    return y.astype(float)


def hits(feedback):
    """The share of outcomes that the prediction rounds to."""
    return jnp.round(feedback.action) == feedback.outcome


def twice(w, context):
    return 2 * olx.dot(w, context)


COUNTS = task.Task(
    "counts",
    rows,
    lambda rounds: False,
    dataclasses.replace(
        task.SCORE,
        first=0.5,
        lift=lambda inner: olx.model(inner, twice),
        apply=twice,
        zero=jnp.ones_like,
    ),
    baselines.MEAN,
    "absolute",
    (Metric(hits, rising=True),),
    intercept=False,
)


@pytest.fixture
def counts(tmp_path, monkeypatch):
    """A data set of the task `counts`, which nothing but its record knows."""
    monkeypatch.setitem(task.TASKS, "counts", COUNTS)
    monkeypatch.setitem(task.METRICS, "hits", COUNTS.usual[0])
    x = np.random.default_rng(0).integers(0, 3, (12, 2)).astype(float)
    np.savez(tmp_path / "mine.npz", X=x, y=x @ [2, 4])
    data = {"name": str(tmp_path / "mine.npz"), "label": "mine", "task": "counts", "order": "file"}
    learner = {"name": "ogd", "linear": True, "grid": {"eta": [0.02, 0.3]}}
    tree = {"precision": "float64", "baseline": False, "data": [data], "learners": [learner]}
    return {**tree, "comparator": "zero"}, x


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
    best = tuned_score(scores(table), "mine", "ogd", "hits")
    assert best is not None
    assert best.means["hits"] == max(share)


def test_a_task_says_what_it_is_measured_by(counts):
    tree, _ = counts
    from olx.lab.prepare import DataCache, prepare

    experiment = parse({**tree, "metrics": ["wealth"]})
    with pytest.raises(ConfigError, match="wealth is for portfolio data, got counts"):
        prepare(experiment, DataCache(experiment))


def test_the_lab_compares_no_names_of_tasks():
    """Catalogue and LIBSVM collection (sources) are sorted by them; two names are also modules."""
    own = {"task.py", "sources.py"}
    for path in LAB.rglob("*.py"):
        text = path.read_text()
        found = [name for name in task.TASKS if f'"{name}"' in text]
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
            best = tuned_score(table, name, learner.get("label", learner["name"]), "error")
            assert best is not None
            assert 0 < best.means["error"] < 0.4
        trivial = tuned_score(table, name, "baseline: majority class", "error")
        assert trivial is not None
        assert trivial.means["error"] > 0.5
    for learner in learners:  # the second play makes the mistakes of the first one
        place = ("sklearn:wine", learner.get("label", learner["name"]))
        rows = [row for row in result.confusions.to_pylist() if row["dataset"] == place[0]]
        rows = [row for row in rows if row["learner"] == place[1]]
        wrong = sum(row["count"] for row in rows if row["truth"] != row["predicted"])
        assert sum(row["count"] for row in rows) == 178
        assert wrong / 178 == pytest.approx(winners(table)[place].means["error"], abs=1e-6)
    assert all(result.certificates.column("holds").to_pylist())


@pytest.fixture
def labelled(tmp_path):
    """Rows of words with one to three of four labels."""
    draw = np.random.default_rng(0)
    x = (draw.random((60, 8)) < 0.5).astype(float)
    y = (x[:, :4] + 0.1 * draw.normal(size=(60, 4)) > 0.5).astype(int)
    np.savez(tmp_path / "several.npz", X=x, y=y)
    np.savez(tmp_path / "single.npz", X=x, y=np.argmax(y, axis=1))
    return tmp_path, x, y


def test_labels_are_ranked(labelled):
    folder, x, y = labelled
    data = [
        {
            "name": str(folder / "several.npz"),
            "label": "s",
            "task": "multilabel",
            "order": "file",
            "bias": False,
        },
        {"name": str(folder / "single.npz"), "label": "o", "task": "label_ranking"},
    ]
    grid = {"eta": [0.1, 1.0]}
    ranker = {"name": "label_ranking", "mirror": "euclidean", "update": "optimal", "grid": grid}
    learners = [ranker, {"name": "ogd", "linear": True, "eta": 0.1}]
    metrics = ["mistake", "average_precision", "one_error"]
    given = {"data": data, "learners": learners, "comparator": "zero", "metrics": metrics}
    result = run(parse({**given, "precision": "float64", "bound": "all"}), folder / "r")
    table = scores(result.configurations)
    one = olx.ranking.label_ranking(1.0, olx.mirrors.euclidean(), olx.ranking.optimal())
    rounds = olx.Rounds(x, y.astype(float))
    seen = olx.run(one, olx.ranking.mistake, rounds, jnp.zeros((4, 8))).losses.mean()
    every = result.configurations.filter(
        np.array(result.configurations.column("dataset")) == "s"
    ).column("mistake")
    np.testing.assert_allclose(every.to_pylist()[1], seen)
    for name in ("s", "o"):
        for learner in ("label_ranking", "ogd"):
            assert (
                tuned_score(table, name, learner, "average_precision").means["average_precision"]
                > 0.5
            )
    before = np.cumsum(y, axis=0) - y + 0.5
    best = [np.where(y == side, before, -1).max(axis=1) for side in (1, 0)]
    wrong = ~(best[0] > best[1]) & y.any(axis=1) & ~y.all(axis=1)
    assert tuned_score(table, "s", "baseline: frequent labels", "one_error").means["one_error"] == (
        pytest.approx(np.mean(wrong))
    )
    assert all(result.certificates.column("holds").to_pylist())


def test_labels_of_another_shape_are_refused(labelled):
    folder, x, y = labelled
    with pytest.raises(ValueError, match="holds 4 labels per row; that is task = multilabel"):
        load(str(folder / "several.npz"))
    with pytest.raises(ValueError, match=r"holds labels of shape \(60,\); several labels per row"):
        load(str(folder / "single.npz"), task="multilabel")
    np.savez(folder / "bad.npz", X=x, y=2 * y)
    with pytest.raises(ValueError, match=r"holds the label 2 at row .*1 for a relevant label"):
        load(str(folder / "bad.npz"), task="multilabel")
    np.savez(folder / "alone.npz", X=x, y=np.ones(60))
    with pytest.raises(ValueError, match="one label alone; a ranking of labels needs two"):
        load(str(folder / "alone.npz"), task="label_ranking")


def test_rows_of_groups_are_ranked(tmp_path):
    draw = np.random.default_rng(0)
    query = np.repeat(np.arange(20), draw.integers(2, 6, 20))
    x = draw.normal(size=(len(query), 3))
    y = np.clip(np.round(x @ [1.0, -1.0, 0.0]), 0, 2)
    order = draw.permutation(len(query))  # rows of a group need not be adjacent
    np.savez(tmp_path / "queries.npz", X=x[order], y=y[order], qid=query[order])
    np.savez(tmp_path / "plain.npz", X=x, y=y)
    given = {
        "data": [{"name": str(tmp_path / "queries.npz"), "task": "instance_ranking"}],
        "learners": [
            {"name": "ogd", "linear": True, "grid": {"eta": [0.1, 0.3]}},
            {"name": "ranking.instance_ranking", "eta": 0.5},
        ],
        "metrics": ["average_precision", "ndcg"],
        "comparator": "zero",
        "bound": "all",
    }
    data = load(str(tmp_path / "queries.npz"), task="instance_ranking")
    assert len(data) == 20
    assert data.rounds().outcome.shape == data.rounds().context.shape[:2]
    result = run(parse(given), tmp_path / "r")
    for learner in ("ogd", "ranking.instance_ranking"):
        best = tuned_score(
            scores(result.configurations), str(tmp_path / "queries.npz"), learner, "ndcg"
        )
        assert best is not None
        assert 0.7 < best.means["ndcg"] <= 1
    assert all(result.certificates.column("holds").to_pylist())
    with pytest.raises(ValueError, match=r"does not say which rows belong together.*qid"):
        load(str(tmp_path / "plain.npz"), task="instance_ranking")
    np.savez(tmp_path / "bad.npz", X=x, y=y, qid=query[:5])
    with pytest.raises(ValueError, match=r"qid has shape \(5,\)"):
        load(str(tmp_path / "bad.npz"), task="instance_ranking")
    np.savez(tmp_path / "bad.npz", X=x, y=y - 1, qid=query)
    with pytest.raises(ValueError, match="a degree of relevance is 0 or more"):
        load(str(tmp_path / "bad.npz"), task="instance_ranking")


def test_sequences_of_labels_are_played(tmp_path):
    draw = np.random.default_rng(1)
    lengths = draw.integers(1, 6, 40)
    y = draw.integers(0, 3, lengths.sum())
    x = np.eye(3)[y] + 0.3 * draw.normal(size=(len(y), 3))
    where = np.append(0, np.cumsum(lengths))
    np.savez(tmp_path / "words.npz", X=x, y=y, offsets=where)
    given = {
        "data": [{"name": str(tmp_path / "words.npz"), "task": "chain"}],
        "learners": [
            {"name": "structured_perceptron", "structure": "data"},
            {"name": "self_tuned_structured", "structure": "data", "complexity": 10.0},
            {"name": "ogd", "linear": True, "grid": {"eta": [0.05, 0.2]}},
        ],
        "comparator": "zero",
        "bound": "all",
    }
    result = run(parse(given), tmp_path / "r")
    table = scores(result.configurations)
    for learner in given["learners"]:
        best = tuned_score(table, str(tmp_path / "words.npz"), learner["name"], "label_error")
        assert best is not None
        assert best.means["label_error"] < 0.3
    for learner in given["learners"]:
        rows = [row for row in result.confusions.to_pylist() if row["learner"] == learner["name"]]
        assert sum(row["count"] for row in rows) == len(y)
        assert sum(row["count"] for row in rows if row["truth"] == 1) == np.sum(y == 1)
    assert all(result.certificates.column("holds").to_pylist())
    field = {
        **given,
        "loss": {"name": "crf", "structure": "data"},
        "learners": given["learners"][2:],
        "baseline": False,
    }
    assert len(run(parse(field), tmp_path / "f").configurations) == 2
    np.savez(tmp_path / "bad.npz", X=x, y=y, offsets=where[:-1])
    with pytest.raises(ValueError, match="offsets must rise from 0 to"):
        load(str(tmp_path / "bad.npz"), task="chain")


def test_the_baseline_is_the_best_constant_so_far():
    """Against a search over all scores in plain NumPy; the share of a class as Krichevsky and
    Trofimov count it; the mean; the first weights."""
    y = np.where(np.random.default_rng(0).random(50) < 0.7, 1.0, -1.0)
    zeros, start = np.zeros((50, 1)), jnp.zeros(1)
    played = lambda learner, loss, outcome, start: np.asarray(
        olx.rollout(
            learner, loss, olx.Rounds(zeros, outcome), start, record=olx.record.actions
        ).trace
    )
    scores = np.linspace(-8, 8, 129)
    paid = np.cumsum(np.log1p(np.exp(-y[:, None] * scores)), axis=0)
    leading = scores[np.argmin(paid[:-1] + scores**2 / 10, axis=1)]
    seen = played(baselines.leading_score(), olx.losses.logistic, jnp.asarray(y), start)
    np.testing.assert_allclose(seen[1:], leading, atol=0.13)  # next to it where two nearly tie
    mean = played(baselines.running_mean(), olx.losses.squared, jnp.asarray(y), start)
    np.testing.assert_allclose(mean[1:], (np.cumsum(y) / np.arange(1, 51))[:-1], rtol=1e-5)
    classes = (y > 0).astype(int)
    share = played(
        baselines.class_frequencies(), olx.losses.cross_entropy, classes, jnp.zeros((2, 1))
    )
    ones = np.cumsum(classes) - classes
    np.testing.assert_allclose(np.exp(share[:, 1]), (ones + 0.5) / (np.arange(50) + 1), rtol=1e-5)


def values(task, names, actions, outcome):
    """The metrics of a task on these actions."""
    metrics = tuple(task.metric(name) for name in names)
    each = lambda action, seen: measure(metrics)(
        Feedback(None, action, seen, None, jnp.zeros(()), None)
    )
    found = jax.vmap(each)(jnp.asarray(actions), jnp.asarray(outcome))
    sums = {name: np.sum(np.asarray(rows, float), 0) for name, rows in found.items()}
    return metric_values(metrics, sums, outcome)


def test_metrics_of_two_classes_are_those_of_scikit_learn():
    draw = np.random.default_rng(0)
    y = np.where(draw.random(300) < 0.3, 1.0, -1.0).astype(np.float32)
    scores = (y + 2 * draw.normal(size=300)).astype(np.float32)
    scores[:20] = 0.0  # a tie is a mistake
    predicted = np.where(y * scores > 0, y, -y)
    share = 1 / (1 + np.exp(-scores.astype(float)))
    count = np.minimum((15 * share).astype(int), 14)
    error = sum(abs(np.sum((share - (y > 0))[count == b])) for b in range(15)) / 300
    wanted = {
        "accuracy": sk.accuracy_score(y, predicted),
        "balanced_accuracy": sk.balanced_accuracy_score(y, predicted),
        "f1": sk.f1_score(y, predicted),
        "precision": sk.precision_score(y, predicted),
        "recall": sk.recall_score(y, predicted),
        "brier": sk.brier_score_loss(y, share, pos_label=1),
        "calibration": error,
    }
    found = values(task.BINARY, wanted, scores, y)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, err_msg=name)
    never = values(task.BINARY, ["precision", "f1", "balanced_accuracy"], 0 * y - 1, y)
    assert never == {"precision": 0, "f1": 0, "balanced_accuracy": 0.5}


@pytest.mark.parametrize("size", [1e-3, 1.0, 100.0])
def test_ranks_of_two_classes_are_within_the_error_of_their_bins(size):
    draw = np.random.default_rng(1)
    y = np.where(draw.random(2000) < 0.2, 1.0, -1.0)
    scores = (size * (y + 2 * draw.normal(size=2000))).astype(np.float32)
    found = values(task.BINARY, ["auc", "average_precision"], scores, y)
    place = np.arcsinh(scores / 1e-2) / np.arcsinh(1e6)
    bins = np.clip(np.floor((1 + place) * 128), 0, 255)
    worst, best = bins - 1e-3 * y, bins + 1e-3 * y  # the worst and the best order inside bins
    for name, function in (
        ("auc", sk.roc_auc_score),
        ("average_precision", sk.average_precision_score),
    ):
        low, high = (function(y, order) for order in (worst, best))
        exact = function(y, scores)
        assert low <= exact <= high
        assert abs(found[name] - exact) <= (high - low) / 2 + 1e-6
    assert abs(found["auc"] - sk.roc_auc_score(y, scores)) < (1e-3 if size >= 1 else 0.1)


def test_ranks_are_exact_where_no_bin_holds_two_scores():
    y = np.where(np.random.default_rng(2).random(60) < 0.5, 1.0, -1.0)
    scores = 1.15 ** np.random.default_rng(3).permutation(np.arange(60))
    found = values(task.BINARY, ["auc", "average_precision"], scores, y)
    np.testing.assert_allclose(found["auc"], sk.roc_auc_score(y, scores))
    wanted = sk.average_precision_score(y, scores)
    np.testing.assert_allclose(found["average_precision"], wanted)
    scores[7] = np.nan
    assert np.isnan(values(task.BINARY, ["auc"], scores, y)["auc"])
    assert np.isnan(values(task.BINARY, ["auc"], scores[:7], np.ones(7))["auc"])


def test_metrics_of_classes_are_means_over_the_classes_that_occur():
    draw = np.random.default_rng(4)
    y = draw.integers(0, 3, 200)  # class 4 occurs only as a prediction, class 3 never
    scores = draw.normal(size=(200, 5)) + 1.5 * np.eye(5)[y]
    scores[:, 3] = -9.0
    predicted = scores.argmax(1)
    options = {"average": "macro", "zero_division": 0}
    wanted = {
        "accuracy": sk.accuracy_score(y, predicted),
        "balanced_accuracy": np.mean([np.mean(predicted[y == k] == k) for k in range(3)]),
        "f1": sk.f1_score(y, predicted, **options),
        "precision": sk.precision_score(y, predicted, **options),
        "recall": sk.recall_score(y, predicted, **options),
    }
    found = values(task.MULTICLASS, wanted, scores, y)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, err_msg=name)


def test_metrics_of_numbers_are_those_of_scikit_learn():
    draw = np.random.default_rng(5)
    y = (100 + draw.normal(size=200)).astype(np.float32)
    guess = (y + 0.3 * draw.normal(size=200)).astype(np.float32)
    wanted = {
        "mae": sk.mean_absolute_error(y, guess),
        "rmse": sk.root_mean_squared_error(y, guess),
        "mape": sk.mean_absolute_percentage_error(y, guess),
        "r2": sk.r2_score(y, guess),
    }
    found = values(task.REGRESSION, wanted, guess, y)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, err_msg=name)
    assert values(task.REGRESSION, ["r2"], y + 1, np.ones_like(y))["r2"] == 0


@pytest.fixture
def two_classes(tmp_path):
    draw = np.random.default_rng(6)
    x = draw.normal(size=(120, 2))
    y = np.where(x @ [1.0, -1.0] + draw.normal(size=120) > 0, "yes", "no")
    file = tmp_path / "mine.csv"
    file.write_text(
        "a,b,buys\n" + "".join(f"{a},{b},{c}\n" for (a, b), c in zip(x, y, strict=True))
    )
    learner = {"name": "ogd", "linear": True, "grid": {"eta": [0.1, 1.0]}}
    data = {"name": str(file), "label": "mine", "order": "file"}
    return {"baseline": False, "data": [data], "learners": [learner], "models": False}, x, y


def test_two_classes_are_counted_while_they_are_played(two_classes, tmp_path):
    tree, x, y = two_classes
    names = ["error", "auc", "f1", "calibration"]
    split = {"metrics": names, "protocol": "split", "precision": "float64", "budget": {"save": 0}}
    result = run(parse({**tree, **split}), tmp_path / "r")
    table, signs = result.configurations, np.where(y == "yes", 1.0, -1.0)
    rows = np.hstack([x, np.ones((120, 1))])
    for i, eta in enumerate((0.1, 1.0)):
        w, scores = np.zeros(3), []
        for t in range(120):
            scores.append(w @ rows[t])
            if t < 96:
                w = w + eta * signs[t] * rows[t] / (1 + np.exp(signs[t] * scores[-1]))
        for name, part in {"": slice(96), "test_": slice(96, None)}.items():
            truth, seen = signs[part], np.array(scores[part])
            f1 = sk.f1_score(truth, np.where(truth * seen > 0, truth, -truth))
            np.testing.assert_allclose(table[f"{name}f1"][i].as_py(), f1)
            auc = sk.roc_auc_score(truth, seen)
            np.testing.assert_allclose(table[f"{name}auc"][i].as_py(), auc, atol=5e-3)
    best = np.argmin(table["loss"].to_pylist())
    cells = {
        (c["truth_name"], c["predicted_name"]): c["count"] for c in result.confusions.to_pylist()
    }
    assert sum(cells.values()) == 96
    assert sum(n for (a, _), n in cells.items() if a == "yes") == np.sum(y[:96] == "yes")
    wrong = sum(n for (a, b), n in cells.items() if a != b)
    assert wrong / 96 == pytest.approx(table["error"][int(best)].as_py())


def test_a_quantile_is_measured_beside_another_loss(counts, tmp_path):
    tree, _ = counts
    data = [{**tree["data"][0], "task": "regression"}]
    asked = ["mae", {"name": "pinball", "q": 0.5}]
    given = {**tree, "data": data, "metrics": asked, "loss": "absolute"}
    table = run(parse(given), tmp_path / "r").configurations
    np.testing.assert_allclose(table["pinball(0.5)"].to_numpy(), table["loss"].to_numpy() / 2)
    np.testing.assert_allclose(table["mae"].to_numpy(), table["loss"].to_numpy())


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"metrics": ["mae"]}, "mae is for regression data, got binary. These have error, .*auc"),
        ({"metrics": ["brier"], "loss": "hinge"}, "brier reads scores as those of loss = logistic"),
        ({"metrics": [{"name": "pinball"}]}, "metrics.*q"),
        ({"metrics": [{"name": "auc", "q": 0.5}]}, "metrics: auc takes no arguments"),
    ],
)
def test_a_metric_that_does_not_fit_is_refused(two_classes, changes, says):
    from olx.lab.prepare import DataCache, prepare

    experiment = parse({**two_classes[0], **changes})
    with pytest.raises(ConfigError, match=says):
        prepare(experiment, DataCache(experiment))
