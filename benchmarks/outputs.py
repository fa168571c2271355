"""Classes and sequences of labels: against scikit-learn, and Viterbi against NumPy.

The sizes of the classes are those of mnist, letter and 20 newsgroups; the rows are drawn.
scikit-learn plays one against the rest, with one pass over the rows per class. The NumPy decoder
takes one chain at a time, with one call per position for all pairs of labels. A second one takes
all chains at once.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import olx
from benchmarks import data, targets
from benchmarks.harness import Contestant, Group
from olx import structured

RATE = 0.1
ONE_PASS = {"max_iter": 1, "tol": None, "shuffle": False, "fit_intercept": False}
HINGE = {"loss": "hinge", "penalty": None, "eta0": RATE}
CHAINS, LENGTH, CLASSES = 1000, 50, 26


def measure_classes(group: Group) -> None:
    first = olx.multiclass.passive_aggressive_1(RATE)
    copies = olx.multiclass.one_vs_rest(olx.linear(olx.ogd(RATE)), 26)
    x, y = _drawn(data.dense(group.size(60_000, 2000), 784).rows, 10)
    ours = _olx(first, x, y, (10, 784))
    passive = "PassiveAggressiveClassifier"
    group.duel("PA-I, d=784, k=10", ours, _sklearn(passive, x, y), least=targets.CLASSES)

    x, y = _drawn(data.dense(group.size(20_000, 2000), 16).rows, 26)
    theirs = [_sklearn(name, x, y) for name in ("OneVsRest of SGDClassifier", "SGDClassifier")]
    case, least = "one against the rest, d=16, k=26", targets.ONE_VS_REST
    group.duel(case, _olx(copies, x, y, (16,)), *theirs, least=least)

    x, y = _drawn(data.sparse(group.size(10_000, 1000), 100_000).rows, 20)
    ours = _olx(first, x, y, (20, 100_000))
    group.duel("PA-I, sparse, k=20", ours, _sklearn(passive, x, y))


def _drawn(rows: Any, k: int) -> tuple[Any, np.ndarray]:
    """The rows, and the best of `k` random linear scores of each."""
    truth = np.random.default_rng(1).standard_normal((rows.shape[1], k), np.float32)
    return rows, np.argmax(rows @ truth, axis=1).astype(np.int32)


def _olx(learner: olx.Learner, x: Any, y: np.ndarray, shape: tuple[int, ...]) -> Contestant:
    def prepare() -> Callable[[], Any]:
        rows = x if isinstance(x, np.ndarray) else olx.streams.sparse_rows(x)
        given = olx.losses.multiclass_hinge, olx.Rounds(rows, y), jnp.zeros(shape, jnp.float32)
        keep = olx.keep.totals
        return lambda: jax.block_until_ready(olx.run(learner, *given, keep=keep).state)

    return Contestant("olx", prepare, len(y))


def _sklearn(name: str, x: Any, y: np.ndarray) -> Contestant:
    """One pass; in versions without Passive-Aggressive, its documented replacement."""

    def prepare() -> Callable[[], Any]:
        from sklearn import linear_model, multiclass

        passive = getattr(linear_model, "PassiveAggressiveClassifier", None)
        descent = lambda rate: linear_model.SGDClassifier(learning_rate=rate, **HINGE, **ONE_PASS)
        if name.startswith("PassiveAggressive"):
            model = descent("pa1") if passive is None else passive(C=RATE, **ONE_PASS)
        else:
            model = descent("constant")
        model = multiclass.OneVsRestClassifier(model) if name.startswith("OneVsRest") else model
        return lambda: model.fit(x, y)

    return Contestant(f"scikit-learn {name}", prepare, len(y))


def measure_chains(group: Group) -> None:
    chains, draw = group.size(CHAINS, 50), np.random.default_rng(0)
    emission = draw.normal(size=(chains, LENGTH, CLASSES)).astype(np.float32)
    transition = draw.normal(size=(CLASSES, CLASSES)).astype(np.float32)
    rest = (transition, *draw.normal(size=(2, CLASSES)).astype(np.float32))
    case = f"{chains:,} chains of length {LENGTH}, {CLASSES} labels"
    ways = {
        "Viterbi of olx": lambda: _decoder(emission, *rest),
        "NumPy, chain by chain": lambda: lambda: [viterbi(rows, *rest) for rows in emission],
        "NumPy, all chains at once": lambda: lambda: viterbi(emission.swapaxes(0, 1), *rest),
    }
    contestants = [Contestant(name, way, chains * LENGTH) for name, way in ways.items()]
    group.duel(case, *contestants, least=targets.VITERBI)


def _decoder(emission: np.ndarray, *rest: np.ndarray) -> Callable[[], Any]:
    words = structured.chain(CLASSES, CLASSES)
    real = np.ones(emission.shape[:2], np.float32)
    parts = structured.Parts(*map(jnp.asarray, (emission, *rest, real)))
    each = jax.jit(jax.vmap(words.decode, (structured.Parts(0, None, None, None, 0),)))
    if not np.array_equal(each(parts)[:5], [viterbi(rows, *rest) for rows in emission[:5]]):
        raise RuntimeError("the decoders differ")
    return lambda: jax.block_until_ready(each(parts))


def viterbi(emission, transition, start, end):
    """The best labels of one chain [m, k], or of several [m, chains, k], as [m, ...]."""
    alpha, back = start + emission[0], []
    for row in emission[1:]:
        each = alpha[..., :, None] + transition
        back.append(each.argmax(axis=-2))
        alpha = each.max(axis=-2) + row
    labels = [(alpha + end).argmax(axis=-1)]
    for pointers in reversed(back):
        labels.append(np.take_along_axis(pointers, labels[-1][..., None], -1)[..., 0])
    return np.stack(labels[::-1])
