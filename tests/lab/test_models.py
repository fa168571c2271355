"""From a result to use: the stored models, and what `olx predict` says about new rows."""

import json
import re
import shutil
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import olx
from olx import _archive as archive
from olx import cli
from olx.lab import models, store, user_factories
from olx.lab.config import parse
from olx.lab.data import load
from olx.lab.run import run

OWN = """
import olx

def make(eta: float):
    return olx.Learner(eta, init, predict, update)

def init(eta, params):
    return params

def predict(eta, w, x):
    return w @ x

def update(eta, w, feedback):
    return w - eta * feedback.weight * feedback.grad * feedback.context
"""
ETAS = [0.01, 0.1, 1.0]
DRAW = np.random.default_rng(0)


def rows(count):
    """Lines of a file: a number, a word, and a label that depends on both."""
    for _ in range(count):
        age, city = DRAW.integers(18, 80), DRAW.choice(["Bonn", "Oslo", "Rome"])
        score = (age - 45) / 20 + (city == "Oslo") + DRAW.normal(0, 0.5)
        yield f"{age},{city},{'yes' if score > 0.3 else 'no'}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A file, a result of it, and a file of new rows."""
    place = tmp_path_factory.mktemp("models")
    for name, count in {"mine": 60, "new": 20}.items():
        (place / f"{name}.csv").write_text("\n".join(["age,city,buys", *rows(count)]))
    (place / "own_model.py").write_text(OWN)
    user_factories.look_in(place)
    run(asked(place), place / "r")
    return place


def asked(place, **changes):
    data = {"name": str(place / "mine.csv"), "label": "mine", "scale": "standard"}
    ogd = {"name": "ogd", "linear": True, "grid": {"eta": ETAS}}
    own = {"name": "own_model:make", "label": "own", "eta": 0.5}
    return parse(
        {"data": [data], "learners": [ogd, own], "seeds": [3, 4], "baseline": False, **changes}
    )


def winner(place, learner):
    """The step size of the leaderboard: the smallest mean loss over the seeds."""
    table = store.read(place / "r").configurations.to_pylist()
    mine = [row for row in table if row["learner"] == learner]
    mean = lambda eta: np.mean([row["loss"] for row in mine if row["h.eta"] == eta])
    return min(ETAS, key=mean)


def test_the_model_is_what_a_run_on_the_same_rows_ends_with(folder):
    data = load(str(folder / "mine.csv"), scale="standard", seed=3)  # the first seed
    model = models.read(folder / "r", "ogd")
    with jax.enable_x64(False):
        learner = olx.linear(olx.ogd(jnp.asarray(winner(folder, "ogd"))))
        start = jnp.zeros(data.width)
        done = olx.run(learner, olx.losses.logistic, data.rounds(), start, progress=False)
    mine, theirs = jax.tree.leaves(model.state), jax.tree.leaves(done.state)
    assert all(
        np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(mine, theirs, strict=True)
    )
    assert model.about["hyperparameters"] == {"eta": winner(folder, "ogd")}
    assert model.about["rounds"] == 60


def test_new_rows_are_read_as_the_first_ones(folder):
    served = models.predict(folder / "r", folder / "new.csv", "ogd")
    model = models.read(folder / "r", "ogd")
    table = load(str(folder / "mine.csv"), scale="standard").table
    rows = table.apply(folder / "new.csv").astype(np.float32)
    scores = olx.predict(model.learner, model.state, rows)
    found = {name: np.array(column) for name, column in served.table.to_pydict().items()}
    assert list(found) == ["prediction", "score", "probability.yes"]
    np.testing.assert_array_equal(found["score"], scores)
    np.testing.assert_allclose(found["probability.yes"], 1 / (1 + np.exp(-scores)), rtol=1e-6)
    assert found["prediction"].tolist() == np.where(scores > 0, "yes", "no").tolist()
    truth = [line.rpartition(",")[2] for line in (folder / "new.csv").read_text().split()[1:]]
    signs = np.where(np.array(truth) == "yes", 1, -1)
    paid = np.log1p(np.exp(-signs * scores)).mean()
    assert served.judged["loss"] == pytest.approx(paid, rel=1e-5)
    assert served.judged["error"] == np.mean(found["prediction"] != truth)


def test_a_row_may_be_a_dictionary(folder):
    table = load(str(folder / "mine.csv"), scale="standard").table
    rows = pyarrow.csv.read_csv(folder / "new.csv").select(["age", "city"])
    np.testing.assert_array_equal(table.apply(rows.to_pylist()), table.apply(rows))
    np.testing.assert_array_equal(table.apply(rows.to_pylist()[3]), table.apply(rows)[3:4])
    with pytest.raises(ValueError, match=r"Table\.apply: the table has no column 'city'"):
        table.apply({"age": 20})


def test_labels_may_be_missing_or_new(folder):
    whole = models.predict(folder / "r", folder / "new.csv", "ogd")
    lines = (folder / "new.csv").read_text().split("\n")
    (folder / "bare.csv").write_text("\n".join(line.rpartition(",")[0] for line in lines))
    bare = models.predict(folder / "r", folder / "bare.csv", "ogd")
    assert bare.table.equals(whole.table)
    assert bare.judged == {}
    (folder / "maybe.csv").write_text("\n".join(lines).replace("yes", "maybe"))
    other = models.predict(folder / "r", folder / "maybe.csv", "ogd")
    assert other.table.equals(whole.table)
    assert "holds the label 'maybe' in row" in other.note


def test_functions_of_a_user_are_named_in_the_model(folder):
    model = models.read(folder / "r", "own", trust=["own_model"])
    assert model.about["modules"] == ["own_model"]
    assert b"own_model:update" in (folder / "r" / "models" / "mine.own.olx").read_bytes()
    with pytest.raises(ValueError, match=r"own_model:init is not a part of olx.*trust="):
        olx.load(folder / "r" / "models" / "mine.own.olx")


EVIL = """
from pathlib import Path

Path(__file__).with_name("ran").touch()
from own_model import init, predict, update
"""


def evil(folder, place):
    """A result of a stranger: its jsons and models name a module that is inside it."""
    shutil.copytree(folder / "r", place)
    (place / "evil_model.py").write_text(EVIL)
    for path in (*place.glob("models/*"), place / "config.toml", *place.glob("jobs/*/story.json")):
        path.write_bytes(path.read_bytes().replace(b"own_model", b"evil_model"))
    model = place / "models" / "mine.own.olx"
    body = model.read_bytes()[: -archive.SEAL]
    line, _, rest = body.partition(b"\n")
    size = int.from_bytes(rest[:8], "little") + body.count(b"evil_model")
    body = line + b"\n" + size.to_bytes(8, "little") + rest[8:]
    model.write_bytes(body + archive.seal_of([body]))
    about = json.loads((place / "models" / "mine.ogd.json").read_text())
    about |= {"modules": ["evil_model"], "loss": "evil_model:predict", "file": "../../evil"}
    (place / "models" / "mine.ogd.json").write_text(json.dumps(about))
    return place


def test_no_code_of_a_result_is_run(folder, tmp_path, capsys, monkeypatch):
    place = evil(folder, tmp_path / "r")
    data, out = str(folder / "new.csv"), str(tmp_path / "p.csv")
    here = [data, "--out", out, "--learner"]
    inside = "found inside a result.*no code of a result is run"
    no_code = "is inside a result and names the module evil_model, and no code of a result is run"
    monkeypatch.chdir(place)
    for words, status, says in (
        (["predict", str(place), *here, "own"], 2, "evil_model:init .*--trust evil_model"),
        (["predict", str(place), *here, "own", "--trust", "evil_model"], 2, "cannot be imported"),
        (["predict", str(place), *here, "ogd"], 0, "loss is of evil_model.*--trust evil_model"),
        (["show", str(place)], 0, "own"),
        (["report", str(place)], 0, "report.html"),
        (["diff", str(place), str(folder / "r")], 0, "The page is in"),
        (["certify", str(place / "config.toml")], 2, no_code),
        (["run", str(place / "config.toml")], 2, no_code),
    ):
        assert cli.main([*words]) == status, words
        assert re.search(says, "".join(capsys.readouterr()), re.DOTALL), words
    monkeypatch.syspath_prepend(place)
    for call in (
        lambda: models.read(place, "own", trust=["evil_model"]),
        lambda: user_factories.find("learners.0", "evil_model:make"),
    ):
        with pytest.raises(ValueError, match=inside):
            call()
    assert "evil_model" not in sys.modules
    assert not (place / "ran").exists()


def test_a_model_of_an_own_module_needs_its_name(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    words = ["predict", "r", "new.csv", "--learner", "own"]
    assert cli.main(words) == 2
    assert "own_model:init" in capsys.readouterr().err
    assert cli.main([*words, "--trust", "own_model"]) == 0
    with pytest.raises(TypeError, match=r"models\.read: `trust` must be a list"):
        models.read("r", "own", trust="own_model")
    about = json.loads((folder / "r" / "models" / "mine.own.json").read_text())
    del about["task"]
    shutil.copytree(folder / "r", folder / "cut")
    (folder / "cut" / "models" / "mine.own.json").write_text(json.dumps(about))
    with pytest.raises(ValueError, match=r"mine.own.json does not say the task of a model"):
        models.read(folder / "cut")


def test_the_command_writes_what_was_asked(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    ranked = list(models._best(folder / "r"))
    assert cli.main(["predict", "r", "new.csv", "--trust", "own_model"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(ranked[0][1])  # the best one
    assert "mean loss " in out
    assert "mean error " in out
    assert cli.main(["predict", "r", "new.csv", "--out", "p.parquet", "--trust", "own_model"]) == 0
    table = pyarrow.csv.read_csv("predictions.csv")
    assert table.num_rows == 20
    assert pq.read_table("p.parquet").column_names == table.column_names


REFUSED = {
    "no file": ("r none.csv", "none.csv: no such file"),
    "no result": (". new.csv", "holds no result"),
    "words in the wrong order": ("new.csv r", "the result comes first: olx predict r new.csv"),
    "a folder": ("r r", "r is a folder; give a file of rows"),
    "no such learner": ("r new.csv --learner odg", "has no learner 'odg'; did you mean ogd?"),
    "no such data": ("r new.csv --dataset mne", "has no data set 'mne'; did you mean mine?"),
    "another format": ("r new.csv --out p.txt", "written as .csv or .parquet"),
    "other columns": ("r other.csv", "the table has no column 'age'"),
    "a new word": ("r word.csv", "holds 'Kiel' in row 0.*give --allow-unknown"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_is_one_line(case, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "other.csv").write_text("a,b\n1,2\n3,4\n")
    (folder / "word.csv").write_text("age,city\n20,Kiel\n30,Bonn\n")
    words, says = REFUSED[case]
    assert cli.main(["predict", *words.split(), "--trust", "own_model"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert re.search(says, err)


def test_models_are_kept_until_they_change(folder, monkeypatch):
    place = folder / "r" / "models"
    before = {path.name: path.stat().st_mtime_ns for path in place.iterdir()}
    assert sorted(before) == ["mine.ogd.json", "mine.ogd.olx", "mine.own.json", "mine.own.olx"]
    with monkeypatch.context() as patch:
        patch.setattr(models, "_play", None)
        run(asked(folder, title="new"), folder / "r")
    assert before == {path.name: path.stat().st_mtime_ns for path in place.iterdir()}
    about = json.loads((place / "mine.ogd.json").read_text())
    assert about["table"]["labels"]["classes"] == ["no", "yes"]
    run(asked(folder, models=False), folder / "copy")
    assert not (folder / "copy" / "models").exists()
    with pytest.raises(ValueError, match=r"holds no model of any learner on mine.*models = false"):
        models.read(folder / "copy")


def test_games_without_rows_are_not_predicted(folder, monkeypatch):
    about = {"dataset": "prices", "task": "portfolio", "table": None}
    monkeypatch.setattr(models, "read", lambda *_: models.Model(None, None, about))
    with pytest.raises(ValueError, match="is of task portfolio, which has no rows"):
        models.predict(folder / "r", folder / "new.csv")


def test_a_baseline_that_leads_is_no_model_unless_named(folder, tmp_path, capsys):
    """A step size of 50 is worse than the most frequent class; the baseline can still be read."""
    ogd = {"name": "ogd", "linear": True, "eta": 50.0}
    run(asked(folder, learners=[ogd], baseline=True, seeds=1), tmp_path / "r")
    new = str(folder / "new.csv")
    for command in ("predict", "learn"):
        assert cli.main([command, str(tmp_path / "r"), new]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "'baseline: majority class' leads on mine" in said
        assert said.endswith("name one: --learner 'ogd'.")
    named = models.predict(tmp_path / "r", new, "baseline: majority class")
    assert len(set(named.table["prediction"].to_pylist())) == 1
    assert models.predict(tmp_path / "r", new, "ogd").table.num_rows == 20
