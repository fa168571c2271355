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
from olx.lab.data.scaling import scaled
from olx.lab.outcomes import few, finite
from olx.lab.tasks import BINARY, TASKS, Task
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
    x: Any,
    y: np.ndarray | None,
    *,
    task: Task | None,
    binarize: float | str | Sequence[float | str] | None,
    scale: str,
    bias: bool,
    center_target: bool,
    expert_loss: str,
    group: np.ndarray | None = None,
) -> tuple[Task, Any, np.ndarray]:
    """The task, the context and the outcome of a file's features `x` and labels `y`."""
    finite(place, "feature", x)
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
    if binarize is not None:
        if y is None:
            raise ValueError(f"{place} holds no labels to binarize.")
        task, y = BINARY, _against_the_rest(place, y, binarize)
    if task is None:
        count = len(np.unique(np.asarray(y)))
        if count != 2:
            others = [name for name in TASKS if name not in (BINARY.name, *bare)]
            raise ValueError(
                f"{place} holds {count} different labels; say what they are: task = "
                f"{' or '.join(others)}, or binarize = one of them."
            )
        task = BINARY
    outcome = task.read(place, x, y, expert_loss)
    if task.decision.lift is None:
        return task, None, outcome
    if center_target:
        outcome = (outcome - outcome.mean()) / (outcome.std() or 1.0)
    x = scaled(x.astype(float), scale)
    if bias:
        one = np.ones((x.shape[0], 1))
        sparse = scipy.sparse.issparse(x)
        x = scipy.sparse.hstack([x, one], "csr") if sparse else np.hstack([x, one])
    if task.gather is not None:
        x, outcome = task.gather(place, x, outcome, group)
    return task, x, outcome


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
