"""Rows that Python code gives, in place of a file.

A loader of yours, which a config names `mypackage.module:load`, returns one of these; so do the
arguments of `olx.lab.compare`:

(X, y)      features, an array or a SciPy sparse matrix of one row per round, and labels; prepared
            as the rows of a file are. (X, None) for rows without labels, such as prices.
a frame     of pandas, polars or pyarrow, with a column of labels
Rounds      played as they are; also an `olx.streams.Stream`

A generator, `stream:...`, draws its rounds with the seed: each seed gives another stream.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import scipy.sparse

from olx._refusal import in_words, own_name
from olx.core import Rounds
from olx.lab import user_factories
from olx.lab.config import nearest
from olx.lab.data.csv import Frame
from olx.lab.data.dataset import Dataset, classes_in
from olx.lab.data.files import Matrix, Reading, Rows, frame_rows
from olx.lab.data.table import Table
from olx.lab.names import factories, find, make, parameters
from olx.lab.tasks.task import TASKS
from olx.streams import Stream
from olx.streams.checks import check_rounds

LEGAL = "(X, y), a frame of pandas, polars or pyarrow, Rounds, or a Stream"


def call_loader(name: str, arguments: dict[str, Any]) -> object:
    """What the loader `name` returns."""
    loader = user_factories.find(name, name)
    if not callable(loader):
        return loader
    known = parameters(loader)
    if "key" in known:
        raise ValueError(f"{name} draws with a key: name it stream:{name}, and it gets one.")
    for word in arguments:
        starred = any(each.kind is each.VAR_KEYWORD for each in known.values())
        if word not in known and not starred:
            near = nearest(word, list(known)) if known else "it takes none."
            raise ValueError(f"{name} has no argument {word}; {near}")
    for word, each in known.items():
        must = each.default is each.empty and each.kind is not each.VAR_KEYWORD
        if must and word not in arguments:
            raise ValueError(f"{name} needs the argument {word}; give it in arguments.")
    try:
        made = loader(**arguments)
    except Exception as error:
        said = " ".join(in_words(error).split()).rstrip(".")
        raise ValueError(f"{name} failed: {said}.") from error
    if made is None:
        raise ValueError(f"{name} returned nothing; it must return {LEGAL}.")
    return made


def given_rows(name: str, thing: object, reading: Reading) -> Rows:
    """(X, y) or a frame as features and labels."""
    if not isinstance(thing, tuple) or len(thing) != 2:
        if not hasattr(thing, "columns") or not hasattr(thing, "__getitem__"):
            raise ValueError(f"{name}: the rows must be {LEGAL}, got a {type(thing).__name__}.")
        return frame_rows(name, Frame(thing, True, {}), reading)
    for word, column in {"target": reading.target, "group": reading.group}.items():
        if column is not None:
            raise ValueError(f"{name}: {word} is for a frame; the labels are y of (X, y).")
    x: Matrix = thing[0]
    x = scipy.sparse.csr_matrix(x) if scipy.sparse.issparse(x) else np.asarray(x)
    labels = None if thing[1] is None else np.asarray(thing[1])
    if x.ndim != 2 or x.dtype.kind not in "fiub":
        raise ValueError(
            f"{name}: X must hold numbers, one row per round; got shape {x.shape} of {x.dtype}."
        )
    if labels is not None and (labels.ndim not in (1, 2) or len(labels) != x.shape[0]):
        raise ValueError(
            f"{name}: y must have one label per row; X has {x.shape[0]} rows, y has shape "
            f"{labels.shape}."
        )
    return Rows(x, labels)


def generators() -> dict[str, Callable[..., Stream]]:
    """The functions of `olx.streams` that return a `Stream`, by the name of the data."""
    return {f"stream:{name.rpartition('.')[2]}": thing for name, thing in factories(Stream)}


def generate(name: str, arguments: dict[str, Any], seed: int) -> Dataset:
    """The data set `stream:<name>`, from a generator of `olx.streams` or outside the library."""
    word = name.removeprefix("stream:")
    if ":" not in word and name not in generators():
        raise ValueError(f"there is no {name}; {nearest(name, list(generators()))}")
    if "key" in arguments:
        raise ValueError(f"{name}: the key is drawn from the seed; leave out key.")
    key = {"key": seed} if "key" in parameters(find(name, word, Stream)) else {}
    return stream_dataset(name, make(name, {"name": word, **key, **arguments}, Stream))


def stream_dataset(name: str, given: Rounds | Stream) -> Dataset:
    """Rounds as a data set; its task is the one that they look like."""
    stream = Stream(given, None) if isinstance(given, Rounds) else given
    rounds, truth = jax.tree.map(np.asarray, stream)
    try:
        with own_name(name):
            check_rounds(rounds)
    except TypeError as error:
        raise ValueError(str(error)) from error
    if rounds.weight is not None:
        raise ValueError(f"{name}: rounds of a data set weigh 1 each; leave out their weights.")
    for what, axes in {"context": 2, "outcome": 1 if rounds.context is not None else 2}.items():
        array = getattr(rounds, what)
        if array is not None and getattr(array, "ndim", None) != axes:
            raise ValueError(
                f"{name}: `rounds.{what}` must be an array of {axes} axes, got "
                f"{type(array).__name__} of shape {np.shape(array)}."
            )
    task = next(task for task in TASKS.values() if task.matches(rounds))
    classes = classes_in(task, rounds.outcome)
    table = None if rounds.context is None else Table(task.name, None, rounds.context.shape[1])
    return Dataset(
        name, task, rounds.context, rounds.outcome, truth=truth, classes=classes, table=table
    )
