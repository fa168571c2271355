"""The comparison of layers, at tiny sizes."""

import csv

import jax
import numpy as np
import pytest

from experiments import associative_recall as script


@pytest.fixture(autouse=True)
def promotion():
    """That of users: optax.adam mixes dtypes."""
    with jax.numpy_dtype_promotion("standard"):
        yield


@pytest.mark.parametrize("times", [1, 3])
def test_an_answer_is_the_last_value_that_came_with_the_key(times):
    task = script.recall(4, times)
    drawn = task.draw(np.random.default_rng(0), 50, None)
    assert set(drawn.asked.sum(1)) == {1.0, 2.0, 4.0}
    for rows, target, asked in zip(*drawn, strict=True):
        count = int(asked.sum())
        end = 2 * times * count
        told = dict(zip(rows[0:end:2], rows[1:end:2], strict=True))
        assert all(np.sum(rows[0:end:2] == key) == times for key in told)
        here = np.flatnonzero(asked)
        assert sorted(rows[here]) == sorted(told)
        assert [told[key] - script.SYMBOLS for key in rows[here]] == list(target[here])


def test_examples_of_regression_come_one_token_late():
    drawn = script.regression(12).draw(np.random.default_rng(0), 3, 8)
    x, late = drawn.rows[:, :, :-1], drawn.rows[:, :, -1]
    np.testing.assert_array_equal(late[:, 1:], drawn.target[:, :-1])
    assert drawn.asked.sum(0).tolist() == [0] * 8 + [3] + [0] * 3
    for each, y in zip(x, drawn.target, strict=True):
        residual = np.linalg.lstsq(each, y, rcond=None)[1]
        assert residual[0] < 12 * (3 * script.NOISE) ** 2


def test_a_quick_run_writes_its_tables(tmp_path, capsys):
    layers = ["no layer", "delta rule"]
    script.main(["--quick", "--tasks", "recall", "--layers", *layers, "--out", str(tmp_path)])
    with (tmp_path / "associative_recall.csv").open() as file:
        found = list(csv.DictReader(file))
    assert [(one["layer"], one["measure"]) for one in found] == [
        (layer, f"accuracy, {pairs} keys")
        for layer in (*layers, "delta rule")  # two lengths of keys, and no layer once
        for pairs in (1, 2)
    ]
    assert all(0 <= float(one["mean"]) <= 1 for one in found)
    shown = (tmp_path / "associative_recall.md").read_text()
    assert "| delta rule | delta |" in shown
    assert shown in capsys.readouterr().out
    assert (tmp_path / "associative_recall.png").stat().st_size > 1000


def test_training_finds_pairs_that_no_layer_cannot_find():
    task, sizes = script.recall(1), script.Sizes(150, 16, 64, rate=0.02, seeds=1)
    drawn = script.stacked([script.data(task, sizes, 0)])
    (found,) = script.compared("recall", task, drawn, "delta rule", 4, sizes)
    assert found.mean > 0.5
