"""Batch boosting: AdaBoost with stumps on binary features, against scikit-learn."""

import numpy as np

from benchmarks import targets
from benchmarks.race import Contestant, kept_race
from benchmarks.report import Group, Row, compared
from benchmarks.settings import Settings
from olx import boosting

FEATURES, STAGES = 120, 100
OLX, PEER = "olx", "scikit-learn"


def measure(settings: Settings) -> Group:
    rows, timings = [], {}
    for kind in ("binary", "real"):
        rows += _race(kind, settings.size(20_000, 500), settings, timings)
    return Group("Batch boosting", rows, timings)


def _race(kind: str, count: int, settings: Settings, timings: dict) -> list[Row]:
    """Both fit the same rows for the same number of rounds; rows are prepared in the time."""
    case = f"{count} rows of {FEATURES} {kind} features, {STAGES} rounds of stumps"
    draw = np.random.default_rng(0)
    values = draw.normal(size=(count, FEATURES))
    rows = (values > 0.5).astype(float) if kind == "binary" else values
    labels = np.where(rows[:, :9].sum(1) + draw.normal(size=count) > np.median(rows), 1.0, -1.0)

    def ours():
        fit = lambda: boosting.boost_with(
            boosting.adaboost(), boosting.stumps(rows), labels, STAGES
        )
        return fit

    def theirs():
        from sklearn.ensemble import AdaBoostClassifier

        return lambda: AdaBoostClassifier(n_estimators=STAGES).fit(rows, labels)

    work = count * STAGES
    seen = kept_race(
        case,
        [Contestant(OLX, ours, work), Contestant(PEER, theirs, work)],
        settings.rounds,
        timings,
    )
    target = targets.at_least(targets.BATCH_BOOSTING if kind == "binary" else None)
    return [compared(case, seen[OLX], seen[PEER], target)]
