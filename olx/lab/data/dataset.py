"""A data set as a stream: its task, and its preparation before the first round.

Each of these choices changes published numbers, so all are explicit: which label counts as +1, how
features are scaled, whether there is a bias, and the order of the rows.
"""

import dataclasses
import hashlib
from typing import Any

import jax
import numpy as np
import scipy.sparse
from jax.typing import DTypeLike
from jaxtyping import PyTree

from olx.core import Rounds
from olx.lab.data.column_notes import Note
from olx.lab.data.files import Reading, Rows, other_columns
from olx.lab.data.table import (
    Binarize,
    Labels,
    Table,
    chosen_labels,
    fit_labels,
    with_bias,
)
from olx.lab.tasks import outcomes
from olx.lab.tasks.task import BINARY, TASKS, Task
from olx.streams.scales import fit_scale
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
    truth: PyTree = None  # the parameters of a generated stream
    classes: int = 0  # the number of classes; 0 if outcomes are no classes
    table: Table | None = None  # the way from the file to these rows; None if there are no
    # features, or a round has several rows
    notes: tuple[Note, ...] = ()  # how the columns of a table were read

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

    def row(self, dtype: DTypeLike) -> PyTree:
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

    def rows(self, index: slice | np.ndarray) -> "Dataset":
        context = jax.tree.map(lambda leaf: leaf[index], self.context)
        return dataclasses.replace(self, context=context, outcome=self.outcome[index])

    def rounds(
        self, dtype: DTypeLike = np.float32, dense: bool = True, weighted: bool = True
    ) -> Rounds:
        """The rows as rounds, with the weights of their classes if `weighted`.

        dense: False keeps sparse rows sparse, for `olx.run`.
        """
        known = self.table.labels if self.table is not None and weighted else Labels()
        weight = known.row_weights(self.outcome)
        rounds = self._unweighted(dtype, dense)
        return rounds if weight is None else rounds._replace(weight=weight.astype(dtype))

    def _unweighted(self, dtype: DTypeLike, dense: bool) -> Rounds:
        outcome = self.outcome if self.task.whole else self.outcome.astype(dtype)
        if self.context is None:
            return Rounds(None, outcome)
        if not self.is_sparse:
            whole = self.task.gather is not None  # lengths of sequences stay integers
            cast = lambda leaf: leaf if whole and leaf.dtype.kind in "iu" else leaf.astype(dtype)
            return Rounds(jax.tree.map(cast, self.context), outcome)
        rows = self.context.astype(dtype)
        return Rounds(rows.toarray() if dense else sparse_rows(rows), outcome)


def digest(data: Dataset) -> dict[str, str | int]:
    """The number of rows, and the SHA-256 of the task and of all numbers, to detect changes."""
    x = data.context
    parts = (x.data, x.indices, x.indptr) if data.is_sparse else data.parts
    seen = hashlib.sha256(f"{data.task.name} {data.width} {data.train}".encode())
    for part in (*parts, data.outcome):
        seen.update(f"{part.dtype} {part.shape}".encode())
        seen.update(np.ascontiguousarray(part).data)
    return {"rows": len(data), "sha256": seen.hexdigest()}


def table_of(data: Dataset) -> Table | None:
    """The way to the rows of a data set, also of a generated one; None if it has no rows."""
    if data.table is not None or data.context is None or data.task.gather is not None:
        return data.table
    signs = data.task.read is outcomes.signs
    classes = (-1, 1) if signs else tuple(range(data.classes))
    return Table(data.task.name, None, data.width, labels=Labels("", classes, signs))


def classes_in(task: Task, outcome: np.ndarray) -> int:
    """The number of classes 0, 1, 2, ... among the outcomes; 0 if they are no classes."""
    return int(outcome.max()) + 1 if task.whole else 0


def prepare(
    name: str,
    place: str,
    rows: Rows,
    reading: Reading,
    *,
    task: Task | None,
    binarize: Binarize,
    scale: str,
    bias: bool | None,
    center_target: bool,
    expert_loss: str,
) -> Dataset:
    """The data set of the rows of a file. `place` is what messages call the file.

    bias: None appends a constant feature where that can change a prediction.
    """
    x, y = rows.x, None if rows.y is None else np.asarray(rows.y)
    if rows.columns is None:  # those of a table are left out before words become features
        x = other_columns(place, x, reading.without)
    outcomes.finite(place, "feature", rows.x)
    bare = [each.name for each in TASKS.values() if each.decision.lift is None]
    if y is None and (task is None or task.name not in bare):
        raise ValueError(f"{place} holds no labels; it can only be of task {' or '.join(bare)}.")
    if y is not None and y.dtype.kind == "f":
        outcomes.finite(place, "label", y)
    if y is not None and y.ndim == 2 and not (task and task.several):
        several = [each.name for each in TASKS.values() if each.several]
        raise ValueError(
            f"{place} holds {y.shape[1]} labels per row; that is task = {' or '.join(several)}."
        )
    if binarize is not None:
        if y is None:
            raise ValueError(f"{place} holds no labels to binarize.")
        task, y = BINARY, _against_the_rest(place, y, binarize)
    task = task or _guess(place, np.asarray(y), bare)
    outcome = task.read(place, x, y, expert_loss)
    if task.decision.lift is None:
        if bias:
            raise ValueError(f"{place}: {task.name} data have no features; leave out bias.")
        return Dataset(name, task, None, outcome, rows.train, classes=classes_in(task, outcome))
    labels = fit_labels(task, rows, binarize)
    if center_target:
        mean, spread = float(outcome.mean()), float(outcome.std() or 1.0)
        outcome = (outcome - mean) / spread
        labels = dataclasses.replace(labels, mean=mean, spread=spread)
    x = x.astype(float, copy=False)
    table = Table(
        task.name,
        rows.columns,
        rows.x.shape[1],
        () if rows.columns is not None else tuple(int(each) for each in reading.without),
        fit_scale(x, scale),
        task.intercept if bias is None else bias,
        labels,
        reading.encoding,
        rows.first,
        rows.id,
    )
    notes = rows.notes
    if rows.columns is not None and scale == "none":
        said = rows.columns.uneven_spreads(x)
        notes += (Note("scale", f'none; {said}: give scale = "standard"'),) if said else ()
    x = with_bias(table.scale.apply(x), table.bias)
    if task.gather is not None:
        if rows.group is None and rows.columns is not None:
            raise ValueError(
                f"{place} does not say which rows belong together; give group = the column that "
                "does, such as that of a query or a sequence."
            )
        (x, outcome), table = task.gather(place, x, outcome, rows.group), None
    train = rows.train if len(outcome) == rows.x.shape[0] else None  # it counts rows, not groups
    classes = classes_in(task, outcome)
    return Dataset(name, task, x, outcome, train, None, classes, table, notes)


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


def _against_the_rest(place: str, y: np.ndarray, binarize: Binarize) -> np.ndarray:
    chosen = chosen_labels(binarize)
    there = np.unique(y).tolist()
    for label in chosen:
        if label not in there:
            raise ValueError(
                f"{place} holds no label {label} to binarize by; it holds {outcomes.few(there)}."
            )
    return np.where(np.isin(y, chosen), 1.0, -1.0)
