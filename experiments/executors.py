"""Two hundred jobs on two workers of Dask, one of which is killed; the tables are compared.

    pip install 'olx[lab,cluster]'
    python -m experiments.executors

It prints the seconds of the plain run and of the run with workers, how many jobs were stored when
the worker was killed, and whether all tables are equal.
"""

import os
import signal
import tempfile
import threading
import time
from pathlib import Path

from olx.lab.config import parse
from olx.lab.run import run

SEEDS = 100  # times two learners
TABLES = ("configurations", "curves", "certificates", "confusions")


def experiment():
    data = {"name": "stream:linear_classification", "arguments": {"rounds": 200, "features": 8}}
    descent = {"name": "ogd", "linear": True, "grid": {"eta": [0.01, 0.1, 1.0]}}
    learners = [descent, {"name": "perceptron"}]
    return parse(
        {"data": [data], "learners": learners, "seeds": SEEDS, "baseline": False, "models": False}
    )


def stored(folder: Path) -> int:
    return sum(place.suffix != ".draft" for place in (folder / "jobs").glob("*"))


def kill_one(cluster, folder: Path, found: list[int]) -> None:
    """Kill a worker as soon as twenty jobs are stored; note how many there are."""
    while stored(folder) < 20:
        time.sleep(0.01)
    process = next(iter(cluster.workers.values())).pid
    found.append(stored(folder))
    os.kill(process, signal.SIGKILL)


def main() -> None:
    from distributed import LocalCluster

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        begun = time.perf_counter()
        plain = run(experiment(), folder / "plain")
        print(f"one process: {time.perf_counter() - begun:.1f} s for {2 * SEEDS} jobs")
        options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(**options) as cluster:
            killed: list[int] = []
            given = cluster, folder / "dask", killed
            threading.Thread(target=kill_one, args=given, daemon=True).start()
            begun = time.perf_counter()
            handed = run(
                experiment(), folder / "dask", executor=f"dask:{cluster.scheduler_address}"
            )
            print(f"two workers: {time.perf_counter() - begun:.1f} s")
        print(f"a worker was killed when {killed[0]} jobs were stored")
        for name in TABLES:
            same = getattr(plain, name).equals(getattr(handed, name))
            print(f"{name}: {getattr(plain, name).num_rows} rows, {'equal' if same else 'DIFFER'}")


if __name__ == "__main__":
    main()
