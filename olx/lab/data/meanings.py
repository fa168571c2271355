"""What the outcomes of a task mean: the labels of the file in their order."""

from typing import Any

import numpy as np

from olx.lab.data.table import Labels
from olx.lab.tasks import outcomes
from olx.lab.tasks.task import Task
from olx.streams.tables import Level


def labels_of(task: Task, y: np.ndarray | None, binarize: Any, name: str) -> Labels:
    """The labels behind the outcomes that a task reads from `y`."""
    if y is None or task.read not in (outcomes.signs, outcomes.classes, outcomes.single_labels):
        return Labels(name)
    there = [plain(label) for label in np.unique(y).tolist()]
    signs = task.read is outcomes.signs
    if binarize is None:
        return Labels(name, tuple(there), signs)
    chosen = binarize if isinstance(binarize, list | tuple) else [binarize]
    other = [label for label in there if label not in chosen]
    one = plain(chosen[0]) if len(chosen) == 1 else " or ".join(str(plain(x)) for x in chosen)
    return Labels(name, (other[0] if len(other) == 1 else f"not {one}", one), signs)


def plain(label: Any) -> Level:
    """A label as JSON keeps it; whole numbers are integers."""
    return int(label) if isinstance(label, float) and label.is_integer() else label
