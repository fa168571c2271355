"""Running experiments: the numbers, the protocols, resuming, certificates."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from olx.certificate import Certificates
from olx.engine import checkpoint
from olx.lab import store, tables
from olx.lab.certificates import replayed
from olx.lab.config import ConfigError, parse
from olx.lab.run import run
from olx.lab.show import certificates

ROWS, FEATURES, ETAS = 60, 4, [0.03, 0.1, 0.3]
SOURCE = np.random.default_rng(0)
X = np.c_[SOURCE.normal(size=(ROWS, FEATURES - 1)), np.ones(ROWS)]  # the lab adds the intercept
Y = np.where(X @ [1.0, -1.0, 0.5, 0.0] + SOURCE.normal(size=ROWS) > 0, 1.0, -1.0)
OGD = {"name": "ogd", "linear": True, "grid": {"eta": ETAS}}
TABLES = ("configurations", "curves", "certificates")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "mine.npz"
    np.savez(path, X=X[:, :-1], y=Y)
    return str(path)


def experiment(file, **changes):
    data = {"name": file, "label": "mine", "order": "file"}
    tree = {"precision": "float64", "baseline": False, "models": False}
    return parse({**tree, "data": [data], "learners": [OGD], **changes})


def descend(x, y, eta, start=None):
    """Gradient descent on the logistic loss, in plain NumPy: losses, scores and the last point."""
    w = np.zeros(x.shape[1]) if start is None else start
    losses, scores = [], []
    for row, label in zip(x, y, strict=True):
        score = row @ w
        losses.append(np.log1p(np.exp(-label * score)))
        scores.append(score)
        w = w + eta * label * row / (1 + np.exp(label * score))
    return np.array(losses), np.array(scores), w


REFERENCE = {eta: descend(X, Y, eta) for eta in ETAS}


def column(table, name):
    return np.array(table.column(name).to_pylist())


def test_the_tables_hold_what_plain_numpy_finds(file, tmp_path):
    result = run(experiment(file, comparator="zero"), tmp_path / "r")
    rows = result.configurations
    assert column(rows, "h.eta").tolist() == ETAS
    assert [json.loads(text) for text in column(rows, "hyperparameters")] == [
        {"eta": eta} for eta in ETAS
    ]
    assert set(column(rows, "rounds")) == {ROWS}
    assert not any(column(rows, "diverged"))
    for i, eta in enumerate(ETAS):
        losses, scores, _ = REFERENCE[eta]
        assert column(rows, "total")[i] == pytest.approx(losses.sum(), rel=1e-12)
        assert column(rows, "loss")[i] == pytest.approx(losses.mean(), rel=1e-12)
        assert column(rows, "error")[i] == np.mean(scores * Y <= 0)
        mine = result.curves.filter(column(result.curves, "configuration") == i)
        at = column(mine, "round")
        assert at[0] == 1
        assert at[-1] == ROWS
        np.testing.assert_allclose(column(mine, "total"), np.cumsum(losses)[at - 1], rtol=1e-12)
        regret = np.cumsum(losses - np.log(2))[at - 1]
        np.testing.assert_allclose(column(mine, "regret"), regret, atol=1e-12)


def test_single_precision_is_the_default(file, tmp_path):
    data = [{"name": file, "label": "mine", "order": "file"}]
    rows = run(
        parse({"baseline": False, "data": data, "learners": [OGD]}), tmp_path / "r"
    ).configurations
    totals = [REFERENCE[eta][0].sum() for eta in ETAS]
    np.testing.assert_allclose(column(rows, "total"), totals, rtol=1e-5)
    assert not np.allclose(column(rows, "total"), totals, rtol=1e-12)


def test_a_thinned_run_has_the_same_totals(file, tmp_path):
    rows = run(experiment(file, metrics=[]), tmp_path / "r").configurations
    assert "error" not in rows.column_names
    totals = [REFERENCE[eta][0].sum() for eta in ETAS]
    np.testing.assert_allclose(column(rows, "total"), totals, rtol=1e-12)


def test_a_split_learns_on_one_part_and_tests_on_the_other(file, tmp_path):
    rows = run(experiment(file, protocol="split", test=0.25), tmp_path / "r").configurations
    assert set(column(rows, "rounds")) == {45}
    for i, eta in enumerate(ETAS):
        losses, _, w = descend(X[:45], Y[:45], eta)
        margins = Y[45:] * (X[45:] @ w)
        assert column(rows, "loss")[i] == pytest.approx(losses.mean(), rel=1e-12)
        assert column(rows, "test_loss")[i] == pytest.approx(np.log1p(np.exp(-margins)).mean())
        assert column(rows, "test_error")[i] == np.mean(margins <= 0)


def test_halves_are_judged_apart_while_learning_goes_on(file, tmp_path):
    rows = run(experiment(file, protocol="half"), tmp_path / "r").configurations
    for i, eta in enumerate(ETAS):
        losses, scores, _ = REFERENCE[eta]
        assert column(rows, "loss")[i] == pytest.approx(losses[:30].mean(), rel=1e-12)
        assert column(rows, "test_loss")[i] == pytest.approx(losses[30:].mean(), rel=1e-12)
        assert column(rows, "test_error")[i] == np.mean((scores * Y)[30:] <= 0)


def test_with_a_delay_each_gradient_is_learned_later(file, tmp_path):
    changes = {"delay": 3, "comparator": "best", "bound": "all", "baseline": True}
    result = run(experiment(file, **changes), tmp_path / "r")
    for i, eta in enumerate(ETAS):
        w, waiting, losses = np.zeros(FEATURES), [], []
        for x, y in zip(X, Y, strict=True):
            losses.append(np.log1p(np.exp(-y * (x @ w))))
            waiting.append(eta * y * x / (1 + np.exp(y * (x @ w))))
            if len(waiting) > 3:
                w = w + waiting.pop(0)
        assert column(result.configurations, "total")[i] == pytest.approx(np.sum(losses))
    assert all(column(result.certificates, "holds"))
    late = experiment(file, learners=[{"name": "classification.perceptron"}], delay=3)
    with pytest.raises(ConfigError, match="must decide without a context"):
        run(late, tmp_path / "s")
    with pytest.raises(ConfigError, match="delay: it must be at least 0, got -1"):
        run(experiment(file, delay=-1), tmp_path / "t")


def test_structure_and_numbers_keep_their_places(file, tmp_path):
    maps = ["euclidean", {"name": "euclidean", "domain": {"name": "ball", "radius": 0.5}}]
    grid = {"eta": ETAS, "mirror": maps}
    learner = {"name": "md", "linear": True, "grid": grid}
    rows = run(experiment(file, learners=[learner]), tmp_path / "r").configurations
    points = [json.loads(text) for text in column(rows, "hyperparameters")]
    assert points == [{"eta": eta, "mirror": mirror} for eta in ETAS for mirror in maps]
    totals = column(rows, "total").reshape(3, 2)
    np.testing.assert_allclose(totals[:, 0], [REFERENCE[eta][0].sum() for eta in ETAS])
    for i, eta in enumerate(ETAS):
        assert totals[i, 1] == pytest.approx(in_ball(eta, 0.5), rel=1e-10)


def in_ball(eta, radius):
    w, total = np.zeros(FEATURES), 0.0
    for x, y in zip(X, Y, strict=True):
        total += np.log1p(np.exp(-y * (x @ w)))
        w = w + eta * y * x / (1 + np.exp(y * (x @ w)))
        w = w * min(1.0, radius / np.linalg.norm(w))
    return total


def test_each_seed_is_an_order_of_the_rows(file, tmp_path):
    data = [{"name": file, "label": "mine"}]
    rows = run(experiment(file, data=data, seeds=[4, 9]), tmp_path / "r").configurations
    assert column(rows, "seed").tolist() == [4] * 3 + [9] * 3
    for i, seed in enumerate([4, 9]):
        order = np.random.default_rng(seed).permutation(ROWS)
        wanted = [descend(X[order], Y[order], eta)[0].sum() for eta in ETAS]
        np.testing.assert_allclose(column(rows, "total")[3 * i : 3 * i + 3], wanted, rtol=1e-12)


def test_rows_too_many_to_be_dense_are_played_sparse(tmp_path):
    path = tmp_path / "mine.svm"
    pairs = lambda row: " ".join(f"{i + 1}:{v!r}" for i, v in enumerate(row.tolist()))
    path.write_text("\n".join(f"{y:+g} {pairs(x)}" for x, y in zip(X[:, :-1], Y, strict=True)))
    little = {"memory": 1e-4}
    rows = run(experiment(str(path), budget=little), tmp_path / "r").configurations
    totals = [REFERENCE[eta][0].sum() for eta in ETAS]
    np.testing.assert_allclose(column(rows, "total"), totals, rtol=1e-12)
    assert column(rows, "error").tolist() == [np.mean(REFERENCE[e][1] * Y <= 0) for e in ETAS]
    with pytest.raises(ConfigError, match="too large to be dense"):
        run(experiment(str(path), budget=little, comparator="zero"), tmp_path / "other")


def test_the_baseline_of_sparse_rows_is_compared_also_when_it_is_played_alone(tmp_path):
    path = tmp_path / "mine.svm"
    path.write_text("\n".join(f"{y:+g} {i % 7 + 1}:1" for i, y in enumerate(Y)))
    asked = experiment(str(path), comparator="zero", baseline=True)
    first = run(asked, tmp_path / "r").curves
    for place in (tmp_path / "r" / "jobs").iterdir():
        if "ogd" not in place.name:
            shutil.rmtree(place)
    assert run(asked, tmp_path / "r").curves.equals(first)


def test_a_portfolio_ends_with_its_wealth(tmp_path):
    relatives = np.exp(0.05 * SOURCE.normal(size=(20, 4)))
    np.savez(tmp_path / "prices.npz", X=relatives)
    data = {"name": str(tmp_path / "prices.npz"), "task": "portfolio", "order": "file"}
    learner = {"name": "hedge", "eta": 1e-12}
    tree = {"precision": "float64", "baseline": False, "data": [data], "learners": [learner]}
    rows = run(parse(tree), tmp_path / "r").configurations
    rebalanced = np.prod(relatives.mean(1))
    assert column(rows, "wealth")[0] == pytest.approx(rebalanced, rel=1e-9)


def test_a_configuration_that_diverges_is_told_and_disturbs_no_other(file, tmp_path):
    learner = {"name": "ogd", "linear": True, "grid": {"eta": [0.1, 1e300]}}
    changed = experiment(file, learners=[learner], loss="squared", metrics=[])
    rows = run(changed, tmp_path / "r").configurations
    assert column(rows, "diverged").tolist() == [False, True]


def test_certificates_hold_and_say_how_tightly(file, tmp_path):
    learners = [OGD, {"name": "cocob", "linear": True}]
    asked = experiment(file, comparator="best", radius=2.0, bound="all", learners=learners)
    result = run(asked, tmp_path / "r")
    proofs = [row for row in result.certificates.to_pylist() if row["name"] == "mirror_descent"]
    assert [(row["learner"], row["configuration"]) for row in proofs] == [
        ("ogd", i) for i in range(3)
    ]
    assert all(row["holds"] and row["slack"] >= -1e-12 for row in proofs)
    assert max(row["tightness"] for row in proofs) > 0.2
    bounds = column(result.curves, "bound")
    mine = column(result.curves, "learner") == "ogd"
    assert all(bound is not None for bound in bounds[mine])
    assert all(bound is None for bound in bounds[~mine])  # it comes with no theorem
    assert np.all(column(result.curves, "regret")[mine] <= bounds[mine].astype(float) + 1e-9)


def test_a_theorem_about_other_losses_bounds_no_regret(file, tmp_path):
    learner = {"name": "passive_aggressive_1", "aggressiveness": 0.1}
    asked = experiment(file, comparator="best", radius=2.0, bound="all", learners=[learner])
    result = run(asked, tmp_path / "r")
    assert column(result.certificates, "name").tolist() == ["distance", "mistakes"]
    assert column(result.certificates, "holds").tolist() == [True, True]
    assert set(column(result.curves, "bound")) == {None}


def test_theorems_are_chosen_by_name(file, tmp_path):
    learner = {"name": "passive_aggressive_1", "aggressiveness": 0.1}
    learner["theorems"] = ["mistakes"]
    asked = experiment(file, comparator="zero", bound="all", learners=[learner])
    assert asked == parse(tomllib.loads(asked.text()))
    proofs = run(asked, tmp_path / "r").certificates
    assert column(proofs, "name").tolist() == ["mistakes"]


def test_a_theorem_with_a_number_is_a_table_of_a_config(file, tmp_path):
    table = {"name": "theorems.alma_mistakes", "margin": 0.1}
    learner = {"name": "alma", "alpha": 0.9, "theorems": ["regret_on_corrections", table]}
    asked = experiment(file, comparator="zero", bound="all", learners=[learner])
    assert asked == parse(tomllib.loads(asked.text()))
    proofs = run(asked, tmp_path / "r").certificates
    assert column(proofs, "name").tolist() == ["regret_on_corrections", "alma_mistakes"]
    assert column(proofs, "holds").tolist() == [True, True]


def test_a_theorem_about_sequences_gets_the_best_sequence_of_experts(tmp_path):
    table = {"name": "fixed_share_path"}
    learner = {"name": "fixed_share", "eta": 0.5, "alpha": 0.1}
    data = {"name": "stream:switching_losses", "arguments": {"rounds": 60, "experts": 4}}
    asked = {"data": [data], "comparator": "best", "bound": "all", "shifts": 3}
    asked |= {"learners": [learner | {"theorems": ["one_mixture", table]}]}
    proofs = run(parse(asked), tmp_path / "r").certificates
    assert column(proofs, "name").tolist() == ["one_mixture", "fixed_share_path"]
    assert column(proofs, "holds").tolist() == [True, True]
    assert column(proofs, "broken").tolist() == ["", ""]
    one, path = column(proofs, "left")
    assert path > one


def test_a_theorem_may_take_a_loss(file, tmp_path):
    table = {"name": "surrogate_regret", "surrogate": "logistic"}
    learner = {"name": "ogd", "linear": True, "eta": 0.1, "theorems": [table]}
    asked = experiment(file, comparator="zero", bound="all", learners=[learner])
    [proof] = run(asked, tmp_path / "r").certificates.to_pylist()
    assert proof["holds"]
    assert not proof["broken"]


def test_the_best_comparator_is_searched_in_the_set_of_the_learner(file, tmp_path):
    winnow = {"name": "winnow", "eta": 0.1}
    inside = winnow | {"label": "inside", "compare_in": "simplex"}
    asked = experiment(file, comparator="best", bound="all", learners=[winnow, inside])
    assert asked == parse(tomllib.loads(asked.text()))
    proofs = run(asked, tmp_path / "r").certificates.to_pylist()
    broken = {proof["learner"]: proof["broken"] for proof in proofs}
    assert broken["inside"] == ""
    assert "must lie in the domain; name the set of the learner: compare_in" in broken["winnow"]
    assert "winnow_mistakes" in {proof["name"] for proof in proofs}


def test_a_broken_condition_is_named_with_its_round(file, tmp_path):
    learner = {"name": "coin_betting", "linear": True, "lipschitz": 1e-3, "wealth": 1.0}
    asked = experiment(file, comparator="zero", bound="all", learners=[learner])
    [proof] = run(asked, tmp_path / "r").certificates.to_pylist()
    assert not proof["holds"]
    assert proof["right"] == np.inf
    assert proof["broken"].startswith("from round 1 on: ")
    assert "must be at most `lipschitz`; from round 2 on: the run diverged" in proof["broken"]


def test_the_run_that_is_shown_is_judged_and_the_double_one_beside_it(file, tmp_path, monkeypatch):
    judged = []

    def fails_in_single(*game, **options):
        (found,), done = replayed(*game, **options)
        judged.append((found.left.dtype.name, float(done.curve.total[-1])))
        if found.left.dtype == np.float32:
            found = dataclasses.replace(found, left=found.right + 1.0, so_far=None)
        return Certificates((found,)), done

    monkeypatch.setattr("olx.lab.certificates.replayed", fails_in_single)
    one = {"name": "ogd", "linear": True, "eta": 0.1, "theorems": ["mirror_descent"]}
    asked = experiment(file, comparator="zero", bound="all", precision="float32", learners=[one])
    result = run(asked, tmp_path / "r")
    [proof] = result.certificates.to_pylist()
    assert [dtype for dtype, _ in judged] == ["float32", "float64"]
    assert judged[0][1] == pytest.approx(column(result.configurations, "total")[0], rel=1e-6)
    assert proof["difference"] < 1e-6
    assert not proof["holds"]
    assert proof["holds_in_double"]
    monkeypatch.setattr("olx.lab.show.WIDTH", 1000)  # no cell is wrapped
    assert "fails by rounding alone: in double precision it holds" in certificates(result)


def test_only_the_best_configuration_is_certified_if_asked(file, tmp_path):
    asked = experiment(file, comparator="zero", bound="best")
    result = run(asked, tmp_path / "r")
    best = int(np.argmin(column(result.configurations, "total")))
    assert set(column(result.certificates, "configuration")) == {best}


def jobs(file, **changes):
    """Two learners and two seeds: four jobs."""
    data = [{"name": file, "label": "mine"}]
    learners = [OGD, {"name": "perceptron"}]
    return experiment(file, data=data, seeds=2, learners=learners, **changes)


def same_tables(one: Path, other: Path) -> None:
    for name in TABLES:
        assert (one / f"{name}.parquet").read_bytes() == (other / f"{name}.parquet").read_bytes()


@pytest.mark.parametrize("save", [0.0, 1e9], ids=["saved on the way", "not saved"])
def test_an_interrupted_run_ends_with_the_same_tables(save, file, tmp_path, monkeypatch):
    asked = jobs(file, budget={"save": save})
    run(asked, tmp_path / "whole")
    put, done = store.put, []

    def once(folder, job, *rest):
        if len(done) == 1:
            raise KeyboardInterrupt
        done.append(job)
        put(folder, job, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(store, "put", once)
        with pytest.raises(KeyboardInterrupt):
            run(asked, tmp_path / "part")
    assert store.finished_jobs(tmp_path / "part") == set(done)
    with pytest.raises(FileNotFoundError, match="is not finished: 1 jobs are done"):
        store.read(tmp_path / "part")
    assert (tmp_path / "part" / "checkpoints").exists() == (save == 0)
    run(asked, tmp_path / "part")
    same_tables(tmp_path / "whole", tmp_path / "part")
    assert not (tmp_path / "part" / "checkpoints").exists()


def test_a_finished_job_is_not_played_again(file, tmp_path, monkeypatch):
    asked = jobs(file)
    first = run(asked, tmp_path / "r")
    monkeypatch.setattr("olx.lab.play._play", None)
    assert run(asked, tmp_path / "r").times.equals(first.times)


def test_a_killed_run_ends_with_the_same_tables(file, tmp_path):
    asked = jobs(file)
    (tmp_path / "mine.toml").write_text(asked.text())
    words = ["-m", "olx.cli", "run", "mine.toml", "--out", "killed", "--no-report"]
    process = subprocess.Popen([sys.executable, *words], cwd=tmp_path, stderr=subprocess.DEVNULL)
    waiting = time.monotonic() + 120
    while not store.finished_jobs(tmp_path / "killed") and process.poll() is None:
        assert time.monotonic() < waiting
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = store.finished_jobs(tmp_path / "killed")
    assert 0 < len(kept) < 4, "killed too late to tell"
    run(asked, tmp_path / "killed")
    run(asked, tmp_path / "whole")
    same_tables(tmp_path / "whole", tmp_path / "killed")


def test_a_stream_that_is_generated_anew_is_the_same_data(tmp_path):
    stream = {"name": "stream:linear_regression", "arguments": {"rounds": 20, "features": 2}}
    asked = parse({"baseline": False, "data": [stream], "learners": [OGD]})
    first = run(asked, tmp_path / "r")
    assert run(asked, tmp_path / "r").times.equals(first.times)


def test_a_run_that_was_killed_as_it_began_begins_again(file, tmp_path):
    (tmp_path / "r" / "jobs").mkdir(parents=True)
    (tmp_path / "r" / "environment.json").write_text("{}")
    assert run(experiment(file), tmp_path / "r").configurations.num_rows == 3


def test_a_result_is_played_by_one_run_at_a_time(file, tmp_path):
    run(experiment(file), tmp_path / "r")
    said = rf"another run \(process {os.getpid()} on .*\) is using the result in .* Wait until it"
    with (
        checkpoint.lock_folder(tmp_path / "r"),
        pytest.raises(BlockingIOError, match=said),
    ):
        run(experiment(file), tmp_path / "r", wait=False)


def test_a_folder_of_something_else_is_left_alone(file, tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(FileExistsError, match="is not empty and holds no result"):
        run(experiment(file), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_result_says_where_it_comes_from(file, tmp_path):
    result = run(experiment(file), tmp_path / "r")
    assert result.environment["packages"]["olx"]
    assert result.environment["devices"]
    assert result.config["data"][0]["name"] == file
    assert pq.read_table(tmp_path / "r" / "configurations.parquet").equals(result.configurations)
    times = result.times.to_pylist()[0]
    parts = [times[f"{part}_seconds"] for part in tables.PARTS]
    assert min(parts) >= 0
    assert sum(parts) == pytest.approx(times["seconds"])
    assert times["rounds_per_second"] > 0
