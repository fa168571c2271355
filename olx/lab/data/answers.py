"""The outcomes of new rows, if their file holds labels."""

from pathlib import Path
from typing import Any

import numpy as np

from olx._refusal import own_name
from olx.lab.data.dataset import Dataset
from olx.lab.data.framed import Reading, is_framed, labels_of, read_frame
from olx.lab.data.meanings import plain
from olx.lab.data.readers import read_file
from olx.lab.data.table import Labels, Table
from olx.lab.tasks import outcomes
from olx.streams.tables import opened


def table_of(data: Dataset) -> Table | None:
    """The way to the rows of a data set, also of a generated one; None if it has no rows."""
    if data.table is not None or data.context is None or data.task.gather is not None:
        return data.table
    signs = data.task.read is outcomes.signs
    classes = (-1, 1) if signs else tuple(range(data.classes))
    return Table(data.task.name, None, data.width, labels=Labels("", classes, signs))


def outcomes_of(table: Table, path: Path, binarize: Any) -> np.ndarray | None:
    """The outcomes of the rows of a file; None if it holds no labels.

    binarize: the labels that count as +1, if the config names some.
    """
    y = _labels(table, path)
    known = table.labels
    if y is None:
        return None
    if not known.classes:
        return (y.astype(float) - known.mean) / known.spread
    found = [plain(label) for label in y.tolist()]
    if binarize is not None:
        chosen = binarize if isinstance(binarize, list) else [binarize]
        return np.array([1.0 if label in chosen else -1.0 for label in found])
    place = {label: i for i, label in enumerate(known.classes)}
    for row, label in enumerate(found):
        if label not in place:
            raise ValueError(
                f"{path} holds the label {label!r} in row {row}, which was not there before; known "
                f"are {outcomes.few(list(known.classes))}. So no loss is shown."
            )
    number = np.array([place[label] for label in found], np.int32)
    return 2.0 * number - 1.0 if known.signs else number


def _labels(table: Table, path: Path) -> np.ndarray | None:
    if table.columns is None:
        return read_file(path, Reading(encoding=table.encoding), labelled=False).y
    if not is_framed(path):
        return None
    with own_name(str(path)):
        frame = opened(read_frame(path, Reading(encoding=table.encoding)).frame)
        name, columns = table.labels.name, table.columns
        bare = not columns.named and len(frame.columns) == len(columns.columns)  # features alone
        return None if bare or name not in frame.columns else labels_of(frame[name])
