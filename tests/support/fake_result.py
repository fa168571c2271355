"""A small result with everything in it that a report can show, made without playing a round."""

import itertools
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from olx.lab.tables import PARTS, SCHEMAS, table

CONFIG = """\
title = "Four learners & two sets"
description = "Nobody played these."
comparator = "best"
radius = 2.0

[[published]]
source = "Somebody 1999, table 1"
learner = "adagrad"
metric = "error"
values = { heart = 0.36, "a<b" = 0.21, absent = 0.5 }
"""
ENVIRONMENT = {"python": "3.11", "versions": {"jax": "0.7"}, "devices": ["cpu"], "commit": None}
ETAS, QS, SEEDS, ROUNDS = np.geomspace(1e-3, 10, 9), np.linspace(1.1, 2, 5), range(3), 1000
GRIDS = {
    "adagrad": [{"eta": eta} for eta in ETAS],
    "omd, p-norm": [{"eta": eta, "q": q} for eta, q in itertools.product(ETAS, QS)],
    "perceptron": [{}],
    "random": [
        {"eta": 10.0**a, "delta": b} for a, b in np.random.default_rng(1).uniform(-2, 1, (60, 2))
    ],
}


def make(folder: Path) -> Path:
    """Write the result; no regret is known of the Perceptron.

    On "a<b" steps of 10 diverge after round 100.
    """
    draw = np.random.default_rng(0)
    tables: dict[str, list[dict]] = {name: [] for name in SCHEMAS}
    for dataset, (number, (learner, grid)) in itertools.product(
        ["heart", "a<b"], enumerate(GRIDS.items())
    ):
        for (index, chosen), seed in itertools.product(enumerate(grid), SEEDS):
            row = {"dataset": dataset, "learner": learner, "configuration": index, "seed": seed}
            _play(tables, row, chosen, 0.3 + 0.05 * number, draw.normal(0, 0.005))
        for seed in SEEDS:
            row = {
                "dataset": dataset,
                "learner": learner,
                "seed": seed,
                "seconds": 0.25 * len(PARTS),
            }
            parts = dict.fromkeys((f"{part}_seconds" for part in PARTS), 0.25)
            if dataset == "heart":
                tables["confusions"] += _confused(learner, seed, 3 * number)
            tables["times"].append(row | {"rounds_per_second": 2.5e6} | parts)
    folder.mkdir(parents=True)
    for name, rows in tables.items():
        columns = {key: None for row in rows for key in row}
        values = {key: [row.get(key) for row in rows] for key in columns}
        pq.write_table(table(name, values), folder / f"{name}.parquet")
    (folder / "config.toml").write_text(CONFIG)
    (folder / "environment.json").write_text(json.dumps(ENVIRONMENT))
    return folder


def _confused(learner: str, seed: int, more: int) -> list[dict]:
    """Cats are taken for dogs now and then; once there is no prediction."""
    row = {"dataset": "heart", "learner": learner, "configuration": 0, "seed": seed}
    cells = [(0, 0, 50 - more), (0, 1, 4 + more), (0, -1, 1), (1, 1, 40)]
    names = ["cat", "dog", "none"]
    return [
        row
        | {"truth": i, "predicted": j, "count": count}
        | {"truth_name": names[i], "predicted_name": names[j]}
        for i, j, count in cells
    ]


def _play(tables: dict, row: dict, chosen: dict, level: float, noise: float) -> None:
    eta = chosen.get("eta", 1.0)
    lost = row["dataset"] == "a<b" and eta > 9
    loss = np.nan if lost else level + 0.02 * np.log(eta / 0.1) ** 2 + noise
    loss += 0.1 * (chosen.get("q", 1.5) - 1.5) ** 2
    tables["configurations"].append(
        row
        | {f"h.{name}": value for name, value in chosen.items()}
        | {"hyperparameters": json.dumps(chosen), "rounds": ROUNDS, "diverged": bool(lost)}
        | {"loss": loss, "total": loss * ROUNDS, "error": loss / 2}
    )
    known = row["learner"] != "perceptron"
    at = np.unique(np.geomspace(1, ROUNDS, 25).astype(int))
    for t in at.tolist():
        kept = 0.3 if lost and t <= 100 else loss
        total, regret = kept * t + np.sqrt(t), 0.8 * np.sqrt(t)
        tables["curves"].append(
            row
            | {"round": t, "total": total, "regret": regret if known else None}
            | {"bound": 3 * np.sqrt(t) if known else None}
        )
    if known:
        left, right = 0.8 * np.sqrt(ROUNDS), 3 * np.sqrt(ROUNDS)
        tables["certificates"].append(
            row
            | {
                "name": "certify",
                "theorem": "theorem 1",
                "left": left,
                "right": right,
                "published": 2 * right,
                "slack": 2.2,
            }
            | {"tightness": 0.27, "holds": True}
            | {"broken": "", "difference": 0.0, "holds_in_double": None}
        )
