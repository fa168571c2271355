"""Read the outcomes of rounds from the features and labels of a file.

Every reader takes the path of the file, its features, its labels or None, and the loss of experts.
It refuses data that its task cannot use.
"""

from typing import Any

import numpy as np
import scipy.sparse

from olx import ranking, structured

Matrix = Any  # an array of NumPy, or a sparse one of SciPy


def signs(place: str, x: Matrix, y: np.ndarray, expert_loss: str) -> np.ndarray:
    """-1 and +1; the larger of two labels is +1."""
    labels = np.unique(y)
    if len(labels) == 1:
        raise ValueError(f"{place} holds the label {labels[0]} alone; a binary task needs two.")
    for legal in ((-1, 1), (0, 1)):
        if len(labels) > 2 and set(legal) <= set(labels.tolist()):
            refuse(place, "label", y, ~np.isin(y, legal), f"; a binary task has {legal} only")
    if len(labels) > 2:
        raise ValueError(
            f"{place} holds {len(labels)} different labels ({few(labels.tolist())}); the third "
            f"is in row {int(np.argmax(y == labels[2]))}. A binary task has two labels: give "
            "binarize = the label that counts as +1; all others are then -1."
        )
    return np.where(y == labels[1], 1.0, -1.0)


def classes(place: str, x: Matrix, y: np.ndarray, expert_loss: str) -> np.ndarray:
    """0, 1, 2, ... in the order of the labels."""
    if y.dtype.kind == "f":
        refuse(place, "label", y, np.floor(y) != y, "; classes are whole numbers or names")
    return np.unique(y, return_inverse=True)[1].reshape(-1).astype(np.int32)


def single_labels(place: str, x: Matrix, y: np.ndarray, expert_loss: str) -> np.ndarray:
    """One row per round: 1 at its label and 0 at the others, in the order of the labels."""
    number = classes(place, x, y, expert_loss)
    if number.max() < 1:
        raise ValueError(f"{place} holds one label alone; a ranking of labels needs two.")
    return np.eye(number.max() + 1)[number]


def several_labels(place: str, x: Matrix, y: np.ndarray, expert_loss: str) -> np.ndarray:
    """One row per round, with 1 at its labels and 0 at the others."""
    if y.ndim != 2 or y.shape[1] < 2:
        raise ValueError(
            f"{place} holds labels of shape {y.shape}; several labels per row are a table of 0 and "
            "1 with a column per label, for 2 labels or more."
        )
    refuse(place, "label", y, (y != 0) & (y != 1), "; a column is 1 for a relevant label, else 0")
    return y.astype(float)


def degrees(place: str, x: Matrix, y: np.ndarray, expert_loss: str) -> np.ndarray:
    """How relevant each row is: numbers of at least 0."""
    relevance = reals(place, x, y, expert_loss)
    refuse(place, "label", relevance, relevance < 0, "; a degree of relevance is 0 or more")
    return relevance


def grouped(
    place: str, x: Matrix, y: np.ndarray, group: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """The rows and the relevance of each group, padded to the largest group."""
    order, sizes = _in_groups(place, group)
    rounds = ranking.group_rows(dense(x)[order], y[order], sizes)
    return np.asarray(rounds.context), np.asarray(rounds.outcome)


def sequences(
    place: str, x: Matrix, y: np.ndarray, group: np.ndarray | None
) -> tuple[structured.Sequences, np.ndarray]:
    """The rows and the labels of each sequence, padded to the longest one."""
    order, sizes = _in_groups(place, group)
    cut = lambda rows: np.split(rows[order], np.cumsum(sizes)[:-1])
    rounds = structured.padded_rounds(cut(dense(x)), cut(y))
    return rounds.context, np.asarray(rounds.outcome)


def _in_groups(place: str, group: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The rows in the order of their groups, and the size of each group."""
    if group is None:
        raise ValueError(
            f"{place} does not say which rows belong together; in an .npz file, store a number per "
            "row as qid, or where each sequence begins as offsets."
        )
    return np.argsort(group, kind="stable"), np.unique(group, return_counts=True)[1]


def reals(place: str, x: Matrix, y: np.ndarray, expert_loss: str) -> np.ndarray:
    if y.dtype.kind not in "fiu":
        raise ValueError(f"{place} holds labels such as {y[0]!r}; a regression needs numbers.")
    return y.astype(float)


def expert_losses(place: str, x: Matrix, y: np.ndarray | None, expert_loss: str) -> np.ndarray:
    """Losses of the forecasts `x` against `y`, or `x` itself; divided by the largest."""
    x = dense(x)
    losses = x if y is None else np.abs(x - y[:, None])
    if y is not None and expert_loss == "squared":
        losses = losses**2
    low, high = min(losses.min(), 0.0), losses.max()
    return (losses - low) / ((high - low) or 1.0)


def price_relatives(place: str, x: Matrix, y: np.ndarray | None, expert_loss: str) -> np.ndarray:
    x = dense(x)
    refuse(place, "price relative", x, x <= 0, "; price relatives are positive")
    return x


def finite(place: str, what: str, array: Matrix) -> None:
    """Refuse NaN and infinity by row and column."""
    if not np.all(np.isfinite(array.data if scipy.sparse.issparse(array) else array)):
        whole = dense(array)
        refuse(place, what, whole, ~np.isfinite(whole), "; clean the file first")


def refuse(place: str, what: str, array: np.ndarray, wrong: np.ndarray, demand: str) -> None:
    if not np.any(wrong):
        return
    row, *column = np.argwhere(wrong)[0].tolist()
    where = f"row {row}" + (f", column {column[0]}" if column else "")
    raise ValueError(f"{place} holds the {what} {array[(row, *column)]:g} at {where}{demand}.")


def dense(x: Matrix) -> np.ndarray:
    return np.asarray(x.toarray() if scipy.sparse.issparse(x) else x)


def few(values: list) -> str:
    shown = ", ".join(
        f"{value:g}" if isinstance(value, float) else str(value) for value in values[:8]
    )
    return shown + (", ..." if len(values) > 8 else "")
