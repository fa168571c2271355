"""One stream of sparse rows, a sweep over it, and how its cost depends on the number of columns.

olx plays the matrix that scikit-learn gets, a SciPy CSR matrix, and the rows that were made of it
before, like the cache of Vowpal Wabbit.
"""

import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import olx
from benchmarks import data, peers, targets
from benchmarks.data import Examples
from benchmarks.dense import (
    ADA_HINGE,
    EARLY,
    HINGE,
    LOOP,
    SGD_HINGE,
    adaptive,
    agree,
    descent,
    play,
    sweep,
)
from benchmarks.harness import Contestant, Group

WIDTH, COUNT, NONZEROS = 47_236, 50_000, 73
CONFIGURATIONS, SWEPT = 64, 8192  # of a sweep, and its rounds
WIDTHS = (10_000, 100_000, 1_000_000)
ROWS, CSR = "olx from rows", "olx from SciPy CSR, conversion included"


class Algorithm(NamedTuple):
    name: str
    make: Callable  # step size -> learner
    loop: str
    vowpal: str
    river: str


ALGORITHMS = (
    Algorithm("OGD hinge", descent, "sparse_ogd_hinge", SGD_HINGE, "SGD"),
    Algorithm("AdaGrad hinge", adaptive, "sparse_adagrad_hinge", ADA_HINGE, "AdaGrad"),
)


def measure(group: Group) -> None:
    count = group.size(COUNT, 2000)
    examples = data.sparse(count, WIDTH, NONZEROS)
    group.title += f", {examples.rows.nnz / count:.0f} non-zeros"
    with tempfile.TemporaryDirectory(dir=group.folder) as folder:
        cache = peers.VowpalCache(folder, examples)
        for one in ALGORITHMS:
            _race(group, one, examples, cache)
    few = examples.first(group.size(SWEPT, 512))
    etas = np.geomspace(0.01, 1.0, CONFIGURATIONS, dtype=np.float32)
    rounds = olx.Rounds(olx.streams.sparse_rows(few.rows), few.labels)
    for one in ALGORITHMS:
        case, least = f"{one.name}, sweep of {CONFIGURATIONS}", targets.SPARSE_SWEEP.get(one.name)
        ours = sweep("olx sweep", one.make, etas, rounds, WIDTH)
        group.duel(case, ours, peers.sklearn_sgd("hinge", few), least=least)
    for one in ALGORITHMS:
        _columns(group, one, count)


def _race(group: Group, one: Algorithm, examples: Examples, cache: peers.VowpalCache) -> None:
    case, learner = f"d={WIDTH:,}, {one.name}", one.make(peers.ETA)
    theirs = [
        peers.sklearn_sgd("hinge", examples),
        peers.vowpal(cache, *one.vowpal.split()),
        peers.river_logistic(one.river, "Hinge", examples),
        peers.numba(one.loop, examples),
    ]
    ours = [
        Contestant(ROWS, lambda: _from_rows(learner, examples), examples.count),
        Contestant(CSR, lambda: lambda: _from_rows(learner, examples)(), examples.count),
    ]
    seen = group.race(case, [*ours, *theirs])
    for source in (ROWS, CSR):
        for peer in theirs:
            known = targets.SPARSE if source == ROWS else targets.FROM_CSR
            own = known[one.name].get(peer.name.split()[0])
            label = f"{case}, {source.removeprefix('olx ')}"
            group.compare(label, seen[source], seen[peer.name], least=own)
    if not seen[LOOP].failure:
        early = examples.first(EARLY)
        agree(group, case, _from_rows(learner, early)(), one.loop, early)


def _from_rows(learner: Any, examples: Examples) -> Callable[[], olx.Run]:
    return play(learner, HINGE, olx.streams.sparse_rows(examples.rows), examples.labels)


def _columns(group: Group, one: Algorithm, count: int) -> None:
    """Time for many columns / time for few; the loop shows how much of it is memory."""
    case, learner, contestants = f"{one.name}, cost of columns", one.make(peers.ETA), []
    for width in WIDTHS:
        examples = data.sparse(count, width, NONZEROS)
        prepare = lambda examples=examples: _from_rows(learner, examples)
        contestants.append(Contestant(f"olx, d={width:,}", prepare, count))
        loop = peers.numba(one.loop, examples)
        contestants.append(loop._replace(name=f"{LOOP}, d={width:,}"))
    seen = group.race(case, contestants)
    for who in ("olx", LOOP):
        few = seen[f"{who}, d={WIDTHS[0]:,}"]
        for width in WIDTHS[1:]:
            against = f"{who}: d={width:,} / d={WIDTHS[0]:,}"
            many = seen[f"{who}, d={width:,}"]
            group.compare(case, many, few, inverse=True, against=against, unit="")
