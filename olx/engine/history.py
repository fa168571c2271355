"""Digests of the rounds that were played, so that a changed stream is not resumed."""

import hashlib
import itertools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from olx.core import Rounds
from olx.streams.sparse_rows import SparseRows

_ROWS = 1 << 16  # rounds per update of a digest


class Fingerprint:
    """A running digest of the rounds of a stream; it does not depend on how the stream is cut."""

    def __init__(self) -> None:
        self._parts: list[Any] = []

    def add(self, part: Rounds) -> bytes:
        """The digest of all rounds so far, these included."""
        arrays = [array for leaf in jax.tree.leaves(part) for array in _arrays(leaf)]
        self._parts = self._parts or [hashlib.sha256() for _ in arrays]
        for digest, array in zip(self._parts, arrays, strict=True):
            digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        return hashlib.sha256(b"".join(part.digest() for part in self._parts)).digest()


class History:
    """Compares a stream, from its beginning on, with the digests of an earlier run."""

    def __init__(self, known: dict[int, bytes], changed: Callable[[int, int], Exception]):
        """known: the digest per number of rounds. changed: makes the error if one differs."""
        self.rounds = max(known, default=0)
        self._known, self._changed, self._fingerprint = known, changed, Fingerprint()

    def skip(self, piece: Rounds, start: int, stop: int) -> None:
        """Check the rounds of a piece that were played before; the piece begins at `start`."""
        ends = [at for at in sorted(self._known) if start < at <= stop]
        marks = sorted({*range(start, stop, _ROWS), *ends, stop})
        good = max((at for at in self._known if at <= start), default=0)
        for low, high in itertools.pairwise(marks):
            rows = slice(low - start, high - start)
            seen = self._fingerprint.add(jax.tree.map(lambda leaf, rows=rows: leaf[rows], piece))
            if high in self._known:
                if seen != self._known[high]:
                    raise self._changed(good, high)
                good = high

    def add(self, part: Rounds) -> bytes:
        return self._fingerprint.add(part)


def _arrays(leaf: np.ndarray | SparseRows) -> list[np.ndarray]:
    if isinstance(leaf, SparseRows):
        return [np.diff(leaf.pointers), leaf.indices, leaf.values]
    return [leaf]
