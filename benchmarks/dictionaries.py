"""Rows as dictionaries, one at a time: `olx.interop.river` against the models of river.

Both compute the same updates: gradient descent, and AdaGrad (in olx the form of dual averaging). A
model learns all rows, or predicts each row before it learns it, as in progressive validation.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import olx
from benchmarks import targets
from benchmarks.race import Contestant, kept_race
from benchmarks.report import Group, compared
from benchmarks.settings import Settings

WIDTHS = (10, 50)


def measure(settings: Settings) -> Group:
    from river import linear_model, optim

    from olx.interop.river import OnlineClassifier

    model = linear_model.LogisticRegression
    pairs = {
        "OGD": (
            lambda: OnlineClassifier(olx.linear(olx.ogd(0.1))),
            lambda: model(optim.SGD(0.1), intercept_lr=0.1),
        ),
        "AdaGrad": (OnlineClassifier, lambda: model(optim.AdaGrad(0.1))),
    }
    rows, timings = [], {}
    for width in WIDTHS:
        examples = _examples(settings.size(5000, 300), width)
        for way, play in (("learn", _learn), ("predict and learn", _both)):
            for name, (ours, theirs) in pairs.items():
                case = f"d={width}, {name}, {way}"
                contestants = [
                    Contestant("olx", _call(play, ours, examples), len(examples)),
                    Contestant(targets.RIVER, _call(play, theirs, examples), len(examples)),
                ]
                seen = kept_race(case, contestants, settings.rounds, timings)
                target = targets.at_least(targets.DICTIONARIES if way == "learn" else None)
                rows.append(compared(case, seen["olx"], seen[targets.RIVER], target))
    return Group("Dictionaries", rows, timings)


def _examples(count: int, width: int) -> list[tuple[dict[str, float], bool]]:
    rows = np.random.default_rng(0).normal(size=(count, width))
    return [({f"x{i}": float(v) for i, v in enumerate(row)}, bool(row[0] > row[1])) for row in rows]


def _call(play: Callable, make: Callable, examples: list) -> Callable[[], Callable[[], None]]:
    def prepare() -> Callable[[], None]:
        model = make()
        return lambda: play(model, examples)

    return prepare


def _learn(model: Any, examples: list) -> None:
    for x, y in examples:
        model.learn_one(x, y)


def _both(model: Any, examples: list) -> None:
    for x, y in examples:
        model.predict_proba_one(x)
        model.learn_one(x, y)
