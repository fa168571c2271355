"""Estimators of river and of olx as they come, with no number chosen: progressive validation.

    OLX_DATA=... python experiments/without_step_size.py

Each row is predicted, then learned. Regression: the mean absolute error of
`StandardScaler() | LinearRegression()` of river and of `OnlineRegressor()`. Classification: the
share of mistakes and the mean logarithmic loss of `StandardScaler() | LogisticRegression()` and of
`OnlineClassifier()`. No number of olx was chosen on the data sets that river ships, which are at
the end of each table.
"""

import os
from pathlib import Path

import numpy as np
from river import base, datasets, linear_model, metrics, preprocessing

from olx.interop.river import OnlineClassifier, OnlineRegressor

ROWS = 3000
REGRESSION = ("abalone", "cal_housing", "casp")
CLASSES = ("diabetes", "german.numer", "heart", "australian", "sonar_scale", "spambase", "magic04")
CLASSES += ("elec2", "weather", "svmguide1", "breast-cancer")
IN_TIME = ("elec2", "weather")


def stored(name: str) -> list[tuple[dict, float]]:
    """The first rows of a file, shuffled unless they are in the order of time."""
    with np.load(Path(os.environ["OLX_DATA"]) / f"{name}.npz") as file:
        x, y = file["X"].astype(float), file["y"].astype(float)
    order = np.arange(len(y)) if name in IN_TIME else np.random.default_rng(7).permutation(len(y))
    return [(dict(enumerate(x[i].tolist())), float(y[i])) for i in order[:ROWS]]


def labels(rows: list) -> list[tuple[dict, bool]]:
    larger = max(y for _, y in rows)
    return [(x, y == larger) for x, y in rows]


def regression_error(model: base.Regressor, rows: list) -> list[float]:
    metric = metrics.MAE()
    for x, y in rows:
        metric.update(y, model.predict_one(x))
        model.learn_one(x, y)
    return [metric.get()]


def classification_error(model: base.Classifier, rows: list) -> list[float]:
    metric = metrics.Accuracy() + metrics.LogLoss()
    for x, y in rows:
        share = model.predict_proba_one(x).get(True, 0.5)
        metric[0].update(y, share > 0.5)
        metric[1].update(y, share)
        model.learn_one(x, y)
    return [1 - metric[0].get(), metric[1].get()]


def show(name: str, *found: list[float]) -> None:
    numbers = "".join(f"{one:>12.5g}{other:>12.5g}" for one, other in zip(*found, strict=True))
    print(f"{name:>16}{numbers}", flush=True)


def main() -> None:
    print(f"{'error of':>16}{'river':>12}{'olx':>12}")
    shipped = {"TrumpApproval": datasets.TrumpApproval(), "ChickWeights": datasets.ChickWeights()}
    for name, rows in ({name: stored(name) for name in REGRESSION} | shipped).items():
        theirs = preprocessing.StandardScaler() | linear_model.LinearRegression()
        rows = list(rows)
        show(name, *(regression_error(model, rows) for model in (theirs, OnlineRegressor())))
    print(f"{'mistakes, loss of':>16}{'river':>11}{'olx':>12}{'river':>12}{'olx':>12}")
    shipped = {"Phishing": datasets.Phishing(), "Bananas": datasets.Bananas()}
    for name, rows in ({name: labels(stored(name)) for name in CLASSES} | shipped).items():
        theirs = preprocessing.StandardScaler() | linear_model.LogisticRegression()
        rows = list(rows)
        show(name, *(classification_error(model, rows) for model in (theirs, OnlineClassifier())))


if __name__ == "__main__":
    main()
