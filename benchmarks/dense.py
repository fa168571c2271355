"""One stream of dense rows: every algorithm against every library that has it.

An algorithm is one line of `ALGORITHMS`. olx and the numba loop return the score of every round;
the others only learn. scikit-learn has no AdaGrad.
"""

import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import olx
from benchmarks import data, peers, targets
from benchmarks.data import Examples
from benchmarks.race import Contestant, Timing, race
from benchmarks.report import Group, Row, compared
from benchmarks.settings import Settings

WIDTHS = (10, 50, 200, 1000)
VALUES = 50_000_000  # the largest number of values in a data set
EARLY = 500  # rounds whose scores are compared
NUMPY, DEVICE, LOOP = "olx from numpy", "olx from device", "numba loop"


class Entry(NamedTuple):
    name: str
    learner: olx.Learner
    loss: Callable
    loop: str
    sklearn: Callable[[Examples], Contestant] | None
    vowpal: str | None
    river: Callable[[Examples], Contestant]


def _sgd(loss: str) -> Callable[[Examples], Contestant]:
    return lambda examples: peers.sklearn_sgd(loss, examples)


def _fit(name: str) -> Callable[[Examples], Contestant]:
    return lambda examples: peers.sklearn(name, examples)


def _step(step: str, loss: str) -> Callable[[Examples], Contestant]:
    return lambda examples: peers.river_logistic(step, loss, examples)


def _river(name: str) -> Callable[[Examples], Contestant]:
    make = lambda river: getattr(river.linear_model, name)()
    return lambda examples: peers.river(name, examples, make)


OGD = olx.linear(olx.omd(peers.ETA, olx.mirrors.euclidean()))
ADA = olx.linear(olx.ftrl(peers.ETA, olx.regularizers.adagrad()))
BASIC, PASSIVE = olx.classification.perceptron(), olx.classification.passive_aggressive_1(peers.ETA)
HINGE, LOG = olx.losses.hinge, olx.losses.logistic
SGD_HINGE, SGD_LOG = "--sgd --loss_function hinge", "--sgd --loss_function logistic"
ADA_HINGE = "--adaptive --loss_function hinge"
PA = "PassiveAggressiveClassifier"

# fmt: off
ALGORITHMS = (
    Entry("OGD hinge", OGD, HINGE, "ogd_hinge", _sgd("hinge"), SGD_HINGE, _step("SGD", "Hinge")),
    Entry("OGD logistic", OGD, LOG, "ogd_logistic", _sgd("log_loss"), SGD_LOG, _step("SGD", "Log")),
    Entry("AdaGrad hinge", ADA, HINGE, "adagrad_hinge", None, ADA_HINGE, _step("AdaGrad", "Hinge")),
    Entry("Perceptron", BASIC, HINGE, "perceptron", _fit("Perceptron"), None, _river("Perceptron")),
    Entry("PA", PASSIVE, HINGE, "passive_aggressive", _fit(PA), None, _river("PAClassifier")),
)
# fmt: on


def measure(settings: Settings) -> Group:
    rows, timings = [], {}
    for width in WIDTHS:
        examples = data.dense(settings.size(min(100_000, VALUES // width), 4000), width)
        with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
            cache = peers.VowpalCache(folder, examples)
            for algorithm in ALGORITHMS:
                case = f"d={width}, {algorithm.name}"
                print(f"  {case}", flush=True)
                seen = race(_contestants(algorithm, examples, cache), settings.rounds)
                timings[case] = [timing.as_dict() for timing in seen.values()]
                rows += _rows(algorithm, case, seen, examples)
    return Group("Dense rows", rows, timings)


def play(learner: Any, loss: Callable, rows: Any, labels: Any) -> Callable[[], olx.Run]:
    """The call that is timed: arrays in, losses and scores of all rounds out, on the host."""
    rounds, start = olx.Rounds(rows, labels), jnp.zeros(rows.shape[1])
    return lambda: olx.run(learner, loss, rounds, start, record=olx.record.actions)


def agreement(case: str, ours: olx.Run, loop: str, early: Examples, module: str = "loops") -> Row:
    """Check that both did the same work: compare the scores of the first rounds."""
    scores = peers.numba(loop, early, module=module).prepare()()
    apart = float(np.max(np.abs(np.asarray(ours.trace) - scores)))
    target = targets.at_most(targets.AGREEMENT)
    return Row(case, LOOP, apart, target, "largest difference of scores")


def _contestants(
    algorithm: Entry, examples: Examples, cache: peers.VowpalCache
) -> list[Contestant]:
    learner, loss, count = algorithm.learner, algorithm.loss, examples.count
    ours = [
        Contestant(NUMPY, lambda: play(learner, loss, *examples), count),
        Contestant(DEVICE, lambda: play(learner, loss, *map(jnp.asarray, examples)), count),
    ]
    theirs = [peers.numba(algorithm.loop, examples), algorithm.river(examples)]
    if algorithm.vowpal is not None:
        theirs.insert(0, peers.vowpal(cache, *algorithm.vowpal.split()))
    if algorithm.sklearn is not None:
        theirs.insert(0, algorithm.sklearn(examples))
    return ours + theirs


def _rows(algorithm: Entry, case: str, seen: dict[str, Timing], examples: Examples) -> list[Row]:
    theirs = [timing for name, timing in seen.items() if name not in (NUMPY, DEVICE)]
    rows = []
    for source in (NUMPY, DEVICE):
        for timing in theirs:
            peer, on_device = timing.name.split()[0], source == DEVICE
            target = targets.dense(algorithm.name, examples.width, peer, on_device)
            where = f"{case}, {source.removeprefix('olx ')}"
            rows.append(compared(where, seen[source], timing, target))
    if not seen[LOOP].failure:
        early = examples.first(EARLY)
        ours = play(algorithm.learner, algorithm.loss, *early)()
        rows.append(agreement(case, ours, algorithm.loop, early))
    return rows
