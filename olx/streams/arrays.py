"""Your own arrays, examples, loaders and dictionaries as streams; bad data is refused by row.

Features of dictionaries appear and vanish. A feature gets a column when it is first seen, or by a
hash of its name. The number of columns is fixed, since a learner starts with as many weights. A
feature that is not there is 0. `with_intercept` adds a constant feature after the others.

Weinberger, Dasgupta, Langford, Smola and Attenberg, Feature Hashing for Large Scale Multitask
Learning, 2009.
"""

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx import _check as check
from olx._refusal import RefusedType, RefusedValue, public, public_as
from olx.core import Rounds
from olx.streams.checks import refuse_masked
from olx.streams.finite import first_of
from olx.streams.sparse_rows import SparseRows, sparse_rows

Example = tuple[PyTree, PyTree] | tuple[PyTree, PyTree, float]


@public
def from_arrays(
    context: PyTree, outcome: PyTree, weight: PyTree = None, *, labels: bool = False
) -> Rounds:
    """Make a stream from arrays with one row per round.

    context, outcome: arrays, nested lists of numbers, or dictionaries and tuples of these; the
        context may be None. All become floats of one dtype: the widest given, or JAX's default if
        all numbers are integers.
    weight: importance of each round, non-negative; None means 1.
    labels: True if the outcomes are classes 0, 1, 2, ...; they stay integers. Labels of -1 and +1
        become floats, so leave it False for them.

    >>> rounds = from_arrays([[0, 1], [2, 3]], [1, -1])
    >>> rounds.context.tolist(), rounds.outcome.tolist()
    ([[0.0, 1.0], [2.0, 3.0]], [1.0, -1.0])
    """
    check.flag("labels", labels)
    context, outcome = _each(_read, "context", context), _each(_read, "outcome", outcome)
    weight = None if weight is None else _read("weight", weight)
    _check_lengths(Rounds(context, outcome, weight))
    if labels:
        outcome = _each(_classes, "outcome", outcome)
    floats = [leaf.dtype for leaf in jax.tree.leaves((context, outcome, weight)) if _real(leaf)]
    kind = jax.dtypes.canonicalize_dtype(np.result_type(*floats) if floats else float)
    as_floats = lambda name, leaf: _floats(name, leaf, kind)
    context = _each(as_floats, "context", context)
    if not labels:
        outcome = _each(as_floats, "outcome", outcome)
    if weight is not None:
        weight = as_floats("weight", weight)
        if weight.ndim != 1:
            raise RefusedType(f"weight has shape {weight.shape}; give one per round.")
        _refuse("weight", weight, weight < 0, "; weights are non-negative")
    return jax.tree.map(jnp.asarray, Rounds(context, outcome, weight))


@public
def with_intercept(rounds: Rounds) -> Rounds:
    """The rounds with a feature that is always 1 after the others; dense or sparse rows.

    `olx.linear` then plays with an intercept, its last weight. `olx.affine` does the same without a
    change of the rounds.

    >>> import numpy as np, olx
    >>> with_intercept(olx.Rounds(np.array([[5.0, 6.0]]), np.array([1.0]))).context.tolist()
    [[5.0, 6.0, 1.0]]
    """
    check.instance("rounds", rounds, Rounds)
    return rounds._replace(context=rows_with_ones(rounds.context))


def rows_with_ones(rows: Any) -> Any:
    """The rows with a column of ones after the others."""
    if isinstance(rows, SparseRows):
        count, width = rows.shape
        indices, values = (
            np.insert(leaf, rows.pointers[1:], one)
            for leaf, one in ((rows.indices, width), (rows.values, 1))
        )
        return SparseRows(rows.pointers + np.arange(count + 1), indices, values, width + 1)
    if np.ndim(rows) < 2:
        raise RefusedType(
            f"the context must be an array with a row of features per round, got "
            f"{type(rows).__name__}."
        )
    library = np if isinstance(rows, np.ndarray) else jnp
    return library.concatenate([rows, library.ones((*rows.shape[:-1], 1), rows.dtype)], axis=-1)


@public
def from_examples(examples: Iterable[Example], *, size: int = 1024) -> Iterator[Rounds]:
    """Make a stream from pairs of a row and an outcome, such as those of a generator.

    examples: pairs (row, outcome), or triples with the weight of the round; read once.
    size: the number of examples per piece of the stream.

    >>> import jax.numpy as jnp, olx
    >>> pairs = (([1.0, x], 2 * x) for x in range(5))
    >>> [rounds.context.shape for rounds in from_examples(pairs, size=3)]
    [(3, 2), (2, 2)]
    """
    for rows, outcome, weight in _batches(examples, size):
        yield Rounds(_stacked("row", rows), outcome, weight)


@public
def from_loader(loader: Iterable[PyTree], *, epochs: int = 1) -> Iterator[Rounds]:
    """Make a stream from batches of a data loader: of PyTorch, TensorFlow, Grain, or a list.

    loader: an iterable of batches (x, y), or (x, y, weight); x may be a tree of arrays. Tensors
        become NumPy arrays, on the host.
    epochs: how often the loader is read.

    >>> import numpy as np, olx
    >>> batches = [(np.ones((4, 2)), np.zeros(4)), (np.ones((3, 2)), np.zeros(3))]
    >>> [rounds.context.shape for rounds in from_loader(batches, epochs=2)]
    [(4, 2), (3, 2), (4, 2), (3, 2)]
    """
    check.count("epochs", epochs)
    check.iterable("loader", loader)
    if epochs > 1 and isinstance(loader, Iterator):
        raise RefusedType(
            f"`loader` is a {type(loader).__name__}, which can be read once; give the "
            "loader itself, or epochs=1."
        )
    for epoch in range(epochs):
        number = -1
        for number, batch in enumerate(loader):
            yield _batch_rounds(number, batch)
        if number < 0:
            raise RefusedValue(f"the loader gives no batch in epoch {epoch}.")


class Features:
    """The columns of named features; it grows while rows are made.

    width: the number of columns.
    hashed: a column by a hash of the name, with a random sign; names may share one. False gives
        each name its own column, in the order in which they are seen, and refuses too many.

    A number is the value of its feature. A word is a category: `{"city": "Oslo"}` is the feature
    `city=Oslo` of value 1. True and False are 1 and 0.

    >>> features = Features(width=4)
    >>> features.row({"age": 30, "city": "Oslo"}).tolist(), features.row({"city": "Bonn"}).tolist()
    ([30.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0])
    >>> features.names
    ['age', 'city=Oslo', 'city=Bonn']
    >>> Features.from_json(features.to_json()).names == features.names
    True
    """

    @public_as("Features")
    def __init__(self, width: int, hashed: bool = False):
        check.count("width", width)
        self.width, self.hashed = width, hashed
        self._place: dict[str, tuple[int, float]] = {}  # of each name: its column and its sign

    @property
    def names(self) -> list[str]:
        """The names seen so far; without hashing, in the order of their columns."""
        return list(self._place)

    @public_as("Features")
    def row(self, example: Mapping[str, str | float]) -> np.ndarray:
        """The row of one example, for `olx.step` and `olx.predict`."""
        row = np.zeros(self.width, np.float32)
        for column, value in self.entries(example):
            row[column] += value
        return row

    @public_as("Features")
    def entries(self, example: Mapping[str, str | float]) -> Iterator[tuple[int, float]]:
        """The columns and the values of one example."""
        if not isinstance(example, Mapping):
            raise RefusedType(
                f"an example is a dictionary, got a {type(example).__name__}; rows of "
                "numbers go into `olx.streams.from_examples`."
            )
        for name, value in example.items():
            if isinstance(value, str):
                name, value = f"{name}={value}", 1.0
            elif not isinstance(value, Real) or not np.isfinite(float(value)):
                raise RefusedValue(
                    f"the feature {name!r} is {value!r}; give a finite number or a word, "
                    "or leave it out of this example."
                )
            column, sign = self._place.get(name) or self._new(name)
            yield column, sign * float(value)

    def to_json(self) -> str:
        return json.dumps({"width": self.width, "hashed": self.hashed, "names": self.names})

    @staticmethod
    def from_json(text: str) -> "Features":
        """The features that `to_json` wrote."""
        tree = json.loads(text)
        made = Features(tree["width"], tree["hashed"])
        for name in tree["names"]:
            made._new(name)
        return made

    def _new(self, name: str) -> tuple[int, float]:
        if self.hashed:
            seed = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")
            place = (seed >> 1) % self.width, 1.0 if seed & 1 else -1.0
        elif len(self._place) == self.width:
            raise RefusedValue(
                f"{name!r} is one more than the {self.width} columns; give a larger "
                "width, or hashed=True, which lets names share a column."
            )
        else:
            place = len(self._place), 1.0
        self._place[name] = place
        return place

    def __repr__(self) -> str:
        return f"Features(width={self.width}, hashed={self.hashed}, seen={len(self._place)})"


@public
def from_dicts(
    examples: Iterable[Example], features: Features, *, size: int = 1024
) -> Iterator[Rounds]:
    """Make a stream of sparse rows from pairs of a dictionary and an outcome.

    examples: pairs (dictionary, outcome), or triples with the weight of the round; read once.
    features: their columns; start from `jnp.zeros(features.width)`.
    size: the number of examples per piece of the stream. For live data play one round at a time:
        `olx.step(learner, loss, state, features.row(example), outcome)`.

    >>> import jax.numpy as jnp, olx
    >>> clicks = [({"age": 1.0, "city": "Oslo"}, 1.0), ({"city": "Bonn"}, -1.0)] * 20
    >>> features = Features(width=8)
    >>> learner = olx.classification.perceptron()
    >>> rounds = from_dicts(clicks, features)
    >>> int(olx.run(learner, olx.losses.zero_one, rounds, jnp.zeros(8)).total), features.names
    (2, ['age', 'city=Oslo', 'city=Bonn'])
    """
    import scipy.sparse  # loaded when it is needed: `import olx` stays quick

    check.instance("features", features, Features)
    for rows, outcome, weight in _batches(examples, size):
        found = [list(features.entries(row)) for row in rows]
        index = [(i, column) for i, row in enumerate(found) for column, _ in row]
        values = np.array([value for row in found for _, value in row], np.float32)
        place = np.array(index, np.int64).reshape(-1, 2).T
        matrix = scipy.sparse.coo_array((values, tuple(place)), shape=(len(rows), features.width))
        yield Rounds(sparse_rows(matrix), outcome, weight)


def _each(function: Callable[[str, PyTree], np.ndarray], name: str, tree: PyTree) -> PyTree:
    named = lambda path, leaf: function(name + jax.tree_util.keystr(path), leaf)
    return jax.tree_util.tree_map_with_path(named, tree, is_leaf=lambda x: isinstance(x, list))


def _read(name: str, value: PyTree) -> np.ndarray:
    refuse_masked(name, value)
    try:
        array = np.asarray(value)
    except ValueError:
        _refuse_ragged(name, value)
        raise
    if array.ndim == 0:
        raise RefusedType(
            f"{name} is a {type(value).__name__}; give a dense array with one row per round."
        )
    if np.issubdtype(array.dtype, np.integer) or array.dtype == bool or _real(array):
        return array
    entries = np.asarray(value, dtype=object)
    wrong = np.array([not isinstance(entry, Real) for entry in entries.flat], bool)
    _refuse(name, entries, wrong.reshape(entries.shape), "; encode it as a number")
    return entries.astype(float)


def _floats(name: str, array: np.ndarray, kind: np.dtype) -> np.ndarray:
    with np.errstate(over="ignore"):
        cast = array.astype(kind)
    _refuse(name, array, ~np.isfinite(array), "")
    _refuse(name, array, ~np.isfinite(cast), f"; it is too large for {kind}")
    return cast


def _classes(name: str, array: np.ndarray) -> np.ndarray:
    legal = np.isfinite(array) & (array >= 0) & (np.floor(array) == array)
    _refuse(name, array, ~legal, "; classes are whole numbers from 0 on")
    return array.astype(jax.dtypes.canonicalize_dtype(int))


def _refuse(name: str, array: np.ndarray, wrong: np.ndarray, demand: str) -> None:
    if np.any(wrong):
        where, entry = first_of(wrong, array, 0, "row")
        shown = entry if isinstance(entry, Real) else repr(entry)
        raise RefusedValue(f"{name} holds {shown}{where}{demand}.")


def _refuse_ragged(name: str, rows: list) -> None:
    arrays = [np.asarray(row, dtype=object) for row in rows]
    lengths = [row.size if row.ndim else 0 for row in arrays]
    for row, length in enumerate(lengths):
        if length != lengths[0]:
            raise RefusedType(
                f"{name} is ragged: row {row} has {length} entries, row 0 has {lengths[0]}."
            )


def _check_lengths(rounds: Rounds) -> None:
    if not jax.tree.leaves(rounds.outcome):
        raise RefusedType("outcome holds no array.")
    lengths = {
        jax.tree_util.keystr(path).lstrip("."): len(leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(rounds)
    }
    if len(set(lengths.values())) > 1:
        seen = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise RefusedType(f"numbers of rows differ ({seen}).")
    if 0 in lengths.values():
        raise RefusedValue("there are no rows.")


def _real(array: np.ndarray) -> bool:
    return jnp.issubdtype(array.dtype, jnp.floating)


def _batches(
    examples: Iterable[Example], size: int
) -> Iterator[tuple[list[PyTree], np.ndarray, PyTree]]:
    """The rows, outcomes and weights of `size` examples at a time."""
    check.count("size", size)
    check.iterable("examples", examples)
    source, start = iter(examples), 0
    while part := list(itertools.islice(source, size)):
        for row, example in enumerate(part, start):
            if not isinstance(example, tuple | list) or len(example) not in (2, 3):
                raise RefusedType(
                    f"example {row} is {_kind_and_length(example)}; give pairs (row, outcome), or "
                    "triples with a weight."
                )
            if len(example) != len(part[0]):
                raise RefusedType(f"example {row} has a weight or not, unlike the first.")
        rows, outcomes, *weights = zip(*part, strict=True)
        weight = _stacked("weight", weights[0]) if weights else None
        yield list(rows), _stacked("outcome", outcomes), weight
        start += len(part)


def _batch_rounds(number: int, batch: PyTree) -> Rounds:
    if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
        raise RefusedType(
            f"batch {number} is {_kind_and_length(batch)}; give (x, y), as by "
            "`((batch['x'], batch['y']) for batch in loader)`."
        )
    rounds = Rounds(*(jax.tree.map(_numpy_array, part) for part in batch))
    outcome = rounds.outcome
    if isinstance(outcome, np.ndarray) and outcome.ndim == 2 and outcome.shape[1] == 1:
        raise RefusedType(
            f"the outcomes of batch {number} have shape {outcome.shape}; give one number "
            "per round: y[:, 0]."
        )
    return rounds


def _numpy_array(tensor: Any) -> np.ndarray:
    """A tensor of any library as a NumPy array."""
    for step in ("detach", "cpu"):  # of PyTorch: without its gradient, on the host
        if callable(getattr(tensor, step, None)):
            tensor = getattr(tensor, step)()
    numpy: Callable[[], np.ndarray] | None = getattr(tensor, "numpy", None)
    return np.asarray(numpy() if callable(numpy) else tensor)


def _stacked(what: str, values: Iterable[PyTree]) -> np.ndarray:
    arrays = [_numpy_array(value) for value in values]
    for row, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            raise RefusedType(
                f"the {what} of example {row} of a piece has shape {array.shape}, that of "
                f"the first {arrays[0].shape}."
            )
    whole = np.stack(arrays)
    if whole.dtype.kind not in "fiub":
        raise RefusedType(f"the {what}s hold {whole.dtype}; give numbers.")
    single = whole.dtype.kind in "iub" or jax.dtypes.canonicalize_dtype(float) == np.float32
    return whole.astype(np.float32) if what != "outcome" and single else _outcome(whole, single)


def _outcome(whole: np.ndarray, single: bool) -> np.ndarray:
    """Classes stay integers; Python floats get the precision of JAX."""
    return whole.astype(np.float32) if whole.dtype.kind in "fb" and single else whole


def _kind_and_length(thing: PyTree) -> str:
    return f"a {type(thing).__name__}" + (f" of {len(thing)}" if hasattr(thing, "__len__") else "")
