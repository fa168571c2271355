"""Streams from single examples and from data loaders."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import numpy as np

from olx import _check as check
from olx.core import Rounds

Example = tuple[Any, Any] | tuple[Any, Any, float]


def from_examples(examples: Iterable[Example], *, size: int = 1024) -> Iterator[Rounds]:
    """Make a stream from pairs of a row and an outcome, such as those of a generator.

    examples: pairs (row, outcome), or triples with the weight of the round; read once.
    size: the number of examples per piece of the stream.

    >>> import jax.numpy as jnp, olx
    >>> pairs = (([1.0, x], 2 * x) for x in range(5))
    >>> [rounds.context.shape for rounds in from_examples(pairs, size=3)]
    [(3, 2), (2, 2)]
    """
    for rows, outcome, weight in batches("from_examples", examples, size):
        yield Rounds(_stacked("from_examples", "row", rows), outcome, weight)


def from_loader(loader: Iterable[Any], *, epochs: int = 1) -> Iterator[Rounds]:
    """Make a stream from batches of a data loader: of PyTorch, TensorFlow, Grain, or a list.

    loader: an iterable of batches (x, y), or (x, y, weight); x may be a tree of arrays. Tensors
        become NumPy arrays, on the host.
    epochs: how often the loader is read.

    >>> import numpy as np, olx
    >>> batches = [(np.ones((4, 2)), np.zeros(4)), (np.ones((3, 2)), np.zeros(3))]
    >>> [rounds.context.shape for rounds in from_loader(batches, epochs=2)]
    [(4, 2), (3, 2), (4, 2), (3, 2)]
    """
    owner = "from_loader"
    check.count(owner, "epochs", epochs)
    check.iterable(owner, "loader", loader)
    if epochs > 1 and isinstance(loader, Iterator):
        raise TypeError(
            f"{owner}: `loader` is a {type(loader).__name__}, which can be read once; give the "
            "loader itself, or epochs=1."
        )
    for epoch in range(epochs):
        number = -1
        for number, batch in enumerate(loader):
            yield _rounds(owner, number, batch)
        if number < 0:
            raise ValueError(f"{owner}: the loader gives no batch in epoch {epoch}.")


def batches(
    owner: str, examples: Iterable[Example], size: int
) -> Iterator[tuple[list[Any], np.ndarray, Any]]:
    """The rows, outcomes and weights of `size` examples at a time."""
    check.count(owner, "size", size)
    check.iterable(owner, "examples", examples)
    source, start = iter(examples), 0
    while part := list(itertools.islice(source, size)):
        for row, example in enumerate(part, start):
            if not isinstance(example, tuple | list) or len(example) not in (2, 3):
                raise TypeError(
                    f"{owner}: example {row} is {_short(example)}; give pairs (row, outcome), or "
                    "triples with a weight."
                )
            if len(example) != len(part[0]):
                raise TypeError(f"{owner}: example {row} has a weight or not, unlike the first.")
        rows, outcomes, *weights = zip(*part, strict=True)
        weight = _stacked(owner, "weight", weights[0]) if weights else None
        yield list(rows), _stacked(owner, "outcome", outcomes), weight
        start += len(part)


def _rounds(owner: str, number: int, batch: Any) -> Rounds:
    if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
        raise TypeError(
            f"{owner}: batch {number} is {_short(batch)}; give (x, y), as by "
            "`((batch['x'], batch['y']) for batch in loader)`."
        )
    rounds = Rounds(*(jax.tree.map(on_host, part) for part in batch))
    outcome = rounds.outcome
    if isinstance(outcome, np.ndarray) and outcome.ndim == 2 and outcome.shape[1] == 1:
        raise TypeError(
            f"{owner}: the outcomes of batch {number} have shape {outcome.shape}; give one number "
            "per round: y[:, 0]."
        )
    return rounds


def on_host(tensor: Any) -> np.ndarray:
    """A tensor of any library as a NumPy array."""
    for step in ("detach", "cpu"):  # of PyTorch: without its gradient, on the host
        if callable(getattr(tensor, step, None)):
            tensor = getattr(tensor, step)()
    numpy: Callable[[], np.ndarray] | None = getattr(tensor, "numpy", None)
    return np.asarray(numpy() if callable(numpy) else tensor)


def _stacked(owner: str, what: str, values: Iterable[Any]) -> np.ndarray:
    arrays = [on_host(value) for value in values]
    for row, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            raise TypeError(
                f"{owner}: the {what} of example {row} of a piece has shape {array.shape}, that of "
                f"the first {arrays[0].shape}."
            )
    whole = np.stack(arrays)
    if whole.dtype.kind not in "fiub":
        raise TypeError(f"{owner}: the {what}s hold {whole.dtype}; give numbers.")
    single = whole.dtype.kind in "iub" or jax.dtypes.canonicalize_dtype(float) == np.float32
    return whole.astype(np.float32) if what != "outcome" and single else _outcome(whole, single)


def _outcome(whole: np.ndarray, single: bool) -> np.ndarray:
    """Classes stay integers; Python floats get the precision of JAX."""
    return whole.astype(np.float32) if whole.dtype.kind in "fb" and single else whole


def _short(thing: Any) -> str:
    return f"a {type(thing).__name__}" + (f" of {len(thing)}" if hasattr(thing, "__len__") else "")
