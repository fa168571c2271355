"""Classes: a matrix of weights and copies of binary learners against scikit-learn.

The sizes are those of mnist, letter and 20 newsgroups; the rows are drawn. scikit-learn plays one
against the rest, with one pass over the rows per class.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import olx
from benchmarks import data, targets
from benchmarks.race import Contestant, kept_race
from benchmarks.report import Group, compared
from benchmarks.settings import Settings

RATE = 0.1


def measure(settings: Settings) -> Group:
    rows, timings = [], {}

    def judge(case: str, ours: Contestant, *theirs: tuple[Contestant, float | None]) -> None:
        seen = kept_race(case, [ours, *(each for each, _ in theirs)], settings.rounds, timings)
        for each, target in theirs:
            bound = targets.at_least(target)
            rows.append(compared(case, seen[ours.name], seen[each.name], bound))

    first = olx.multiclass.passive_aggressive_1(RATE)
    x, y = drawn(data.dense(settings.size(60_000, 2000), 784).rows, 10)
    judge("PA-I, d=784, k=10", play(first, x, y, (10, 784)), (passive(x, y), targets.CLASSES))

    copies = olx.multiclass.one_vs_rest(olx.linear(olx.ogd(RATE)), 26)
    x, y = drawn(data.dense(settings.size(20_000, 2000), 16).rows, 26)
    peers = (copied(x, y), targets.ONE_VS_REST), (sgd(x, y), None)
    judge("one against the rest, d=16, k=26", play(copies, x, y, (16,)), *peers)

    x, y = drawn(data.sparse(settings.size(10_000, 1000), 100_000).rows, 20)
    judge("PA-I, sparse, k=20", play(first, x, y, (20, 100_000)), (passive(x, y), None))
    return Group("Classes against scikit-learn", rows, timings)


def drawn(rows: Any, k: int) -> tuple[Any, np.ndarray]:
    """The rows, and the best of `k` random linear scores of each."""
    truth = np.random.default_rng(1).standard_normal((rows.shape[1], k), np.float32)
    return rows, np.argmax(rows @ truth, axis=1).astype(np.int32)


def play(learner: olx.Learner, x: Any, y: np.ndarray, shape: tuple[int, ...]) -> Contestant:
    def prepare() -> Callable[[], Any]:
        rows = x if isinstance(x, np.ndarray) else olx.streams.sparse_rows(x)
        rounds, params = olx.Rounds(rows, y), jnp.zeros(shape, jnp.float32)
        loss, keep = olx.losses.multiclass_hinge, olx.keep.totals
        return lambda: jax.block_until_ready(
            olx.run(learner, loss, rounds, params, keep=keep).state
        )

    return Contestant("olx", prepare, len(y))


ONE_PASS = {"max_iter": 1, "tol": None, "shuffle": False, "fit_intercept": False}
STEP = {"loss": "hinge", "penalty": None, "learning_rate": "constant", "eta0": RATE}


def passive(x: Any, y: np.ndarray) -> Contestant:
    """In versions without the class, its documented replacement."""

    def prepare() -> Callable[[], Any]:
        from sklearn import linear_model

        make = getattr(linear_model, "PassiveAggressiveClassifier", None)
        options = {"loss": "hinge", "penalty": None, "learning_rate": "pa1", "eta0": RATE}
        model = (
            linear_model.SGDClassifier(**options, **ONE_PASS)
            if make is None
            else make(C=RATE, **ONE_PASS)
        )
        return lambda: model.fit(x, y)

    return Contestant("scikit-learn PassiveAggressiveClassifier", prepare, len(y))


def sgd(x: Any, y: np.ndarray) -> Contestant:
    def prepare() -> Callable[[], Any]:
        from sklearn.linear_model import SGDClassifier

        model = SGDClassifier(**STEP, **ONE_PASS)
        return lambda: model.fit(x, y)

    return Contestant("scikit-learn SGDClassifier", prepare, len(y))


def copied(x: Any, y: np.ndarray) -> Contestant:
    def prepare() -> Callable[[], Any]:
        from sklearn.linear_model import SGDClassifier
        from sklearn.multiclass import OneVsRestClassifier

        model = OneVsRestClassifier(SGDClassifier(**STEP, **ONE_PASS))
        return lambda: model.fit(x, y)

    return Contestant("scikit-learn OneVsRest of SGDClassifier", prepare, len(y))
