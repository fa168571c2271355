"""Jobs that other processes play give the tables of a plain run; a lost worker costs its job."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from olx.lab import executors, store, worker
from olx.lab.config import ConfigError, parse
from olx.lab.executors import open_executor
from olx.lab.run import run

TABLES = ("configurations", "curves", "certificates", "confusions")
FACTORY = """
import os, pathlib, signal
import olx

def descent(eta):
    \"\"\"Kills the first process that makes it, after the file `kill` was written by another.\"\"\"
    place = pathlib.Path(__file__).with_name("kill")
    if place.is_file() and place.read_text() != str(os.getpid()):
        place.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return olx.linear(olx.ogd(eta))
"""


@pytest.fixture(scope="module")
def beside(tmp_path_factory):
    """A folder with a factory that kills workers."""
    folder = tmp_path_factory.mktemp("factories")
    (folder / "deadly_factory.py").write_text(FACTORY)
    sys.path.append(str(folder))
    yield folder
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def experiment(beside):
    """Twelve jobs."""
    data = {"name": "stream:linear_classification", "arguments": {"rounds": 30, "features": 3}}
    deadly = {"name": "deadly_factory:descent", "label": "deadly", "grid": {"eta": [0.1, 1.0]}}
    learners = [deadly, {"name": "perceptron"}]
    more = {"seeds": 6, "models": False, "baseline": False, "precision": "float64"}
    return parse({"data": [data], "learners": learners, **more})


@pytest.fixture(scope="module")
def plain(experiment, tmp_path_factory):
    return run(experiment, tmp_path_factory.mktemp("plain") / "result")


def without(plain, place, jobs):
    """A copy of the result in which some jobs are still to be played."""
    shutil.copytree(plain.folder, place)
    for name in sorted(store.finished_jobs(place))[:jobs]:
        shutil.rmtree(place / "jobs" / name)
    for path in place.glob("*.parquet"):
        path.unlink()
    return place


def same(found, wanted):
    for name in TABLES:
        assert getattr(found, name).equals(getattr(wanted, name)), name
    assert found.environment == wanted.environment  # of the workers, too
    assert not (found.folder / "order.pickle").exists()
    assert len(list((found.folder / "jobs").iterdir())) == 12


def test_workers_of_dask_of_which_one_is_killed(experiment, plain, beside, tmp_path):
    distributed = pytest.importorskip("distributed")
    (beside / "kill").write_text(str(os.getpid()))
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster:
        found = run(experiment, tmp_path / "result", executor=f"dask:{cluster.scheduler_address}")
    assert not (beside / "kill").exists()
    same(found, plain)


def test_processes_of_which_one_is_killed(experiment, plain, beside, tmp_path, capsys):
    (beside / "kill").write_text(str(os.getpid()))
    place = without(plain, tmp_path / "result", 3)
    same(run(experiment, place, executor="processes:2"), plain)
    assert not (beside / "kill").exists()
    assert capsys.readouterr().err.count("was lost; the job is played again.") == 1


def test_jobs_of_submitit(experiment, plain, tmp_path):
    pytest.importorskip("submitit")
    place = without(plain, tmp_path / "result", 1)
    same(run(experiment, place, executor="local:1"), plain)


def test_any_object_with_submit(experiment, plain, tmp_path):
    with ThreadPoolExecutor(2) as executor:
        same(run(experiment, tmp_path / "result", executor=executor), plain)


class Here:
    """An executor that plays a call when it gets it, as `act` says."""

    def __init__(self, act=lambda call: call()):
        self.act, self.calls = act, []

    def submit(self, function, *given):
        self.calls.append(given[2])
        future = Future()
        try:
            future.set_result(self.act(lambda: function(*given)))
        except RuntimeError as error:
            future.set_exception(error)
        return future


def test_jobs_of_slurm_are_submitted_together(experiment, plain, tmp_path, monkeypatch):
    submitit = pytest.importorskip("submitit")
    told = []

    class Cluster(Here):
        def __init__(self, **given):
            told.append(given["cluster"])
            super().__init__()

        def update_parameters(self, **given):
            told.append(given)

        @contextlib.contextmanager
        def batch(self):
            yield
            told.append(len(self.calls))

    monkeypatch.setattr(submitit, "AutoExecutor", Cluster)
    place = without(plain, tmp_path / "result", 3)
    same(run(experiment, place, executor="slurm:gpu,timeout_min=9,slurm_account=me"), plain)
    asked = {"slurm_partition": "gpu", "timeout_min": 9, "slurm_account": "me"}
    assert told == ["slurm", asked, 3]


def lose(call):
    raise RuntimeError("the node is gone")


def test_a_job_that_is_lost_again_and_again_is_named(experiment, plain, tmp_path):
    place, executor = without(plain, tmp_path / "result", 1), Here(lose)
    with pytest.raises(executors.WorkerLost, match=r"was lost 3 times, .*: the node is gone\. "):
        run(experiment, place, executor=executor)
    assert executor.calls == [executor.calls[0]] * 3
    assert len(store.finished_jobs(place)) == 11


def test_a_job_that_fails_is_not_played_again(experiment, plain, tmp_path, monkeypatch):
    def fails(*_):
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(worker, "play_job", fails)
    executor = Here()
    with pytest.raises(executors.JobFailed, match=r"failed on .*: ZeroDivisionError: by nothing"):
        run(experiment, without(plain, tmp_path / "result", 1), executor=executor)
    assert len(executor.calls) == 1


def test_a_worker_that_sees_other_rows_refuses(experiment, plain, tmp_path, monkeypatch):
    jobs_on = worker.jobs_on

    def others(*given):
        jobs, seen = jobs_on(*given)
        return [
            job._replace(fingerprint={**job.fingerprint, "rows": {"rows": 31}}) for job in jobs
        ], seen

    monkeypatch.setattr(worker, "jobs_on", others)
    monkeypatch.setattr(worker, "_here", threading.local())  # a worker that has played nothing
    with pytest.raises(ConfigError, match=r"sees other rows for .*: \{'rows': 31\}, not "):
        run(experiment, without(plain, tmp_path / "result", 1), executor=Here())


def test_a_folder_that_workers_do_not_see_is_named(tmp_path):
    said = worker.play(str(tmp_path), "0", "job", 0).refused
    assert "must be on a file system that all workers share" in said


def interrupt(call):
    os.kill(os.getpid(), signal.SIGINT)
    return call()


def test_a_signal_stops_after_the_job(experiment, plain, tmp_path):
    place, executor = without(plain, tmp_path / "result", 3), Here(interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(experiment, place, executor=executor)
    assert len(executor.calls) == 1
    assert len(store.finished_jobs(place)) == 10
    assert not (place / "order.pickle").exists()
    same(run(experiment, place, executor=Here()), plain)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("proceses:4", "there is no 'proceses:4'; it takes processes:4, dask:tcp://host:8786, sl"),
        ("dask", "there is no 'dask'; it takes"),
        ("processes:0", "give the number of processes, as in processes:4, got processes:0"),
        ("slurm:gpu,8", "write '8' as a parameter of submitit, key=value"),
        ("slurm:gpu", "slurm:gpu needs submitit, which is not installed; pip install 'olx[clust"),
        ("dask:tcp://a:1", "dask:tcp://a:1 needs distributed, which is not installed; pip inst"),
        (4, "give an object with a method `submit`, or one of processes:4, .*, got a int"),
    ],
)
def test_what_is_no_executor_is_refused(word, said, tmp_path, monkeypatch):
    for package in ("submitit", "distributed"):
        monkeypatch.setitem(sys.modules, package, None)
    with (
        pytest.raises(ConfigError, match=said.replace("[", r"\[").replace("(", r"\(")),
        open_executor(word, tmp_path),
    ):
        pass


PARENT = """
import os, pathlib, sys, time
from olx.lab.executors import open_executor

if __name__ == "__main__":
    with open_executor("processes:1", pathlib.Path(sys.argv[1])) as submitter:
        print(submitter.submit(os.getpid).result(), flush=True)
        submitter.submit(time.sleep, 60)
        time.sleep(60)
"""


def test_workers_end_when_the_process_that_hands_out_jobs_is_killed(tmp_path):
    (tmp_path / "parent.py").write_text(PARENT)
    words = [sys.executable, str(tmp_path / "parent.py"), str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    deadline = time.monotonic() + 10
    while is_alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_alive(child)


def is_alive(process):
    """Whether the process runs; a container may leave a dead child of another as a zombie."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    return not stat.exists() or stat.read_text().rpartition(") ")[2][0] != "Z"
