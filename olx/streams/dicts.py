"""Examples as dictionaries, in which features appear and vanish.

A feature gets a column when it is first seen, or by a hash of its name. The number of columns is
fixed, since a learner starts with as many weights. A feature that is not there is 0.

Weinberger, Dasgupta, Langford, Smola and Attenberg, Feature Hashing for Large Scale Multitask
Learning, 2009.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from numbers import Real
from typing import Any

import numpy as np

from olx import _check as check
from olx.core import Rounds
from olx.streams.examples import Example, batches
from olx.streams.sparse_rows import sparse_rows


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

    def __init__(self, width: int, hashed: bool = False):
        check.count("Features", "width", width)
        self.width, self.hashed = width, hashed
        self._place: dict[str, tuple[int, float]] = {}  # of each name: its column and its sign

    @property
    def names(self) -> list[str]:
        """The names seen so far; without hashing, in the order of their columns."""
        return list(self._place)

    def row(self, example: Mapping[str, Any]) -> np.ndarray:
        """The row of one example, for `olx.step` and `olx.predict`."""
        row = np.zeros(self.width, np.float32)
        for column, value in self.entries(example):
            row[column] += value
        return row

    def entries(self, example: Mapping[str, Any]) -> Iterator[tuple[int, float]]:
        """The columns and the values of one example."""
        if not isinstance(example, Mapping):
            raise TypeError(
                f"Features: an example is a dictionary, got a {type(example).__name__}; rows of "
                "numbers go into `olx.streams.from_examples`."
            )
        for name, value in example.items():
            if isinstance(value, str):
                name, value = f"{name}={value}", 1.0
            elif not isinstance(value, Real) or not np.isfinite(float(value)):
                raise ValueError(
                    f"Features: the feature {name!r} is {value!r}; give a finite number or a word, "
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
            raise ValueError(
                f"Features: {name!r} is one more than the {self.width} columns; give a larger "
                "width, or hashed=True, which lets names share a column."
            )
        else:
            place = len(self._place), 1.0
        self._place[name] = place
        return place

    def __repr__(self) -> str:
        return f"Features(width={self.width}, hashed={self.hashed}, seen={len(self._place)})"


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

    check.instance("from_dicts", "features", features, Features)
    for rows, outcome, weight in batches("from_dicts", examples, size):
        found = [list(features.entries(row)) for row in rows]
        index = [(i, column) for i, row in enumerate(found) for column, _ in row]
        values = np.array([value for row in found for _, value in row], np.float32)
        place = np.array(index, np.int64).reshape(-1, 2).T
        matrix = scipy.sparse.coo_array((values, tuple(place)), shape=(len(rows), features.width))
        yield Rounds(sparse_rows(matrix), outcome, weight)
