"""`olx.lab.compare`: learners and rows from Python give the result of a config."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pytest

import olx
import olx.lab
from olx.lab import config
from olx.lab.run import run

X = np.random.default_rng(0).normal(size=(24, 2))
Y = np.where(X @ [1.0, -2.0] > 0, 1.0, -1.0)
FRAME = pa.table({"a": X[:, 0], "b": X[:, 1], "y": Y})
ETAS = [0.1, 0.5]


def descent(eta: float, times: int = 1):
    return olx.linear(olx.ogd(eta * times))


@pytest.fixture(scope="module")
def result():
    return olx.lab.compare(
        {
            "table": {"name": "ogd", "linear": True, "grid": {"eta": ETAS}},
            "batch": olx.batch(descent, eta=jnp.array(ETAS)),
            "function": (descent, olx.grid(eta=ETAS, times=[1, 2])),
            "learner": descent(ETAS[0]),
            "mine": {
                "name": "omd",
                "eta": ETAS[0],
                "linear": True,
                "mirror": olx.mirrors.euclidean,
            },
        },
        (X, Y),
        seeds=2,
        loss=olx.losses.hinge,
        comparator="zero",
        bound="best",
    )


def rows(result, learner, **numbers):
    """Totals of a learner at these numbers, by seed."""
    return [
        row["total"]
        for row in result.configurations.to_pylist()
        if row["learner"] == learner
        and numbers.items() <= json.loads(row["hyperparameters"]).items()
    ]


def test_every_form_of_a_learner_gives_the_same_numbers(result):
    wanted = rows(result, "table", eta=0.1)
    assert len(wanted) == 2
    for learner, numbers in (("batch", {"eta": 0.1}), ("learner", {}), ("mine", {})):
        np.testing.assert_allclose(rows(result, learner, **numbers), wanted, rtol=1e-12)
    np.testing.assert_allclose(rows(result, "function", eta=0.1, times=1), wanted, rtol=1e-12)
    assert len(rows(result, "function")) == 8


def test_it_is_the_result_of_a_config(result, tmp_path):
    np.savez(tmp_path / "mine.npz", X=X, y=Y)
    learner = {"name": "ogd", "label": "table", "linear": True, "grid": {"eta": ETAS}}
    data = {"name": str(tmp_path / "mine.npz")}
    keys = {"seeds": 2, "loss": "hinge", "precision": "float64"}
    played = run(config.parse({"data": [data], "learners": [learner], **keys}), tmp_path / "r")
    np.testing.assert_array_equal(rows(played, "table"), rows(result, "table"))


def test_it_shows_its_leaderboard_and_writes_the_report(result):
    assert "<caption>data</caption>" in result._repr_html_()
    assert "<td" in result._repr_html_()
    assert str(result).startswith("data\n")
    assert " ± 0." in str(result)
    assert set(result.table().column("learner").to_pylist()) >= {"learner", "mine"}
    assert result.plot("loss").get_ylabel() == "mean loss so far"
    assert set(result.certificates.column("learner").to_pylist()) >= {"learner", "mine"}
    text = (result.folder / "config.toml").read_text()
    assert 'mirror = "olx.mirrors.euclidean:euclidean"' in text
    assert 'name = "linear(ogd(eta=0.1))"' in text
    page = result.report().read_text()
    assert "function" in page


@pytest.mark.parametrize(
    "data",
    [
        olx.Rounds(X, Y),
        {"name": (X, Y), "order": "file", "bias": False},
        {"mine": {"name": FRAME, "order": "file", "bias": False}},
    ],
    ids=["rounds", "a table", "a frame"],
)
def test_rows_of_every_form_are_the_same(data):
    played = olx.lab.compare({"a": descent(0.1)}, data, loss="hinge")
    wanted = olx.rollout(descent(0.1), olx.losses.hinge, olx.Rounds(X, Y), jnp.zeros(2)).total
    np.testing.assert_allclose(rows(played, "a"), [wanted], rtol=1e-9)


def test_the_precision_is_that_of_jax_or_as_asked():
    learner = olx.batch(descent, eta=jnp.array([0.1]))
    with jax.enable_x64(False):
        single = olx.lab.compare({"a": learner}, (X, Y))
    asked = olx.lab.compare({"a": learner}, (X, Y), precision="float32")
    assert (
        rows(single, "a") == rows(asked, "a") != rows(olx.lab.compare({"a": learner}, (X, Y)), "a")
    )


ONE = {"a": descent(0.1)}
REFUSED = {
    "no learners": (({}, (X, Y)), {}, "`learners` must be a dictionary, as in"),
    "a list": (([descent(0.1)], (X, Y)), {}, "got a list"),
    "a number": (({"a": 3}, (X, Y)), {}, "a: give a learner, a batch, a function, (function, "),
    "axes": (
        ({"a": (descent, {"eta": [1.0], "times": [1, 2]})}, (X, Y)),
        {},
        "times: 2); olx.grid",
    ),
    "words": (({"a": (descent, {"eta": ["x"]})}, (X, Y)), {}, "the values of eta must be numbers"),
    "no grid": (
        ({"a": (descent, [1.0])}, (X, Y)),
        {},
        "as a dictionary, such as olx.grid(eta=etas)",
    ),
    "an argument": (({"a": (descent, {"beta": [1.0]})}, (X, Y)), {}, "has no such argument"),
    "a missing one": (({"a": descent}, (X, Y)), {}, "needs the argument eta"),
    "no learner": (({"a": dict}, (X, Y)), {}, "cannot be read"),
    "a setting": ((ONE, (X, Y)), {"sede": 3}, "unknown key sede; did you mean seeds?"),
    "rows": ((ONE, 3), {}, "the rows must be (X, y), a frame of pandas"),
    "a point": (({"a": olx.ogd(0.1)}, (X, Y)), {}, "decides on a point of 3 numbers"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_compared_is_refused(case):
    given, settings, words = REFUSED[case]
    with pytest.raises(config.ConfigError, match=r"^compare: ") as refusal:
        olx.lab.compare(*given, **settings)
    assert words in str(refusal.value)


def test_a_folder_with_something_in_it_is_refused(tmp_path):
    (tmp_path / "mine").write_text("")
    with pytest.raises(FileExistsError, match="is not empty and holds no result"):
        olx.lab.compare(ONE, (X, Y), out=tmp_path)
