"""A result never tells an old story: what changed is said and played again, and nothing else."""

import threading
import time

import numpy as np
import pytest

from olx.engine import checkpoint
from olx.lab import run as running
from olx.lab import store, tables, user_factories
from olx.lab.config import parse
from olx.lab.run import run

ROWS = np.random.default_rng(0).normal(size=(12, 3)).round(3)
OWN = "import olx\n\n\ndef make(eta: float):\n    return olx.ogd({} * eta)\n"


def table(path, rows):
    path.write_text("\n".join(f"{a:g},{b:g},{np.sign(c):+g}" for a, b, c in rows))


def config(folder, **changes):
    """Two data sets, two learners, two seeds: eight jobs."""
    data = [{"name": str(folder / f"{name}.csv"), "label": name} for name in ("one", "two")]
    ogd = {"name": "ogd", "linear": True, "grid": {"eta": [0.1, 1.0]}}
    tree = {"data": data, "learners": [ogd, {"name": "perceptron"}], "seeds": 2, "curve": 3}
    return {**tree, "baseline": False, **changes}


@pytest.fixture
def played(tmp_path, monkeypatch, capsys):
    """Plays a config in one folder without rounds: the names of the jobs played, what is said."""
    names = []

    def no_rounds(experiment, job, *_):
        names.append((job.dataset, job.learner, job.seed))
        return {name: schema.empty_table() for name, schema in tables.SCHEMAS.items()}

    monkeypatch.setattr(running, "play_job", no_rounds)

    def play(tree, **options):
        names.clear()
        capsys.readouterr()
        run(parse(tree), tmp_path / "r", **options)
        return list(names), capsys.readouterr().err.replace("olx: ", "").splitlines()

    for name in ("one", "two"):
        table(tmp_path / f"{name}.csv", ROWS)
    assert len(play(config(tmp_path))[0]) == 8
    return play


def test_what_did_not_change_is_not_played_again(played, tmp_path):
    assert played(config(tmp_path)) == ([], [])
    (tmp_path / "r" / "report.html").write_text("of the old title")
    said = [{"learner": "ogd", "metric": "loss", "source": "", "values": {}}]
    told = {"title": "new", "description": "new", "published": said, "budget": {"save": 1.0}}
    assert played(config(tmp_path, **told)) == ([], [])
    assert store.read(tmp_path / "r").config["title"] == "new"
    assert not (tmp_path / "r" / "report.html").exists()
    tree = config(tmp_path)
    tree["data"][0]["name"] = str((tmp_path / "one.csv").rename(tmp_path / "moved.csv"))
    assert played(tree) == ([], [])


@pytest.mark.parametrize("change", ["a number", "a row"])
def test_a_change_of_the_data_is_noticed(change, played, tmp_path):
    rows = ROWS[:-1] if change == "a row" else np.where(ROWS[7, 1] == ROWS, 0.25, ROWS)
    table(tmp_path / "two.csv", rows)
    jobs, said = played(config(tmp_path))
    assert {dataset for dataset, *_ in jobs} == {"two"}
    counted = "12 rows then, 11 now" if change == "a row" else "12 rows as before, other numbers"
    counts = "4 of 8 jobs are played again; 4 of 8 are kept."
    assert said == [f"data two changed: {counted}.", counts]
    assert len(store.finished_jobs(tmp_path / "r")) == 8


CHANGES = {
    "a grid": ({"grid": {"eta": [0.1, 2.0]}}, "grid.eta = [0.1, 1.0] then, [0.1, 2.0] now"),
    "an argument": ({"domain": {"name": "ball", "radius": 2.0}}, 'domain.name = nothing then, "ba'),
    "a start": ({"first": 0.5}, "first = nothing then, 0.5 now"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_a_learner_is_noticed(change, played, tmp_path):
    keys, why = CHANGES[change]
    tree = config(tmp_path)
    tree["learners"][0] |= keys
    jobs, said = played(tree)
    assert {learner for _, learner, _ in jobs} == {"ogd"}
    assert len(jobs) == 4
    assert said[0].startswith(f"learner ogd: {why}")


def test_every_other_key_is_noticed_where_it_matters(played, tmp_path):
    jobs, said = played(config(tmp_path, curve=4))
    assert len(jobs) == 8
    assert said == ["curve = 3 then, 4 now.", "8 of 8 jobs are played again."]
    tree = config(tmp_path, curve=4)
    tree["data"][0]["scale"] = "standard"
    jobs, said = played(tree)
    assert len(jobs) == 4
    assert said[0] == 'data one: scale = "none" then, "standard" now.'
    assert len(said) == 2  # that the rows are others is no news


def test_jobs_that_no_longer_belong_are_dropped_and_others_kept(played, tmp_path):
    tree = config(tmp_path, seeds=[1, 5])
    tree["learners"].reverse()
    jobs, said = played(tree)
    assert {seed for *_, seed in jobs} == {5}
    assert said == ["4 of 8 are kept; 4 no longer belong to the config and are dropped."]
    assert len(list((tmp_path / "r" / "jobs").iterdir())) == 8


def test_force_plays_all(played, tmp_path):
    assert len(played(config(tmp_path), force=True)[0]) == 8
    arguments = {"rounds": 9, "features": 2}
    other = {
        "baseline": False,
        "data": [{"name": "stream:linear_regression", "arguments": arguments}],
    }
    other["learners"] = [{"name": "ogd", "label": "new", "linear": True, "eta": 0.1}]
    with pytest.raises(FileExistsError, match="no data set and no learner in common"):
        played(other)
    assert len(played(other, force=True)[0]) == 1
    assert len(list((tmp_path / "r" / "jobs").iterdir())) == 1


def test_a_stop_in_the_middle_of_a_change_loses_no_old_job(played, tmp_path, monkeypatch):
    put = store.put

    def stop(folder, job, *rest):
        put(folder, job, *rest)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store, "put", stop)
        with pytest.raises(KeyboardInterrupt):
            played(config(tmp_path, curve=4))
    with pytest.raises(FileNotFoundError, match="is not finished: 1 jobs are done"):
        store.read(tmp_path / "r")
    assert played(config(tmp_path))[0] == []


def test_one_line_of_an_own_learner_is_noticed(played, tmp_path):
    (tmp_path / "fresh_factory.py").write_text(OWN.format(1))
    user_factories.look_in(tmp_path)
    own = {"name": "fresh_factory:make", "label": "own", "linear": True, "eta": 0.1}
    tree = config(tmp_path)
    tree["learners"].append(own)
    assert {learner for _, learner, _ in played(tree)[0]} == {"own"}
    (tmp_path / "fresh_factory.py").write_text(OWN.format(2))
    user_factories._LOADED.clear()  # as in a new process
    jobs, said = played(tree)
    assert {learner for _, learner, _ in jobs} == {"own"}
    counts = "4 of 12 jobs are played again; 8 of 12 are kept."
    assert said == ["the file of fresh_factory:make changed.", counts]


def test_a_second_run_waits_for_the_first(played, tmp_path):
    free, begun = threading.Event(), threading.Event()

    def first():
        with checkpoint.lock_folder(tmp_path / "r"):
            begun.set()
            free.wait(10)

    holder = threading.Thread(target=first)
    holder.start()
    begun.wait(10)
    threading.Timer(0.3, free.set).start()
    start = time.monotonic()
    _, said = played(config(tmp_path))
    holder.join()
    assert time.monotonic() - start > 0.2
    assert len(said) == 1
    assert said[0].startswith("another run (process ")
    assert said[0].endswith("waiting until it ends.")
