"""The service of `benchmarks.service` by river, FastAPI and uvicorn, with a log of its own.

A learned row is appended to a file and flushed to the disk before it is acknowledged; on a start
the file is played again from the first row.
"""

import json
import os
from typing import Any

from river import compose, linear_model, optim, preprocessing


def app() -> Any:
    """The application, as `uvicorn --factory` wants it."""
    import fastapi  # of the extra `bench`

    made = fastapi.FastAPI()
    numbers = compose.SelectType(float) | preprocessing.StandardScaler()
    words = compose.SelectType(str) | preprocessing.OneHotEncoder()
    model = (numbers + words) | linear_model.LogisticRegression(optim.SGD(0.1))
    counts = {"rounds": 0}

    def teach(row: dict) -> float:
        """Learn a row; the probability of its label before that."""
        x = {name: cell for name, cell in row.items() if name != "label"}
        label = row["label"] == "yes"
        found = model.predict_proba_one(x).get(label, 0.5)
        model.learn_one(x, label)
        counts["rounds"] += 1
        return found

    log = os.open(os.environ["SERVICE_LOG"], os.O_RDWR | os.O_APPEND | os.O_CREAT)
    with open(os.environ["SERVICE_LOG"]) as lines:
        for line in lines:
            if line.endswith("\n"):
                teach(json.loads(line))

    @made.post("/predict")
    async def predict(row: dict) -> dict:
        x = {name: cell for name, cell in row.items() if name != "label"}
        return {"probability": model.predict_proba_one(x).get(True, 0.5)}

    @made.post("/learn")
    async def learn(row: dict) -> dict:
        found = teach(row)
        os.write(log, json.dumps(row).encode() + b"\n")
        os.fsync(log)
        return {"rounds": counts["rounds"], "probability": found}

    @made.get("/health")
    async def health() -> dict:
        return {"learned": counts["rounds"]}

    return made
