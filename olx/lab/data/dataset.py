"""A data set as a stream: its task, and all that is done to it before the first round.

Everything here is explicit, for each of these choices changes the numbers of a published table:
which label counts as +1, how features are scaled, whether there is a bias, and in which order the
rows come.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from olx.core import Rounds
from olx.lab.data.scaling import scaled
from olx.streams.sparse_rows import sparse_rows

TASKS = ("binary", "multiclass", "regression", "experts", "portfolio")


@dataclasses.dataclass(frozen=True)
class Dataset:
    """Rows in order. Labels are -1 and +1 if binary, 0, 1, 2, ... if multiclass."""

    name: str
    task: str
    context: Any  # (T, d), an array or a SciPy sparse one; None for experts and portfolios
    outcome: np.ndarray  # (T,); (T, N) for experts and portfolios
    train: int | None = None  # how many rows at the start are the original training file
    truth: Any = None  # what a generated stream was made from

    def __len__(self) -> int:
        return len(self.outcome)

    @property
    def width(self) -> int:
        """The number of features, or of experts."""
        return (self.outcome if self.context is None else self.context).shape[1]

    @property
    def is_sparse(self) -> bool:
        return scipy.sparse.issparse(self.context)

    def shuffled(self, seed: int) -> "Dataset":
        """The rows in an order drawn with `seed`."""
        order = np.random.default_rng(seed).permutation(len(self))
        return dataclasses.replace(self.rows(order), train=None)

    def rows(self, index: Any) -> "Dataset":
        context = None if self.context is None else self.context[index]
        return dataclasses.replace(self, context=context, outcome=self.outcome[index])

    def rounds(self, dtype: Any = np.float32, dense: bool = True) -> Rounds:
        """The stream. `dense=False` keeps sparse rows sparse, for `olx.run`."""
        outcome = self.outcome if self.task == "multiclass" else self.outcome.astype(dtype)
        if self.context is None:
            return Rounds(None, outcome)
        if not self.is_sparse:
            return Rounds(self.context.astype(dtype), outcome)
        rows = self.context.astype(dtype)
        return Rounds(rows.toarray() if dense else sparse_rows(rows), outcome)


def prepare(
    place: str,
    x: Any,
    y: np.ndarray | None,
    *,
    task: str | None,
    binarize: float | str | Sequence[float | str] | None,
    scale: str,
    bias: bool,
    center_target: bool,
    expert_loss: str,
) -> tuple[str, Any, np.ndarray]:
    """The task, the context and the outcome of a file's features `x` and labels `y`."""
    _finite(place, "feature", x.data if scipy.sparse.issparse(x) else x, x)
    if y is None and task not in ("experts", "portfolio"):
        raise ValueError(f"{place} holds no labels; it can only be of task experts or portfolio.")
    if y is not None and y.dtype.kind == "f":
        _finite(place, "label", y, y)
    if binarize is not None:
        if y is None:
            raise ValueError(f"{place} holds no labels to binarize.")
        task, y = "binary", _against_the_rest(place, y, binarize)
    if task is None:
        assert y is not None
        if len(np.unique(y)) != 2:
            raise ValueError(
                f"{place} holds {len(np.unique(y))} different labels; say what they are: "
                "task = multiclass or regression, or binarize = one of them."
            )
        task = "binary"
    if task == "portfolio":
        x = _dense(x)
        _refuse(place, "price relative", x, x <= 0, "; price relatives are positive")
        return task, None, x
    if task == "experts":
        return task, None, _expert_losses(_dense(x), y, expert_loss)
    assert y is not None
    outcome = {"binary": _signs, "multiclass": _classes, "regression": _reals}[task](place, y)
    if center_target:
        outcome = (outcome - outcome.mean()) / (outcome.std() or 1.0)
    x = scaled(x.astype(float), scale)
    if bias:
        one = np.ones((x.shape[0], 1))
        x = (
            scipy.sparse.hstack([x, one], "csr")
            if scipy.sparse.issparse(x)
            else np.hstack([x, one])
        )
    return task, x, outcome


def _against_the_rest(place: str, y: np.ndarray, chosen: Any) -> np.ndarray:
    chosen = chosen if isinstance(chosen, list | tuple) else [chosen]
    there = np.unique(y).tolist()
    for label in chosen:
        if label not in there:
            raise ValueError(
                f"{place} holds no label {label} to binarize by; it holds {_few(there)}."
            )
    return np.where(np.isin(y, chosen), 1.0, -1.0)


def _signs(place: str, y: np.ndarray) -> np.ndarray:
    labels = np.unique(y)
    if len(labels) == 1:
        raise ValueError(f"{place} holds the label {labels[0]} alone; a binary task needs two.")
    for legal in ((-1, 1), (0, 1)):
        if len(labels) > 2 and set(legal) <= set(labels.tolist()):
            _refuse(place, "label", y, ~np.isin(y, legal), f"; a binary task has {legal} only")
    if len(labels) > 2:
        raise ValueError(
            f"{place} holds {len(labels)} different labels ({_few(labels.tolist())}), row "
            f"{int(np.argmax(y == labels[2]))} the third; a binary task needs two: give binarize = "
            "one of them, which is then +1 and all others -1."
        )
    return np.where(y == labels[1], 1.0, -1.0)


def _classes(place: str, y: np.ndarray) -> np.ndarray:
    if y.dtype.kind == "f":
        _refuse(place, "label", y, np.floor(y) != y, "; classes are whole numbers or names")
    return np.unique(y, return_inverse=True)[1].reshape(-1).astype(np.int32)


def _reals(place: str, y: np.ndarray) -> np.ndarray:
    if y.dtype.kind not in "fiu":
        raise ValueError(f"{place} holds labels such as {y[0]!r}; a regression needs numbers.")
    return y.astype(float)


def _expert_losses(x: np.ndarray, y: np.ndarray | None, expert_loss: str) -> np.ndarray:
    """Losses in [0, 1]: of the forecasts `x` against `y`, or `x` itself, over the largest."""
    losses = x if y is None else np.abs(x - y[:, None])
    if y is not None and expert_loss == "squared":
        losses = losses**2
    low, high = min(losses.min(), 0.0), losses.max()
    return (losses - low) / ((high - low) or 1.0)


def _finite(place: str, what: str, numbers: np.ndarray, whole: Any) -> None:
    if not np.all(np.isfinite(numbers)):
        whole = _dense(whole)
        _refuse(place, what, whole, ~np.isfinite(whole), "; clean the file first")


def _refuse(place: str, what: str, array: np.ndarray, wrong: np.ndarray, demand: str) -> None:
    if not np.any(wrong):
        return
    row, *column = np.argwhere(wrong)[0].tolist()
    where = f"row {row}" + (f", column {column[0]}" if column else "")
    raise ValueError(f"{place} holds the {what} {array[(row, *column)]:g} at {where}{demand}.")


def _dense(x: Any) -> np.ndarray:
    return np.asarray(x.toarray() if scipy.sparse.issparse(x) else x)


def _few(values: list) -> str:
    shown = ", ".join(
        f"{value:g}" if isinstance(value, float) else str(value) for value in values[:8]
    )
    return shown + (", ..." if len(values) > 8 else "")
