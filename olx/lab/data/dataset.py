"""A data set as a stream: its task, and its preparation before the first round.

Each of these choices changes published numbers, so all are explicit: which label counts as +1, how
features are scaled, whether there is a bias, and the order of the rows.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import scipy.sparse

from olx.core import Rounds
from olx.lab.data.framed import Reading
from olx.lab.data.meanings import labels_of
from olx.lab.data.readers import Rows, all_but
from olx.lab.data.scaling import fit_scale
from olx.lab.data.table import Table, with_bias
from olx.lab.tasks.outcomes import few, finite
from olx.lab.tasks.task import BINARY, TASKS, Task
from olx.streams.sparse_rows import sparse_rows


@dataclasses.dataclass(frozen=True)
class Dataset:
    """Rows in order. Labels are -1 and +1 if binary, 0, 1, 2, ... if multiclass."""

    name: str
    task: Task
    context: Any  # (T, d), dense or SciPy sparse; (T, m, d) for groups of m rows; a tree for
    # sequences; None for experts and portfolios
    outcome: np.ndarray  # (T,); (T, N) for experts, portfolios, rankings and sequences
    train: int | None = None  # the number of first rows that are the original training file
    truth: Any = None  # the parameters of a generated stream
    classes: int = 0  # the number of classes; 0 if outcomes are no classes
    table: Table | None = None  # the way from the file to these rows; None if there are no
    # features, or a round has several rows

    def __len__(self) -> int:
        return len(self.outcome)

    @property
    def width(self) -> int:
        """The number of features, or of experts."""
        return (self.outcome if self.context is None else self.parts[0]).shape[-1]

    @property
    def parts(self) -> list[Any]:
        """The arrays of the context; that of the features is the first one."""
        return jax.tree.leaves(self.context)

    def row(self, dtype: Any) -> Any:
        """The shapes of one context, with features of this dtype."""
        kind = lambda leaf: dtype if leaf.dtype.kind in "fb" else leaf.dtype
        one = lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], kind(leaf))
        return jax.tree.map(one, self.context)

    @property
    def is_sparse(self) -> bool:
        return scipy.sparse.issparse(self.context)

    def shuffled(self, seed: int) -> "Dataset":
        """The rows in an order drawn with `seed`."""
        order = np.random.default_rng(seed).permutation(len(self))
        return dataclasses.replace(self.rows(order), train=None)

    def rows(self, index: Any) -> "Dataset":
        context = jax.tree.map(lambda leaf: leaf[index], self.context)
        return dataclasses.replace(self, context=context, outcome=self.outcome[index])

    def rounds(self, dtype: Any = np.float32, dense: bool = True) -> Rounds:
        """The rows as rounds. `dense=False` keeps sparse rows sparse, for `olx.run`."""
        outcome = self.outcome if self.task.whole else self.outcome.astype(dtype)
        if self.context is None:
            return Rounds(None, outcome)
        if not self.is_sparse:
            whole = self.task.gather is not None  # lengths of sequences stay integers
            cast = lambda leaf: leaf if whole and leaf.dtype.kind in "iu" else leaf.astype(dtype)
            return Rounds(jax.tree.map(cast, self.context), outcome)
        rows = self.context.astype(dtype)
        return Rounds(rows.toarray() if dense else sparse_rows(rows), outcome)


def prepare(
    place: str,
    rows: Rows,
    reading: Reading,
    *,
    task: Task | None,
    binarize: float | str | bool | Sequence[float | str] | None,
    scale: str,
    bias: bool | None,
    center_target: bool,
    expert_loss: str,
) -> tuple[Task, Any, np.ndarray, Table | None]:
    """The task, the context and the outcome of the rows of a file, and the way from there to here.

    bias: None appends a constant feature where that can change a prediction.
    """
    x, y = rows.x, None if rows.y is None else np.asarray(rows.y)
    if rows.columns is None:  # those of a table are left out before words become features
        x = all_but(place, x, reading.without)
    finite(place, "feature", rows.x)
    bare = [each.name for each in TASKS.values() if each.decision.lift is None]
    if y is None and (task is None or task.name not in bare):
        raise ValueError(f"{place} holds no labels; it can only be of task {' or '.join(bare)}.")
    if y is not None and y.dtype.kind == "f":
        finite(place, "label", y)
    if y is not None and y.ndim == 2 and not (task and task.several):
        several = [each.name for each in TASKS.values() if each.several]
        raise ValueError(
            f"{place} holds {y.shape[1]} labels per row; that is task = {' or '.join(several)}."
        )
    given = y
    if binarize is not None:
        if y is None:
            raise ValueError(f"{place} holds no labels to binarize.")
        task, y = BINARY, _against_the_rest(place, y, binarize)
    task = task or _guess(place, np.asarray(y), bare)
    outcome = task.read(place, x, y, expert_loss)
    if task.decision.lift is None:
        if bias:
            raise ValueError(f"{place}: {task.name} data have no features; leave out bias.")
        return task, None, outcome, None
    meaning = labels_of(task, given, binarize, rows.target)
    if center_target:
        mean, spread = float(outcome.mean()), float(outcome.std() or 1.0)
        outcome = (outcome - mean) / spread
        meaning = dataclasses.replace(meaning, mean=mean, spread=spread)
    x = x.astype(float)
    table = Table(
        task.name,
        rows.columns,
        rows.x.shape[1],
        () if rows.columns is not None else tuple(int(each) for each in reading.without),
        fit_scale(x, scale),
        task.intercept if bias is None else bias,
        meaning,
        reading.encoding,
    )
    x = with_bias(table.scale.apply(x), table.bias)
    if task.gather is None:
        return task, x, outcome, table
    return task, *task.gather(place, x, outcome, rows.group), None


def _guess(place: str, y: np.ndarray, bare: list[str]) -> Task:
    """The task of a file that names none: binary, if there are two labels."""
    count = len(np.unique(y))
    if count != 2:
        others = [name for name in TASKS if name not in (BINARY.name, *bare)]
        raise ValueError(
            f"{place} holds {count} different labels; say what they are: task = "
            f"{' or '.join(others)}, or binarize = one of them."
        )
    return BINARY


def classes_in(task: Task, outcome: np.ndarray) -> int:
    """The number of classes 0, 1, 2, ... among the outcomes; 0 if they are no classes."""
    return int(outcome.max()) + 1 if task.whole else 0


def _against_the_rest(place: str, y: np.ndarray, chosen: Any) -> np.ndarray:
    chosen = chosen if isinstance(chosen, list | tuple) else [chosen]
    there = np.unique(y).tolist()
    for label in chosen:
        if label not in there:
            raise ValueError(
                f"{place} holds no label {label} to binarize by; it holds {few(there)}."
            )
    return np.where(np.isin(y, chosen), 1.0, -1.0)
