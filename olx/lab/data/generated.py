"""Streams that are generated: each seed is another one of the same kind."""

import inspect
from typing import Any

import jax
import numpy as np

from olx import streams
from olx.lab.data.dataset import Dataset
from olx.lab.refusals import nearest
from olx.lab.tasks import TASKS


def generated(name: str, arguments: dict[str, Any], seed: int) -> Dataset:
    """`stream:<name>`, a generator of `olx.streams`, as a data set."""
    make = generators().get(name.partition(":")[2])
    if make is None:
        raise ValueError(
            f"there is no {name}; {nearest(name, [f'stream:{word}' for word in generators()])}"
        )
    parameters = inspect.signature(make).parameters
    legal = [word for word in parameters if word != "key"]
    for word in arguments:
        if word not in legal:
            raise ValueError(f"{name} has no argument {word!r}; {nearest(word, legal)}")
    try:
        key = {"key": jax.random.key(seed)} if "key" in parameters else {}
        rounds, truth = jax.tree.map(np.asarray, make(**key, **arguments))
    except TypeError as error:
        raise ValueError(f"{name}: {error}; it takes {', '.join(legal)}.") from error
    task = next(task for task in TASKS.values() if task.matches(rounds))
    return Dataset(name, task, rounds.context, rounds.outcome, truth=truth)


def generators() -> dict[str, Any]:
    """The functions that return a `Stream`."""
    functions = {name: getattr(streams, name) for name in dir(streams)}
    return {
        name: function
        for name, function in functions.items()
        if inspect.isfunction(function)
        and inspect.signature(function).return_annotation is streams.Stream
    }
