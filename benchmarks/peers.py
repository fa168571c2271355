"""The other libraries, each by its fastest interface: one pass over the examples in order.

A library is imported only when its contestant is prepared. If it is not installed, the report says
so and the comparison continues.
"""

import functools
import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.data import Examples
from benchmarks.harness import Contestant

VOWPAL_VALUES = 5_000_000  # the most values written as text for the cache
RIVER_VALUES = 20_000  # river takes microseconds per value
ETA = 0.5


def sklearn(name: str, examples: Examples, **options: Any) -> Contestant:
    """`fit` of a linear classifier of scikit-learn, without intercept."""

    def prepare() -> Callable[[], Any]:
        import sklearn.linear_model

        make = getattr(sklearn.linear_model, name, None)
        if make is None:
            raise ImportError(f"this version of scikit-learn has no {name}")
        model = make(max_iter=1, tol=None, shuffle=False, fit_intercept=False, **options)
        return lambda: model.fit(examples.rows, examples.labels)

    return Contestant(f"scikit-learn {name}", prepare, examples.count)


def sklearn_sgd(loss: str, examples: Examples, eta: float = ETA) -> Contestant:
    """`SGDClassifier` with a constant step and no penalty, its cheapest setting."""
    options = {"loss": loss, "penalty": None, "learning_rate": "constant", "eta0": eta}
    return sklearn("SGDClassifier", examples, **options)


class VowpalCache:
    """The binary cache file of a data set, written at the first use."""

    def __init__(self, folder: str, examples: Examples, copies: int = 1):
        """copies: how many weights Vowpal Wabbit has room for per column."""
        self._folder, self._copies = folder, copies
        values = examples.rows.nnz if hasattr(examples.rows, "nnz") else examples.rows.size
        share = min(1.0, VOWPAL_VALUES / values)
        self.examples = examples.first(max(1, int(share * examples.count)))

    @functools.cached_property
    def arguments(self) -> list[str]:
        path = os.path.join(self._folder, f"{id(self)}.txt")
        with open(path, "w") as file:
            for label, row in zip(self.examples.labels, _pairs(self.examples), strict=True):
                file.write(f"{label:.0f} | " + " ".join(f"{j}:{x:.6g}" for j, x in row) + "\n")
        bits = str(max(6, (self.examples.width * self._copies).bit_length()))
        arguments = ["-d", path, "--cache_file", f"{path}.cache", "-b", bits, "--noconstant"]
        _vowpal(arguments, self.examples.count)
        os.truncate(path, 0)  # from now on rows come from the cache
        return arguments


def vowpal(cache: VowpalCache, *options: str) -> Contestant:
    """Vowpal Wabbit on its binary cache; its start, some milliseconds, is included."""

    def prepare() -> Callable[[], Any]:
        arguments = [*cache.arguments, *options]
        return lambda: _vowpal(arguments, cache.examples.count)

    return Contestant(f"Vowpal Wabbit {options[0]}", prepare, cache.examples.count)


def vowpal_error(cache: VowpalCache, *options: str) -> float:
    """The share of rounds in which the score of Vowpal Wabbit has the wrong sign."""
    path = f"{cache.arguments[1]}.scores"
    _vowpal([*cache.arguments, *options, "-p", path], cache.examples.count)
    return float(np.mean(np.loadtxt(path) * cache.examples.labels <= 0))


def river(name: str, examples: Examples, make: Callable[[Any], Any]) -> Contestant:
    """A river model, predicting and learning one dictionary at a time.

    make: takes the module `river` and gives a new model.
    """
    count = min(examples.count, max(200, RIVER_VALUES // examples.width))
    few = examples.first(count)

    def prepare() -> Callable[[], Any]:
        import river
        import river.linear_model
        import river.optim

        rows, labels = [dict(row) for row in _pairs(few)], (few.labels > 0).tolist()

        def call() -> None:
            model = make(river)
            for row, label in zip(rows, labels, strict=True):
                model.predict_one(row)
                model.learn_one(row, label)

        return call

    return Contestant(f"river {name}", prepare, count)


def river_logistic(step: str, loss: str, examples: Examples) -> Contestant:
    """river's `LogisticRegression` with an optimizer and a loss of `river.optim`."""

    def make(river: Any) -> Any:
        optimizer, slope = getattr(river.optim, step)(ETA), getattr(river.optim.losses, loss)()
        return river.linear_model.LogisticRegression(optimizer, loss=slope, intercept_lr=0.0)

    return river(f"LogisticRegression({step}, {loss})", examples, make)


def numba(
    loop: str, examples: Examples, etas: Sequence[float] = (ETA,), module: str = "loops"
) -> Contestant:
    """A loop of a module of `benchmarks`, called once per step size."""
    rows, labels = examples
    scores = np.empty(examples.count, np.float32)

    def prepare() -> Callable[[], Any]:
        run = getattr(importlib.import_module(f"benchmarks.{module}"), loop)
        if not isinstance(rows, np.ndarray):
            run = functools.partial(run, rows.indptr, rows.indices, rows.data, examples.width)
        else:
            run = functools.partial(run, rows)

        def call() -> np.ndarray:
            for eta in etas:
                run(labels, np.float32(eta), scores)
            return scores

        return call

    return Contestant("numba loop", prepare, examples.count * len(etas))


def _vowpal(arguments: list[str], count: int) -> None:
    import vowpalwabbit

    workspace = vowpalwabbit.Workspace(arg_list=["--quiet", "--no_stdin", *arguments])
    seen = workspace.get_weighted_examples()
    workspace.finish()
    if seen != count:
        raise RuntimeError(f"Vowpal Wabbit saw {seen:.0f} examples of {count}")


def _pairs(examples: Examples):
    """The rows as lists of pairs (column, value)."""
    rows = examples.rows
    if isinstance(rows, np.ndarray):
        yield from (list(enumerate(row)) for row in rows.tolist())
        return
    for low, high in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        columns, values = rows.indices[low:high], rows.data[low:high]
        yield list(zip(columns.tolist(), values.tolist(), strict=True))
