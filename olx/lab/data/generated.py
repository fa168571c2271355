"""Streams that are generated: each seed is another one of the same kind."""

import difflib
import inspect
from typing import Any

import jax
import numpy as np

from olx import streams
from olx.lab.data.dataset import Dataset


def generated(name: str, arguments: dict[str, Any], seed: int) -> Dataset:
    """`stream:<name>`, a generator of `olx.streams`, as a data set."""
    make = generators().get(name.partition(":")[2])
    if make is None:
        near = difflib.get_close_matches(name, [f"stream:{n}" for n in generators()], 1, 0.5)
        hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(generators())}."
        raise ValueError(f"there is no {name}{hint}")
    parameters = inspect.signature(make).parameters
    legal = [word for word in parameters if word != "key"]
    for word in arguments:
        if word not in legal:
            near = difflib.get_close_matches(word, legal, 1, 0.5)
            hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(legal)}."
            raise ValueError(f"{name} has no argument {word!r}; {hint}")
    try:
        key = {"key": jax.random.key(seed)} if "key" in parameters else {}
        rounds, truth = make(**key, **arguments)
    except TypeError as error:
        raise ValueError(f"{name}: {error}; it takes {', '.join(legal)}.") from error
    outcome = np.asarray(rounds.outcome)
    truth = jax.tree.map(np.asarray, truth)
    if rounds.context is None:
        return Dataset(name, "experts", None, outcome, truth=truth)
    labels = set(np.unique(outcome).tolist()) <= {-1.0, 1.0}
    context = np.asarray(rounds.context)
    return Dataset(name, "binary" if labels else "regression", context, outcome, truth=truth)


def generators() -> dict[str, Any]:
    """The functions that return a `Stream`."""
    functions = {name: getattr(streams, name) for name in dir(streams)}
    return {
        name: function
        for name, function in functions.items()
        if inspect.isfunction(function)
        and inspect.signature(function).return_annotation is streams.Stream
    }
