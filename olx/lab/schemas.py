"""The columns of the tables of a result."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

KEYS = [("dataset", pa.string()), ("learner", pa.string())]
ONE = [*KEYS, ("configuration", pa.int64()), ("seed", pa.int64())]
# the parts of the time of a job
PARTS = ("reading", "compiled", "playing", "comparator", "certificates", "confusions", "tables")
SCHEMAS = {
    "configurations": pa.schema(
        [
            *ONE,
            ("hyperparameters", pa.string()),  # JSON
            ("rounds", pa.int64()),
            ("loss", pa.float64()),  # mean
            ("total", pa.float64()),
            ("diverged", pa.bool_()),
        ]  # and h.<name> per swept number, and one column per metric
    ),
    "curves": pa.schema(
        [
            *ONE,
            ("round", pa.int64()),
            ("total", pa.float64()),
            ("regret", pa.float64()),  # null without a comparator
            ("bound", pa.float64()),  # null if there is none
        ]
    ),
    "certificates": pa.schema(
        [
            *ONE,
            ("name", pa.string()),  # of the theorem
            ("theorem", pa.string()),
            ("left", pa.float64()),
            ("right", pa.float64()),
            ("slack", pa.float64()),  # the smallest over all rounds
            ("tightness", pa.float64()),
            ("holds", pa.bool_()),
            ("broken", pa.string()),  # the broken conditions, each with its first round
            ("difference", pa.float64()),  # of the losses of the replay from those shown, relative
            ("holds_in_double", pa.bool_()),  # null if single precision did not fail
        ]
    ),
    "confusions": pa.schema(
        [
            *ONE,  # the best configuration
            ("truth", pa.int64()),  # the number of a class
            ("predicted", pa.int64()),  # -1 for none
            ("truth_name", pa.string()),
            ("predicted_name", pa.string()),
            ("count", pa.int64()),
        ]
    ),
    "times": pa.schema(
        [
            *KEYS,
            ("seed", pa.int64()),
            ("seconds", pa.float64()),  # the sum of the parts below
            ("rounds_per_second", pa.float64()),  # while playing; summed over configurations
            *((f"{part}_seconds", pa.float64()) for part in PARTS),
        ]
    ),
}


def table(name: str, columns: Mapping[str, Any]) -> pa.Table:
    """A table of a job: the columns of its schema, then further columns of the experiment."""
    schema = SCHEMAS[name]
    fixed = [pa.array(columns[field.name], field.type) for field in schema]
    free = [key for key in columns if key not in schema.names]
    arrays = [*fixed, *(pa.array(columns[key], pa.float64()) for key in free)]
    return pa.table(arrays, names=[*schema.names, *free])
