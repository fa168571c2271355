"""The time of a sweep of the lab against the engine alone, and of a CSV file against pandas."""

import itertools
import pathlib

import jax.numpy as jnp
import numpy as np

import olx
from benchmarks import data, targets
from benchmarks.harness import Contestant, Group
from olx.lab import config
from olx.lab import run as lab
from olx.lab.data import load

WIDTH, CONFIGURATIONS, COLUMNS = 50, 1000, 20
ETAS = np.geomspace(1e-3, 1.0, CONFIGURATIONS)


def measure(group: Group) -> None:
    examples = data.dense(group.size(100_000, 2048), WIDTH)
    work = CONFIGURATIONS * examples.count
    folder = pathlib.Path(group.folder)
    np.savez(folder / "lab.npz", X=examples[0], y=examples[1])

    def engine():
        learners = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=ETAS.astype(np.float32))
        rounds, start = olx.Rounds(*examples), jnp.zeros(WIDTH)
        keep = olx.keep.log_spaced()
        return lambda: olx.sweep(learners, olx.losses.hinge, rounds, start, keep=keep)

    def experiment(metrics: list[str]):
        tree = {
            "loss": "hinge",
            "metrics": metrics,
            "baseline": False,
            "data": [{"name": str(folder / "lab.npz"), "order": "file", "bias": False}],
            "learners": [{"name": "ogd", "linear": True, "grid": {"eta": ETAS.tolist()}}],
        }
        asked, fresh = config.parse(tree), (folder / f"lab-{i}" for i in itertools.count())
        return lambda: lab.run(asked, next(place for place in fresh if not place.exists()))

    asked = {"lab, loss alone": [], "lab, mistakes too": ["error"]}
    ours = [Contestant(name, lambda m=m: experiment(m), work) for name, m in asked.items()]
    seen = group.race("lab", [Contestant("engine", engine, work), *ours])
    for name in asked:
        case = f"{CONFIGURATIONS} configurations, {name}"
        group.compare(case, seen[name], seen["engine"], most=targets.LAB)
    _reading(group)


def _reading(group: Group) -> None:
    """A table of numbers from a CSV file: as a data set of the lab, and by pandas."""
    import pandas

    rows, path = group.size(200_000, 2000), pathlib.Path(group.folder) / "numbers.csv"
    numbers = np.random.default_rng(0).standard_normal((rows, COLUMNS))
    pandas.DataFrame(numbers).to_csv(path, index=False)
    ours = Contestant("lab", lambda: lambda: load(str(path), task="regression"), rows)
    default = Contestant("pandas", lambda: lambda: pandas.read_csv(path), rows)
    arrow = lambda: lambda: pandas.read_csv(path, engine="pyarrow")
    engine = Contestant("pandas, pyarrow engine", arrow, rows)
    group.duel("a CSV file", ours, default, engine, most=targets.CSV)
