"""Rows that are learned with the weight of their class."""

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

import olx
from olx.lab.config import ConfigError, parse
from olx.lab.data import load
from olx.lab.data.json_rows import JsonRows
from olx.lab.learn import learn, newest_progress, open_model, step_by_step
from olx.lab.models import read
from olx.lab.run import run

ETA = 0.3


def write(path, count, seed=0):
    """Rows of two numbers; one in ten is called yes."""
    draw = np.random.default_rng(seed)
    rare = draw.random(count) < 0.1
    x = draw.normal(0, 1, (count, 2)) + 0.8 * rare[:, None]
    lines = [f"{a:.6f},{b:.6f},{'yes' if r else 'no'}" for (a, b), r in zip(x, rare, strict=True)]
    path.write_text("\n".join(["a,b,buys", *lines]))
    return path


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "rare.csv", 300)


def experiment(file, given, **changes):
    data = {"name": str(file), "label": "rare", "order": "file", "class_weights": given}
    data = {key: value for key, value in data.items() if value is not None}
    ogd = {"name": "ogd", "linear": True, "eta": ETA}
    return parse({"data": [data], "learners": [ogd], "precision": "float64", **changes})


def descent(x, y, weight):
    """The weights of gradient descent on the logistic loss, and the loss of each row."""
    w, losses = np.zeros(x.shape[1]), []
    for row, label, factor in zip(x, y, weight, strict=True):
        losses.append(np.log1p(np.exp(-label * (w @ row))))
        w = w + ETA * factor * label * row / (1 + np.exp(label * (w @ row)))
    return w, np.array(losses)


def decision(place):
    """The weights of the stored model."""
    found = read(place / "r", "ogd")
    return olx.decision(found.learner, found.state, np.zeros(3))


def rows_of(file):
    data = load(str(file))
    return data.context, data.outcome


def test_rows_are_learned_with_weights_and_losses_count_each_once(file, tmp_path):
    given = {"yes": 5.0}
    result = run(experiment(file, given, models=True), tmp_path / "r")
    x, y = rows_of(file)
    w, losses = descent(x, y, np.where(y > 0, 5.0, 1.0))
    played = result.configurations.to_pylist()
    ours = next(row for row in played if row["learner"] == "ogd")
    assert ours["loss"] == pytest.approx(losses.mean(), rel=1e-12)
    np.testing.assert_allclose(decision(tmp_path), w, rtol=1e-12)
    plain = run(experiment(file, None), tmp_path / "plain").configurations.to_pylist()
    named = "baseline: majority class"
    baselines = [
        next(row["loss"] for row in rows if row["learner"] == named) for rows in (played, plain)
    ]
    assert baselines[0] == baselines[1]  # it is the majority of the rows as they are
    assert ours["loss"] != next(row["loss"] for row in plain if row["learner"] == "ogd")


def test_test_rows_change_nothing_and_count_once(file, tmp_path):
    result = run(experiment(file, "balanced", protocol="split", test=0.4), tmp_path / "r")
    x, y = rows_of(file)
    factors = compute_class_weight("balanced", classes=np.array([-1.0, 1.0]), y=y)
    weight = factors[(y > 0).astype(int)]
    w, _ = descent(x[:180], y[:180], weight[:180])
    ours = next(row for row in result.configurations.to_pylist() if row["learner"] == "ogd")
    tested = np.log1p(np.exp(-y[180:] * (x[180:] @ w))).mean()
    assert ours["test_loss"] == pytest.approx(tested, rel=1e-12)


def test_balanced_classes_of_digits_are_those_of_scikit_learn():
    data = load("sklearn:wine", class_weights="balanced")
    given = compute_class_weight("balanced", classes=np.arange(3), y=data.outcome)
    np.testing.assert_allclose(data.table.labels.weights, given, rtol=1e-15)
    rounds = data.shuffled(3).rows(slice(50)).rounds(np.float64)
    np.testing.assert_array_equal(rounds.weight, np.asarray(given)[rounds.outcome])
    assert float(data.rounds(np.float64).weight.sum()) == pytest.approx(len(data))
    assert "weights" in data.notes[0].read_as


def test_a_model_learns_new_rows_with_the_same_weights(file, tmp_path):
    run(experiment(file, {"yes": 4.0}, baseline=False), tmp_path / "r")
    new = write(tmp_path / "new.csv", 40, seed=1)
    x, y = (np.concatenate(each) for each in zip(rows_of(file), rows_of(new), strict=True))
    w, _ = descent(x, y, np.where(y > 0, 4.0, 1.0))
    with open_model(tmp_path / "r") as model:
        reader = JsonRows(model.table, None)
        lines = [line.split(",") for line in new.read_text().splitlines()[1:]]
        rows = [{"a": float(a), "b": float(b), "buys": label} for a, b, label in lines]
        served, _ = step_by_step(model, reader, newest_progress(model), rows)
        np.testing.assert_allclose(olx.decision(model.learner, served.state, x[0]), w, rtol=1e-12)
    learn(tmp_path / "r", new)
    np.testing.assert_allclose(decision(tmp_path), w, rtol=1e-12)


def test_binarized_labels_have_weights_too():
    data = load("sklearn:digits", binarize=3, class_weights={"3": 9.0})
    assert data.table.labels.weights == (1.0, 9.0)
    np.testing.assert_array_equal(data.rounds().weight, np.where(data.outcome > 0, 9, 1))


def test_booleans_are_written_as_in_files(tmp_path):
    (tmp_path / "b.csv").write_text("a,b\n1,true\n2,false\n3,true\n")
    data = load(str(tmp_path / "b.csv"), class_weights={"true": 4.0})
    assert data.table.labels.weights == (1.0, 4.0)


def test_weights_help_a_rare_class(file, tmp_path):
    recall = {}
    for given in (None, "balanced"):
        found = run(experiment(file, given, metrics=["recall"]), tmp_path / str(given))
        rows = found.configurations.to_pylist()
        recall[given] = next(row["recall"] for row in rows if row["learner"] == "ogd")
    assert recall["balanced"] > recall[None] + 0.2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"maybe": 2.0}, 'known are "no", "yes"'),
        ({"yes": 1e39}, "a number from 1e-06 to 1e\\+06"),
        ({"yes": 1e-46}, "a number from 1e-06"),
        ({"yes": 0.0}, "a number from 1e-06"),
        ({"yes": "2"}, "a number from 1e-06"),
        ({"yes": True}, "a number from 1e-06"),
        ("even", "class_weights"),
    ],
)
def test_other_weights_are_refused(file, given, said):
    with pytest.raises(ValueError, match=said):
        load(str(file), class_weights=given)


def test_what_has_no_classes_is_refused(file, tmp_path):
    with pytest.raises(ValueError, match="regression data"):
        load("sklearn:diabetes", class_weights="balanced")
    with pytest.raises(ValueError, match="takes no class_weights"):
        load("stream:expert_losses", class_weights="balanced")
    with pytest.raises(ConfigError, match="leave out class_weights"):
        run(experiment(file, "balanced", comparator="best"), tmp_path / "r")


def test_weights_reach_rows_from_python(tmp_path):
    x, y = np.eye(4).repeat(5, 0), np.array([1] * 5 + [0] * 15)
    rows = {"name": (x, y), "class_weights": {"1": 3.0}, "order": "file", "bias": False}
    result = olx.lab.compare({"ogd": olx.linear(olx.ogd(ETA))}, {"mine": rows}, out=tmp_path / "r")
    alone = olx.run(
        olx.linear(olx.ogd(ETA)), olx.losses.logistic,
        olx.Rounds(jnp.asarray(x), jnp.asarray(2.0 * y - 1), jnp.asarray(1.0 + 2 * y)),
        jnp.zeros(4),
    )  # fmt: skip
    assert result.configurations["loss"][0].as_py() == pytest.approx(float(alone.losses.mean()))
