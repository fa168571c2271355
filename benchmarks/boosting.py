"""Boosting: the cost of copies, the boosters of Vowpal Wabbit and river; AdaBoost with stumps.

The weak learner is gradient descent on the hinge loss, in all libraries. In river it is a logistic
regression, because its boosters need probabilities. The errors of olx and Vowpal Wabbit are printed
beside the speed: their boosters weigh rounds differently.
"""

import functools
import importlib
import tempfile
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import olx
from benchmarks import data, peers, targets
from benchmarks.data import Examples
from benchmarks.dense import sweep
from benchmarks.harness import Contestant, Group
from olx import boosting

WIDTH, WIDE = 50, 1000
SIZES = (1, 10, 100)
CONFIGURATIONS = 64
GAMMA = 0.1
HINGE, ZERO_ONE = olx.losses.hinge, olx.losses.zero_one
OLX, ALONE = "olx", "olx, the weak learner"
GRADIENT = olx.linear(olx.ogd(peers.ETA))
WEAK = {
    "OGD": GRADIENT,
    "Perceptron": olx.classification.perceptron(),
    "AdaGrad": olx.linear(olx.first_order.adagrad(peers.ETA)),
}
KEY = jax.random.key(0)

# by the name of the rule in Vowpal Wabbit
RULES: dict[str, boosting.BoostingRule] = {
    "BBM": boosting.online_bbm(GAMMA),
    "logistic": boosting.adaboost_ol(),
    "adaptive": boosting.adaboost_ol(KEY),
}
RIVER = ("ADWINBoostingClassifier", "AdaBoostClassifier")


def measure(group: Group) -> None:
    examples = data.dense(group.size(20_000, 1000), WIDTH)
    wide = data.dense(group.size(2000, 200), WIDE)
    for name in WEAK:
        for some in (examples, wide):
            _copies(group, name, some)
    with tempfile.TemporaryDirectory(dir=group.folder) as folder:
        cache = peers.VowpalCache(folder, examples, max(SIZES))
        for size in SIZES:
            for name in RULES:
                _peers(group, name, size, examples, cache)
        _sweep(group, examples.first(2048), cache)


def play(learner: olx.Learner, loss: Callable, examples: Examples) -> Callable[[], olx.Run]:
    rounds, start = olx.Rounds(*map(jnp.asarray, examples)), jnp.zeros(examples.width)
    return lambda: olx.run(learner, loss, rounds, start)


def _copies(group: Group, name: str, examples: Examples) -> None:
    """The cost of a round of n copies, divided by n times that of the weak learner."""
    case, weak = f"d={examples.width}, copies of {name}", WEAK[name]
    boosted = {size: boosting.boost(weak, size, RULES["BBM"], loss=HINGE) for size in SIZES}
    learners = {ALONE: weak} | {f"{OLX}, n={size}": one for size, one in boosted.items()}
    contestants = [
        Contestant(label, lambda one=one: play(one, HINGE, examples), examples.count)
        for label, one in learners.items()
    ]
    seen = group.race(case, contestants)
    for size in SIZES:
        most = targets.MANY_COPIES if size == max(SIZES) else targets.COPIES
        own = {"most": most if examples.width <= 64 else None, "unit": "olx / theirs / n"}
        label = f"{case}, n={size}"
        group.compare(label, seen[f"{OLX}, n={size}"], seen[ALONE], inverse=True, per=size, **own)


def _peers(
    group: Group, name: str, size: int, examples: Examples, cache: peers.VowpalCache
) -> None:
    case = f"d={WIDTH}, n={size}, {name}"
    learner = boosting.boost(GRADIENT, size, RULES[name], loss=HINGE)
    ours, options = play(learner, ZERO_ONE, examples), _options(name, size)
    vowpal, river = peers.vowpal(cache, *options), []
    if name == "logistic" and size > 1:  # river wants at least two models
        river = [_river(booster, size, examples) for booster in RIVER]
    least = targets.BOOSTING if (name, size) == ("BBM", max(SIZES)) else None
    mine = Contestant(OLX, lambda: ours, examples.count)
    seen = group.duel(case, mine, vowpal, *river, least=least)
    group.note(case, OLX, float(np.mean(ours().losses)), unit="progressive error")
    if not seen[vowpal.name].failure:
        missed = peers.vowpal_error(cache, *options)
        group.note(case, vowpal.name, missed, unit="progressive error")


def _sweep(group: Group, examples: Examples, cache: peers.VowpalCache) -> None:
    size = max(SIZES)
    case = f"d={WIDTH}, n={size}, {CONFIGURATIONS} configurations of BBM"
    etas = jnp.asarray(np.geomspace(0.01, 1.0, CONFIGURATIONS))
    make = lambda eta: boosting.boost(olx.linear(olx.ogd(eta)), size, RULES["BBM"], loss=HINGE)
    rounds = olx.Rounds(*map(jnp.asarray, examples))
    ours = sweep(OLX, make, etas, rounds, WIDTH, ZERO_ONE)
    theirs = peers.vowpal(cache, *_options("BBM", size))
    group.duel(case, ours, theirs, least=targets.BOOSTING_SWEEP)


def measure_batch(group: Group) -> None:
    """Both fit the same rows for the same number of rounds; rows are prepared in the time."""
    features, stages, count = 120, 100, group.size(20_000, 500)
    for kind in ("binary", "real"):
        case = f"{count} rows of {features} {kind} features, {stages} rounds of stumps"
        draw = np.random.default_rng(0)
        values = draw.normal(size=(count, features))
        x = (values > 0.5).astype(float) if kind == "binary" else values
        y = np.where(x[:, :9].sum(1) + draw.normal(size=count) > np.median(x), 1.0, -1.0)
        given, work = (x, y, stages), count * stages
        ours = Contestant(OLX, functools.partial(_stumps, *given), work)
        theirs = Contestant("scikit-learn", functools.partial(_sklearn_stumps, *given), work)
        group.duel(case, ours, theirs, least=targets.BATCH_BOOSTING if kind == "binary" else None)


def _stumps(x: np.ndarray, y: np.ndarray, stages: int) -> Callable[[], Any]:
    return lambda: boosting.boost_with(boosting.adaboost(), boosting.stumps(x), y, stages)


def _sklearn_stumps(x: np.ndarray, y: np.ndarray, stages: int) -> Callable[[], Any]:
    from sklearn.ensemble import AdaBoostClassifier

    return lambda: AdaBoostClassifier(n_estimators=stages).fit(x, y)


def _options(name: str, size: int) -> tuple[str, ...]:
    boosted = (f"--alg={name}", "--boosting", str(size), "--gamma", str(GAMMA))
    return (*boosted, "--sgd", "--loss_function", "hinge", "-l", str(peers.ETA))


def _river(name: str, size: int, examples: Examples) -> Contestant:
    def make(river: Any) -> Any:
        booster = getattr(importlib.import_module("river.ensemble"), name)
        weak = river.linear_model.LogisticRegression(river.optim.SGD(peers.ETA), intercept_lr=0.0)
        return booster(weak, n_models=size, seed=0)

    few = examples.first(max(20, 2000 // size))  # a model of river takes some 50 us per row
    return peers.river(f"{name}(n={size})", few, make)
