"""Many configurations on one stream: one call of olx against one run per configuration.

Other libraries run a few configurations; the mean time is their cost per configuration.
"""

import tempfile
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

import olx
from benchmarks import data, peers, targets
from benchmarks.data import Examples
from benchmarks.dense import SGD_HINGE
from benchmarks.race import Contestant, race
from benchmarks.report import Group, compared
from benchmarks.settings import Settings

WIDTH = 50
ROUNDS = {8: 100_000, 64: 100_000, 512: 32_768, 4096: 8192}  # by number of configurations


def measure(settings: Settings) -> Group:
    examples = data.dense(settings.size(100_000, 4000), WIDTH)
    counts = {n: settings.size(rounds, 2048) for n, rounds in ROUNDS.items()}
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        cache = peers.VowpalCache(folder, examples)
        ours = [_sweep(n, examples.first(count)) for n, count in counts.items()]
        theirs = [
            peers.sklearn_sgd("hinge", examples),
            peers.vowpal(cache, *SGD_HINGE.split()),
            peers.river_logistic("SGD", "Hinge", examples),
            peers.numba("ogd_hinge", examples, etas=(0.1, 0.2, 0.5, 1.0)),
        ]
        seen = race(ours + theirs, settings.rounds)
    rows = []
    for n, contestant in zip(counts, ours, strict=True):
        for peer in theirs:
            target = targets.at_least(targets.SWEEP[n].get(peer.name.split()[0]))
            case = f"{n} configurations, d={WIDTH}"
            rows.append(compared(case, seen[contestant.name], seen[peer.name], target))
    timings = {"sweeps": [timing.as_dict() for timing in seen.values()]}
    return Group("Sweeps, per example and configuration", rows, timings)


def _make(eta):
    return olx.linear(olx.omd(eta, olx.mirrors.euclidean()))


def _sweep(configurations: int, examples: Examples) -> Contestant:
    def prepare() -> Callable[[], olx.Run]:
        etas = np.geomspace(0.01, 1.0, configurations, dtype=np.float32)
        learners = olx.batch(_make, eta=etas)
        rounds, start = olx.Rounds(*examples), jnp.zeros(WIDTH)
        loss = olx.losses.hinge
        return lambda: olx.sweep(learners, loss, rounds, start, keep=olx.keep.totals)

    return Contestant(f"olx, {configurations}", prepare, configurations * examples.count)
