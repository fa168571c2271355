"""Online boosting: the cost of copies, and the boosters of Vowpal Wabbit and river.

The weak learner is gradient descent on the hinge loss, in all libraries. In river it is a logistic
regression, because its boosters need probabilities. The errors of olx and Vowpal Wabbit are printed
beside the speed: their boosters weigh rounds differently.
"""

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
from benchmarks.race import Contestant, kept_race
from benchmarks.report import Group, Row, compared
from benchmarks.settings import Settings
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


def measure(settings: Settings) -> Group:
    rows, timings = [], {}
    examples = data.dense(settings.size(20_000, 1000), WIDTH)
    wide = data.dense(settings.size(2000, 200), WIDE)
    for name in WEAK:
        for some in (examples, wide):
            rows += _copies(name, some, settings, timings)
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        cache = peers.VowpalCache(folder, examples, max(SIZES))
        for size in SIZES:
            for name in RULES:
                rows += _peers(name, size, examples, cache, settings, timings)
        rows += _sweep(examples.first(2048), cache, settings, timings)
    return Group("Online boosting", rows, timings)


def play(learner: olx.Learner, loss: Callable, examples: Examples) -> Callable[[], olx.Run]:
    rounds, start = olx.Rounds(*map(jnp.asarray, examples)), jnp.zeros(examples.width)
    return lambda: olx.run(learner, loss, rounds, start)


def _copies(name: str, examples: Examples, settings: Settings, timings: dict) -> list[Row]:
    """The cost of a round of n copies, divided by n times that of the weak learner."""
    weak, rows = WEAK[name], []
    case = f"d={examples.width}, copies of {name}"
    boosted = {size: boosting.boost(weak, size, RULES["BBM"], loss=HINGE) for size in SIZES}
    learners = {ALONE: weak} | {f"{OLX}, n={size}": one for size, one in boosted.items()}
    contestants = [
        Contestant(label, lambda one=one: play(one, HINGE, examples), examples.count)
        for label, one in learners.items()
    ]
    seen = kept_race(case, contestants, settings.rounds, timings)
    for size in SIZES:
        most = targets.MANY_COPIES if size == max(SIZES) else targets.COPIES
        row = compared(case, seen[f"{OLX}, n={size}"], seen[ALONE], None, inverse=True)
        target = targets.at_most(most if examples.width <= 64 else None)
        value = None if row.value is None else row.value / size
        best = None if row.best is None else row.best / size
        unit = "olx / theirs / n"
        rows.append(
            row._replace(case=f"{case}, n={size}", value=value, best=best, target=target, unit=unit)
        )
    return rows


def _peers(
    name: str,
    size: int,
    examples: Examples,
    cache: peers.VowpalCache,
    settings: Settings,
    timings: dict,
) -> list[Row]:
    case = f"d={WIDTH}, n={size}, {name}"
    learner = boosting.boost(GRADIENT, size, RULES[name], loss=HINGE)
    ours, options = play(learner, ZERO_ONE, examples), _options(name, size)
    theirs = [peers.vowpal(cache, *options)]
    if name == "logistic" and size > 1:  # river wants at least two models
        theirs += [_river(booster, size, examples) for booster in RIVER]
    mine = Contestant(OLX, lambda: ours, examples.count)
    seen = kept_race(case, [mine, *theirs], settings.rounds, timings)
    wanted = targets.at_least(targets.BOOSTING if (name, size) == ("BBM", max(SIZES)) else None)
    vowpal = theirs[0].name
    rows = [
        compared(case, seen[OLX], seen[peer.name], wanted if peer.name == vowpal else None)
        for peer in theirs
    ]
    rows.append(Row(case, OLX, float(np.mean(ours().losses)), None, "progressive error"))
    if not seen[vowpal].failure:
        missed = peers.vowpal_error(cache, *options)
        rows.append(Row(case, vowpal, missed, None, "progressive error"))
    return rows


def _sweep(
    examples: Examples, cache: peers.VowpalCache, settings: Settings, timings: dict
) -> list[Row]:
    size = max(SIZES)
    case = f"d={WIDTH}, n={size}, {CONFIGURATIONS} configurations of BBM"
    etas = jnp.asarray(np.geomspace(0.01, 1.0, CONFIGURATIONS))
    make = lambda eta: boosting.boost(olx.linear(olx.ogd(eta)), size, RULES["BBM"], loss=HINGE)
    learners, keep = olx.batch(make, eta=etas), olx.keep.totals
    rounds, start = olx.Rounds(*map(jnp.asarray, examples)), jnp.zeros(WIDTH)
    sweep = lambda: olx.sweep(learners, ZERO_ONE, rounds, start, keep=keep)
    ours = Contestant(OLX, lambda: sweep, examples.count * CONFIGURATIONS)
    theirs = peers.vowpal(cache, *_options("BBM", size))
    seen = kept_race(case, [ours, theirs], settings.rounds, timings)
    return [compared(case, seen[OLX], seen[theirs.name], targets.at_least(targets.BOOSTING_SWEEP))]


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
