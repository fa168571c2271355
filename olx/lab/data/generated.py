"""Generated streams as data sets; each seed gives another stream."""

from typing import Any

import jax
import numpy as np

from olx._refusal import own_name
from olx.core import Rounds
from olx.lab.config import nearest
from olx.lab.data.dataset import Dataset, classes_in
from olx.lab.data.table import Table
from olx.lab.names import factories, find, make, parameters
from olx.lab.tasks.task import TASKS
from olx.streams import Stream
from olx.streams.checks import check_rounds


def generated(name: str, arguments: dict[str, Any], seed: int) -> Dataset:
    """The data set `stream:<name>`, from a generator of `olx.streams` or outside the library."""
    word = name.removeprefix("stream:")
    if ":" not in word and name not in generators():
        raise ValueError(f"there is no {name}; {nearest(name, list(generators()))}")
    if "key" in arguments:
        raise ValueError(f"{name}: the key is drawn from the seed; leave out key.")
    known = parameters(find(name, word, Stream))
    key = {"key": seed} if "key" in known else {}
    made = make(name, {"name": word, **key, **arguments}, Stream)
    return from_stream(name, jax.tree.map(np.asarray, made))


def from_stream(name: str, stream: Stream) -> Dataset:
    """A stream of NumPy arrays as a data set; its task is the one that its rounds look like."""
    rounds, truth = stream
    _check(name, rounds)
    task = next(task for task in TASKS.values() if task.matches(rounds))
    classes = classes_in(task, rounds.outcome)
    table = None if rounds.context is None else Table(task.name, None, rounds.context.shape[1])
    return Dataset(
        name, task, rounds.context, rounds.outcome, truth=truth, classes=classes, table=table
    )


def _check(name: str, rounds: Rounds) -> None:
    """Refuse rounds of outside generators that are not shaped like a data set."""
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


def generators() -> dict[str, Any]:
    """The functions of `olx.streams` that return a `Stream`, by the name of the data."""
    return {f"stream:{name.rpartition('.')[2]}": thing for name, thing in factories(Stream)}
