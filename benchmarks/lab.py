"""The time of a sweep of the lab, with tables and metrics, against the engine alone."""

import itertools
import pathlib

import jax.numpy as jnp
import numpy as np

import olx
from benchmarks import data, targets
from benchmarks.race import Contestant, race
from benchmarks.report import Group, compared
from benchmarks.settings import Settings
from olx.lab import config
from olx.lab import run as lab

WIDTH, CONFIGURATIONS = 50, 1000
ETAS = np.geomspace(1e-3, 1.0, CONFIGURATIONS)


def measure(settings: Settings) -> Group:
    examples = data.dense(settings.size(100_000, 2048), WIDTH)
    work = CONFIGURATIONS * examples.count
    folder = pathlib.Path(settings.folder)
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
            "data": [{"name": str(folder / "lab.npz"), "order": "file"}],
            "learners": [{"name": "ogd", "linear": True, "grid": {"eta": ETAS.tolist()}}],
        }
        asked, fresh = config.parse(tree), (folder / f"lab-{i}" for i in itertools.count())
        return lambda: lab.run(asked, next(place for place in fresh if not place.exists()))

    asked = {"lab, loss alone": [], "lab, mistakes too": ["error"]}
    ours = [Contestant(name, lambda m=m: experiment(m), work) for name, m in asked.items()]
    seen = race([Contestant("engine", engine, work), *ours], settings.rounds)
    target, case = targets.at_most(targets.LAB), f"{CONFIGURATIONS} configurations"
    rows = [
        compared(f"{case}, {name}", seen[name], seen["engine"], target, inverse=True)
        for name in asked
    ]
    return Group("The lab against the engine", rows, {"lab": [t.as_dict() for t in seen.values()]})
