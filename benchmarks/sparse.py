"""One stream of sparse rows, a sweep over it, and how its cost depends on the number of columns.

The rows of olx are made from the CSR matrix before timing, like the cache of Vowpal Wabbit. A
second line includes that conversion.
"""

import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import olx
from benchmarks import data, peers, targets
from benchmarks.data import Examples
from benchmarks.dense import ADA, ADA_HINGE, EARLY, HINGE, LOOP, OGD, SGD_HINGE, agreement, play
from benchmarks.race import Contestant, Timing, kept_race
from benchmarks.report import Group, Row, compared
from benchmarks.settings import Settings

WIDTH, COUNT, NONZEROS = 47_236, 50_000, 73
CONFIGURATIONS, SWEPT = 64, 8192  # of a sweep, and its rounds
WIDTHS = (10_000, 100_000, 1_000_000)
ROWS, CSR = "olx from rows", "olx from CSR"


class Algorithm(NamedTuple):
    name: str
    learner: olx.Learner
    make: Callable  # step size -> learner
    loop: str
    vowpal: str
    river: str


def _ogd(eta: Any) -> olx.Learner:
    return olx.linear(olx.omd(eta, olx.mirrors.euclidean()))


def _ada(eta: Any) -> olx.Learner:
    return olx.linear(olx.ftrl(eta, olx.regularizers.adagrad()))


ALGORITHMS = (
    Algorithm("OGD hinge", OGD, _ogd, "sparse_ogd_hinge", SGD_HINGE, "SGD"),
    Algorithm("AdaGrad hinge", ADA, _ada, "sparse_adagrad_hinge", ADA_HINGE, "AdaGrad"),
)


def measure(settings: Settings) -> Group:
    rows, timings = [], {}
    count = settings.size(COUNT, 2000)
    examples = data.sparse(count, WIDTH, NONZEROS)
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        cache = peers.VowpalCache(folder, examples)
        for algorithm in ALGORITHMS:
            case = f"d={WIDTH:,}, {algorithm.name}"
            contestants = _contestants(algorithm, examples, cache)
            seen = kept_race(case, contestants, settings.rounds, timings)
            rows += _rows(algorithm, case, seen, examples)
    few = examples.first(settings.size(SWEPT, 512))
    for algorithm in ALGORITHMS:
        case = f"{algorithm.name}, sweep of {CONFIGURATIONS}"
        contestants = [_sweep(algorithm, few), peers.sklearn_sgd("hinge", few)]
        ours, theirs = kept_race(case, contestants, settings.rounds, timings).values()
        target = targets.at_least(targets.SPARSE_SWEEP.get(algorithm.name))
        rows.append(compared(case, ours, theirs, target))
    for algorithm in ALGORITHMS:
        case = f"{algorithm.name}, cost of columns"
        seen = kept_race(case, _by_width(algorithm, count), settings.rounds, timings)
        rows += _flatness(case, seen)
    nonzeros = examples.rows.nnz / count
    return Group(f"Sparse rows, {nonzeros:.0f} non-zeros", rows, timings)


def _from_csr(learner: Any, examples: Examples) -> Callable[[], olx.Run]:
    matrix, labels = examples
    return lambda: play(learner, HINGE, olx.streams.sparse_rows(matrix), labels)()


def _from_rows(learner: Any, examples: Examples) -> Callable[[], olx.Run]:
    matrix, labels = examples
    return play(learner, HINGE, olx.streams.sparse_rows(matrix), labels)


def _sweep(algorithm: Algorithm, examples: Examples) -> Contestant:
    def prepare() -> Callable[[], olx.Run]:
        etas = np.geomspace(0.01, 1.0, CONFIGURATIONS, dtype=np.float32)
        learners, start = olx.batch(algorithm.make, eta=etas), jnp.zeros(WIDTH)
        rounds = olx.Rounds(olx.streams.sparse_rows(examples.rows), examples.labels)
        return lambda: olx.sweep(learners, HINGE, rounds, start, keep=olx.keep.totals)

    return Contestant("olx sweep", prepare, CONFIGURATIONS * examples.count)


def _contestants(
    algorithm: Algorithm, examples: Examples, cache: peers.VowpalCache
) -> list[Contestant]:
    return [
        Contestant(ROWS, lambda: _from_rows(algorithm.learner, examples), examples.count),
        Contestant(CSR, lambda: _from_csr(algorithm.learner, examples), examples.count),
        peers.sklearn_sgd("hinge", examples),
        peers.vowpal(cache, *algorithm.vowpal.split()),
        peers.river_logistic(algorithm.river, "Hinge", examples),
        peers.numba(algorithm.loop, examples),
    ]


def _rows(
    algorithm: Algorithm, case: str, seen: dict[str, Timing], examples: Examples
) -> list[Row]:
    rows = []
    for source in (ROWS, CSR):
        for name, timing in seen.items():
            if name in (ROWS, CSR):
                continue
            own = targets.SPARSE[algorithm.name].get(name.split()[0])
            target = targets.at_least(own) if source == ROWS else None
            where = f"{case}, {source.removeprefix('olx ')}"
            rows.append(compared(where, seen[source], timing, target))
    if not seen[LOOP].failure:
        early = examples.first(EARLY)
        ours = _from_rows(algorithm.learner, early)()
        rows.append(agreement(case, ours, algorithm.loop, early))
    return rows


def _by_width(algorithm: Algorithm, count: int) -> list[Contestant]:
    contestants = []
    for width in WIDTHS:
        examples = data.sparse(count, width, NONZEROS)
        prepare = lambda examples=examples: _from_rows(algorithm.learner, examples)
        loop = peers.numba(algorithm.loop, examples)
        contestants.append(Contestant(f"olx, d={width:,}", prepare, count))
        contestants.append(loop._replace(name=f"{LOOP}, d={width:,}"))
    return contestants


def _flatness(case: str, seen: dict[str, Timing]) -> list[Row]:
    """Time for many columns / time for few; the loop shows how much of it is memory."""
    rows = []
    for who in ("olx", LOOP):
        few = seen[f"{who}, d={WIDTHS[0]:,}"]
        for width in WIDTHS[1:]:
            row = compared(case, seen[f"{who}, d={width:,}"], few, None, inverse=True)
            rows.append(row._replace(against=f"{who}: d={width:,} / d={WIDTHS[0]:,}", unit=""))
    return rows
