"""Factories outside the library: configs name them as `package.module:factory`."""

import importlib
import itertools
import json
import sys

import numpy as np
import pytest

from olx import cli
from olx.lab import user_factories
from olx.lab.config import ConfigError, parse
from olx.lab.data import load
from olx.lab.jobs import learner_job
from olx.lab.run import run

STREAM = {"name": "stream:linear_regression", "arguments": {"rounds": 20, "features": 2}}
MINE = "outside_factories"
NUMBERS = itertools.count()


def totals(learner, folder, **changes):
    """Total losses of the configurations of a learner."""
    tree = {"precision": "float64", "baseline": False, "models": False}
    tree |= {"data": [STREAM], "learners": [learner]}
    return run(parse({**tree, **changes}), folder).configurations.column("total").to_pylist()


def test_a_learner_and_its_map_may_come_from_outside(tmp_path):
    grid = {"eta": [0.1, 0.2], "mirror.radius": [0.5, 2.0]}
    ball = {"name": "euclidean", "domain": "ball"}
    library = {"name": "omd", "mirror": ball}
    theirs = {"eta": [0.1, 0.2], "mirror.domain.radius": [0.5, 2.0]}
    own = {"name": f"{MINE}:descent", "mirror": f"{MINE}:ball"}
    wanted = totals({**library, "linear": True, "grid": theirs}, tmp_path / "library")
    assert totals({**own, "linear": True, "grid": grid}, tmp_path / "own") == wanted
    mixed = {**library, "mirror": {"name": f"{MINE}:ball"}}
    assert totals({**mixed, "linear": True, "grid": grid}, tmp_path / "mixed") == wanted


def test_a_choice_of_structure_may_name_factories_outside():
    learner = {"name": f"{MINE}:descent", "grid": {"eta": [0.1, 0.2], "times": [1, 2]}}
    learner["grid"]["mirror"] = ["euclidean", f"{MINE}:ball"]
    tree = {"data": [STREAM], "learners": [learner]}
    parts = learner_job(0, parse(tree).learners[0]).parts
    assert [part.index for part in parts] == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert [part.numbers for part in parts] == [{"eta": [0.1, 0.2]}] * 4


def test_an_argument_may_be_a_word_where_the_factory_says_so():
    learner = {"name": f"{MINE}:descent", "eta": 0.1, "grid": {"sign": ["plus", "minus"]}}
    assert (
        len(learner_job(0, parse({"data": [STREAM], "learners": [learner]}).learners[0]).parts) == 2
    )


@pytest.mark.parametrize(
    ("loss", "of"),
    [
        (f"{MINE}:quartic", lambda gap: gap**4),
        (f"{MINE}:HALF", lambda gap: gap**2 / 2),
        ({"name": f"{MINE}:scaled", "scale": 3.0}, lambda gap: 3 * gap**2),
    ],
    ids=["a function", "a loss", "a factory"],
)
def test_a_loss_may_come_from_outside(loss, of, tmp_path):
    still = {"name": "ogd", "linear": True, "eta": 1e-300}
    outcome = load(STREAM["name"], arguments=STREAM["arguments"], seed=0).outcome
    found = totals(still, tmp_path / "r", loss=loss, metrics=[])
    np.testing.assert_allclose(found, of(outcome.astype(float)).sum(), rtol=1e-6)


def test_a_stream_may_come_from_outside():
    name, arguments = f"stream:{MINE}:noise", {"rounds": 4, "features": 2, "scale": 3.0}
    first, second = (load(name, arguments=arguments, seed=seed) for seed in (0, 1))
    assert first.task.name == "regression"
    assert first.context.shape == (4, 2)
    assert not np.array_equal(first.context, second.context)
    np.testing.assert_allclose(first.outcome, first.context @ first.truth, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "options", "task", "shape"),
    [
        ("pair", {"arguments": {"rows": 4}, "scale": "rows"}, "binary", (4, 4)),
        ("pair", {"arguments": {"classes": 3}, "task": "multiclass"}, "multiclass", (6, 4)),
        ("frame", {"target": "label"}, "binary", (3, 3)),
        ("rounds", {}, "regression", (4, 2)),
    ],
    ids=["a pair", "a pair of three classes", "a frame", "rounds"],
)
def test_rows_may_come_from_outside(name, options, task, shape):
    data = load(f"{MINE}:{name}", **options)
    assert data.task.name == task
    assert data.context.shape == shape


def test_a_config_plays_rows_from_outside(tmp_path):
    data = {"name": f"{MINE}:pair", "arguments": {"rows": 8}, "scale": "rows"}
    totals({"name": "ogd", "linear": True, "eta": 0.1}, tmp_path / "r", data=[data])
    assert set(json.loads((tmp_path / "r" / "data.json").read_text())) == {f"{MINE}:pair"}


REFUSED = {
    "an argument": (
        {"name": "pair", "arguments": {"row": 3}},
        "no argument row; did you mean row",
    ),
    "no rows": ({"name": "nothing"}, "returned nothing; it must return (X, y), a frame of"),
    "a number": ({"name": "NUMBER"}, "the rows must be (X, y), a frame of pandas, polars or"),
    "a failure": ({"name": "broken", "arguments": {"eta": 1}}, "broken failed: KeyError: 'eta'."),
    "a missing one": ({"name": "broken"}, "broken needs the argument eta; give it in arguments."),
    "a key": ({"name": "noise"}, f"draws with a key: name it stream:{MINE}:noise"),
    "uneven": ({"name": "uneven"}, "X has 3 rows, y has shape (2,)"),
    "no labels": ({"name": "prices"}, "holds no labels; it can only be of task"),
    "a column": ({"name": "frame", "target": "lable"}, "no column 'lable'; did you mean label?"),
    "a scale": ({"name": "rounds", "scale": "rows"}, "takes no scale"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_rows_from_outside_are_refused_by_name(case):
    options, words = REFUSED[case]
    with pytest.raises(ValueError, match=MINE) as refusal:
        load(f"{MINE}:{options['name']}", **{k: v for k, v in options.items() if k != "name"})
    assert words in str(refusal.value)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module of a name of its own into a folder: the name."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # or a change within a second is missed

    def write(folder, text, name=None):
        name = name or f"outside_{next(NUMBERS)}"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.py").write_text(text)
        return name

    return write


DESCENT = "import olx\n\ndef descent(eta: float):\n    return olx.ogd({} * eta)\n"


def asked(name):
    learner = {"name": f"{name}:descent", "linear": True, "grid": {"eta": [0.1, 0.2]}}
    without = {"baseline": False, "models": False}
    return parse({**without, "data": [STREAM], "learners": [learner]})


def test_a_factory_that_changed_is_played_again(module, tmp_path, capsys):
    name = module(tmp_path / "code", DESCENT.format(1))
    user_factories.look_in(tmp_path / "code")
    first = run(asked(name), tmp_path / "r")
    assert run(asked(name), tmp_path / "r").times.equals(first.times)
    kept = json.loads((tmp_path / "r" / "data.json").read_text())
    assert set(kept) == {STREAM["name"], f"{name}:descent"}
    module(tmp_path / "code", DESCENT.format(2), name)
    with pytest.raises(ConfigError, match=f"{name}:descent: its file has changed since this"):
        run(asked(name), tmp_path / "other")
    importlib.reload(sys.modules[name])
    second = run(asked(name), tmp_path / "r")
    assert f"olx: the file of {name}:descent changed." in capsys.readouterr().err
    assert not second.configurations.equals(first.configurations)


def test_a_factory_that_a_module_imports_is_looked_at_in_its_own_file(module, tmp_path):
    inner = module(tmp_path / "code", DESCENT.format(1))
    outer = module(tmp_path / "code", f"from {inner} import descent\n")
    user_factories.look_in(tmp_path / "code")
    before = user_factories.digests({})
    assert before == {}
    user_factories.find("", f"{outer}:descent")
    module(tmp_path / "code", DESCENT.format(2), inner)
    with pytest.raises(ConfigError, match="its file has changed"):
        user_factories.digests({"learners": [{"name": f"{outer}:descent"}]})


@pytest.mark.parametrize("place", ["configs", "."])
def test_the_command_finds_modules_beside_the_config_and_here(place, module, tmp_path, monkeypatch):
    (tmp_path / "configs").mkdir()
    monkeypatch.chdir(tmp_path)
    name = module(tmp_path / place, DESCENT.format(1))
    (tmp_path / "configs" / "mine.toml").write_text(asked(name).text())
    assert cli.main(["run", "configs/mine.toml", "--no-report", "--out", "r"]) == 0


def test_a_module_beside_the_config_hides_none_that_is_installed(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = list(sys.path)
    user_factories.look_in(tmp_path)
    user_factories.look_in(tmp_path)
    assert sys.path == [*before, str(tmp_path)]


COST = """import jax.numpy as jnp

def cost(action, outcome):
    return {} * jnp.abs(action - outcome)

def pair(action, outcome):
    return jnp.stack([action, outcome])

def word(action, outcome):
    return "much"

def fails(action, outcome):
    raise KeyError("price")

def alone(action):
    return action

price = 5.0
"""


def measured(name, **changes):
    learner = {"name": "ogd", "linear": True, "grid": {"eta": [0.1, 0.2]}}
    without = {"baseline": False, "models": False, "data": [STREAM], "learners": [learner]}
    return parse({**without, "metrics": ["absolute_error", name], **changes})


def test_a_metric_of_a_user_is_a_column(module, tmp_path, capsys):
    name = module(tmp_path / "code", COST.format(2.0))
    user_factories.look_in(tmp_path / "code")
    ask = lambda **changes: measured(f"{name}:cost", **changes)
    table = run(ask(), tmp_path / "r").configurations
    column = lambda table, key: np.array(table.column(key).to_pylist())
    np.testing.assert_allclose(
        column(table, f"{name}:cost"), 2 * column(table, "absolute_error"), rtol=1e-6
    )
    halves = run(ask(protocol="half"), tmp_path / "h").configurations
    assert f"test_{name}:cost" in halves.column_names
    module(tmp_path / "code", COST.format(3.0), name)
    importlib.reload(sys.modules[name])
    again = run(ask(), tmp_path / "r").configurations
    assert f"olx: the file of {name}:cost changed." in capsys.readouterr().err
    np.testing.assert_allclose(
        column(again, f"{name}:cost"), 3 * column(table, "absolute_error"), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("pair", r"metrics: .*:pair must return one number per round, got float32\[2\] on "),
        ("word", "metrics: .*:word fails on .*: TypeError: "),
        ("fails", "metrics: .*:fails fails on .*: KeyError: 'price'"),
        ("alone", "metrics: .*:alone must be a function of an action and an outcome: too many"),
        ("price", "metrics: .*:price is a float; name a function of an action and an outcome"),
        ("costs", "metrics: .*has no costs; did you mean cost?"),
    ],
)
def test_a_metric_that_gives_no_number_is_refused(metric, words, module, tmp_path):
    name = module(tmp_path / "code", COST.format(1.0))
    user_factories.look_in(tmp_path / "code")
    with pytest.raises(ConfigError, match=words):
        run(measured(f"{name}:{metric}"), tmp_path / "r")
